// Compiles in one process, evaluates all virtual ranks, and says what came of
// it.

#include "Check.h"

#include "OnnxForm.h"
#include "Random.h"
#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

static constexpr double kClose = 1e-9;
/// Rounding moves results by less than inputs that are moved by kNudge, many
/// times their last digit: by no more than kMoved times as far, to be safe.
static constexpr double kNudge = 1e-13, kMoved = 10;
static constexpr unsigned kDirections = 8;
static constexpr StringLiteral kFirstProof = "dist-verify-equivalence",
                               kSecondProof = "plan-verify-equivalence";

const char *fuzz::currentPass = "";

StringRef fuzz::stringify(Verdict verdict) {
  switch (verdict) {
  case Verdict::right:
    return "right";
  case Verdict::reason:
    return "reason";
  case Verdict::refused:
    return "refused";
  case Verdict::wrong:
    return "wrong";
  case Verdict::unstable:
    return "unstable";
  }
  llvm_unreachable("all are named");
}

std::string Outcome::getKind() const {
  // Names and numbers are the case's.
  std::string kind = (stringify(verdict) + ": " + where).str();
  if (verdict == Verdict::wrong)
    return kind;
  kind += ": ";
  bool quoted = false;
  for (char c : what) {
    if (c == '\n')
      break;
    quoted ^= c == '\'';
    if (!quoted && !isdigit(c))
      kind += c;
  }
  return kind;
}

namespace {
/// The innermost pass that failed.
struct NameFailure : PassInstrumentation {
  explicit NameFailure(std::string &name) : name(name) {}
  void runBeforePass(Pass *pass, Operation *) override {
    currentPass = pass->getArgument().data(); // a literal
  }
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getArgument().str();
  }
  std::string &name;
};
} // namespace

struct Checker::Run {
  bool succeeded = false;
  std::string pass, said;

  bool isProof() const { return pass == kFirstProof || pass == kSecondProof; }
};

Checker::Checker(const Program &program, uint64_t inputSeed,
                 CheckOptions options)
    : program(program), inputSeed(inputSeed), options(options) {}

evaluate::InterpreterOptions Checker::getEvaluation() const {
  evaluate::InterpreterOptions own;
  // Codes and their scales are held against each other as they are rounded.
  // What lists of autocast cast is held together in float64: where sums are
  // split, their roundings to 16 bits differ.
  own.mode = program.update.mixedPrecision == "fp8" ? EvaluationMode::OwnTypes
                                                    : EvaluationMode::Float64;
  own.interleavings = 1;
  return own;
}

Checker::Run Checker::compile(ModuleOp module, const Layout &layout,
                              StringRef phase) {
  Run run;
  ScopedDiagnosticHandler collect(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
            run.said.empty())
          run.said = diagnostic.str();
        return success();
      });
  driver::RunPhasesPassOptions phases;
  phases.to = phase.str();
  phases.train = true;
  phases.loss = "loss";
  phases.optimizer = program.update.optimizer;
  phases.emitGradients = true;
  phases.mixedPrecision = program.update.mixedPrecision;
  phases.metrics = program.update.metrics;
  phases.entries = {"step"};
  // A step that is made already declares what it sends.
  bool isMade = getPhase(module).value_or(Phase::NN) >= Phase::Train;
  for (const std::string &setting : program.update.settings)
    if (!isMade || !Update::isOfWire(setting))
      phases.settings.push_back(setting);
  llvm::append_range(phases.settings, layout.settings);
  phases.mesh = layout.getMesh();
  phases.microBatches = layout.microBatches;
  llvm::append_range(phases.batchDims, program.update.batchDims);
  if (!layout.schedule.empty())
    phases.schedule = layout.schedule;
  phases.target = "null";
  PassManager pm(module.getContext());
  pm.addInstrumentation(std::make_unique<NameFailure>(run.pass));
  pm.addPass(driver::createRunPhasesPass(phases));
  run.succeeded = mlir::succeeded(pm.run(module));
  return run;
}

/// Says of the model's ops in which of a list of modules they lie, as exporters
/// do, a few in each: what is computed again goes by it.
static void nameModules(ModuleOp module, uint64_t seed) {
  Random random(seed);
  for (auto entry : module.getOps<func::FuncOp>()) {
    int64_t number = 0;
    for (Operation &op : entry.front().without_terminator()) {
      number += random.chance(25);
      op.setLoc(FusedLoc::get(
          op.getContext(), {op.getLoc()},
          StringAttr::get(op.getContext(), "m." + Twine(number))));
    }
  }
}

bool Checker::prepare(Outcome &outcome) {
  whole = program.module.get().clone();
  Run run = compile(*whole, Layout(), "train");
  if (!run.succeeded) {
    outcome = refuse(run, Layout());
    return false;
  }
  ScopedDiagnosticHandler collect(
      whole->getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
            outcome.what.empty())
          outcome.what = diagnostic.str();
        return success();
      });
  source = program.viaOnnx
               ? importOnnx(writeOnnx(*program.module), *program.module)
               : OwningOpRef<ModuleOp>(program.module.get().clone());
  if (!source) {
    outcome.verdict = Verdict::refused;
    outcome.where = "import";
    return false;
  }
  nameModules(*source, inputSeed);
  auto made = evaluate::makeRandomInputs(*whole, inputSeed);
  if (succeeded(made)) {
    inputs = *made;
    if (succeeded(evaluate::evaluateModule(*whole, inputs, getEvaluation(),
                                           expected))) {
      forgetUntrained();
      return true;
    }
  }
  outcome.verdict = Verdict::refused;
  outcome.where = "evaluation on one rank";
  return false;
}

void Checker::forgetUntrained() {
  // What import makes of a program may depend on less: of a choice by what is
  // always true one side is left.
  OwningOpRef<ModuleOp> imported(source->clone());
  if (!program.viaOnnx || !compile(*imported, Layout(), "train").succeeded)
    return;
  llvm::StringSet<> trained;
  imported->walk(
      [&](nn::GradientOp gradient) { trained.insert(gradient.getState()); });
  for (auto state : whole->getOps<nn::StateOp>()) {
    // A moment is called after what it belongs to.
    StringRef name = state.getSymName().rsplit('/').second;
    name = name.empty() ? state.getSymName() : name;
    auto gradient = expected.find((name + ".grad").str());
    if (trained.contains(name) || gradient == expected.end())
      continue;
    const Tensor &numbers = gradient->second;
    bool isZero = true;
    for (int64_t at = 0; at < numbers.getNumElements(); ++at)
      isZero &= numbers.asDouble(at) == 0;
    if (!isZero)
      continue;
    for (auto each : whole->getOps<nn::StateOp>())
      if (each.getSymName() == name ||
          each.getSymName().ends_with(("/" + name).str()))
        expected.erase(("@" + each.getSymName()).str());
    expected.erase((name + ".grad").str());
  }
}

Outcome Checker::refuse(const Run &run, const Layout &layout) {
  Outcome outcome;
  outcome.where = run.pass;
  outcome.what = run.said;
  const Reason *reason =
      run.isProof() ? nullptr : findReason(run.pass, run.said, program);
  outcome.verdict = reason ? Verdict::reason : Verdict::refused;
  if (reason)
    outcome.reason = reason->name;
  return outcome;
}

/// The largest difference of two tensors, relative to what is in the expected
/// one, and to what gradients are altogether.
static double findDifference(Tensor found, const Tensor &wanted, double floor) {
  if (found.getShape() != wanted.getShape()) {
    // States are padded at their ends.
    if (found.getRank() != wanted.getRank())
      return INFINITY;
    for (int64_t dim = 0; dim < found.getRank(); ++dim)
      if (found.getDimSize(dim) < wanted.getDimSize(dim))
        return INFINITY;
    found =
        found.strided(wanted.getShape(), getRowMajorStrides(found.getShape()));
  }
  double size = floor, largest = 0;
  for (int64_t at = 0; at < wanted.getNumElements(); ++at)
    if (std::isfinite(wanted.asDouble(at)))
      size = std::max(size, std::abs(wanted.asDouble(at)));
  for (int64_t at = 0; at < wanted.getNumElements(); ++at) {
    double a = found.asDouble(at), b = wanted.asDouble(at);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    largest = std::max(largest, std::isfinite(a - b) ? std::abs(a - b)
                                                     : double(INFINITY));
  }
  return largest / size;
}

/// The name and difference of the value that differs most.
static std::pair<std::string, double>
findLargest(const evaluate::TensorsByName &found,
            const evaluate::TensorsByName &expected) {
  double norm = 0;
  if (auto it = expected.find("grad_norm"); it != expected.end())
    norm = it->second.asDouble(0);
  // What is 0 but for rounding has that of its terms, which may be as large as
  // the norm; and all rows may round in the same direction, as where a ring
  // adds log(2) to equal scores of 60,000.
  double floor = std::isfinite(norm) ? std::max(1e-3, 1e-2 * norm) : 1e-3;
  std::pair<std::string, double> largest;
  SmallVector<StringRef> names = llvm::to_vector(expected.keys());
  llvm::sort(names);
  for (StringRef name : names) {
    auto it = found.find(name);
    double difference =
        it == found.end()
            ? INFINITY
            : findDifference(it->second, expected.find(name)->second, floor);
    if (difference > largest.second)
      largest = {name.str(), difference};
  }
  return largest;
}

double Checker::getMoved() {
  if (moved)
    return *moved;
  evaluate::TensorsByName start = inputs;
  for (auto state : whole->getOps<nn::StateOp>())
    if (auto elements = dyn_cast<ElementsAttr>(state.getInit()))
      if (FailureOr<Tensor> tensor = Tensor::fromElements(elements);
          succeeded(tensor) && tensor->isFloat())
        start[("@" + state.getSymName()).str()] = *tensor;
  ScopedDiagnosticHandler quiet(whole->getContext(),
                                [](Diagnostic &) { return success(); });
  Random random(inputSeed);
  moved = 0;
  // Of two numbers that are equal but for rounding, each direction makes one
  // the larger, as it happens.
  for (unsigned direction = 0; direction < kDirections; ++direction) {
    evaluate::TensorsByName nudged = start, results;
    for (auto &entry : nudged)
      if (entry.second.isFloat())
        for (double &number : entry.second.mutableFloats())
          number += kNudge * (double(random.below(2001)) / 1000 - 1) *
                    (1 + std::abs(number));
    double here = failed(evaluate::evaluateModule(*whole, nudged,
                                                  getEvaluation(), results))
                      ? INFINITY
                      : findLargest(results, expected).second;
    moved = std::max(*moved, here);
  }
  return *moved;
}

/// What a plan sends in 16 bits lies in buffers of these, so that its numbers
/// are rounded in every mode of evaluation; before that in the one that rounds.
bool Checker::isRounded(ModuleOp module) const {
  return program.update.sendsRounded() &&
         (getPhase(module) == Phase::Plan ||
          getEvaluation().mode == EvaluationMode::OwnTypes);
}

std::optional<bool> Checker::isOther(ModuleOp mutant) {
  bool differs = false;
  ScopedDiagnosticHandler collect(
      mutant.getContext(), [&](Diagnostic &diagnostic) {
        std::string said = diagnostic.str();
        differs |= StringRef(said).starts_with("expected equal copies") ||
                   StringRef(said).contains("expected 0 after the step");
        return success();
      });
  evaluate::TensorsByName found;
  if (failed(mlir::verify(mutant)) || isRounded(mutant))
    return std::nullopt;
  if (failed(evaluate::evaluateModule(mutant, inputs, getEvaluation(), found)))
    return differs ? std::optional(true) : std::nullopt;
  evaluate::sumTerms(mutant, found);
  double difference = findLargest(found, expected).second;
  return !(difference <= kClose || difference <= kMoved * getMoved());
}

Outcome Checker::compare(ModuleOp module, StringRef phase) {
  Outcome outcome;
  evaluate::TensorsByName found;
  std::string said;
  ScopedDiagnosticHandler collect(module.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (said.empty())
                                      said = diagnostic.str();
                                    return success();
                                  });
  if (failed(
          evaluate::evaluateModule(module, inputs, getEvaluation(), found))) {
    outcome.verdict = Verdict::wrong;
    outcome.where = phase.str();
    outcome.what = said;
  } else {
    evaluate::sumTerms(module, found);
    auto [name, difference] = findLargest(found, expected);
    if (difference <= kClose)
      return outcome;
    // Of a loss that is no number, gradients are none or 0, as it happens.
    auto isNoNumber = [](const evaluate::TensorsByName &values) {
      auto it = values.find("loss");
      return it != values.end() && !std::isfinite(it->second.asDouble(0));
    };
    bool saysNothing = isNoNumber(expected) && isNoNumber(found);
    outcome.verdict = saysNothing || difference <= kMoved * getMoved()
                          ? Verdict::unstable
                          : Verdict::wrong;
    outcome.where = phase.str();
    outcome.what =
        llvm::formatv("'{0}' differs by {1:e3}", name, difference).str();
  }
  return outcome;
}

Outcome Checker::check(const Layout &layout) {
  OwningOpRef<ModuleOp> module(source->clone()), local;
  Outcome result;
  for (auto [phase, name] :
       {std::pair(Phase::Local, "local"), std::pair(Phase::Plan, "plan")}) {
    Run run = compile(*module, layout, name);
    if (phase == Phase::Local && run.succeeded &&
        options.sabotage == Sabotage::refusal)
      run = {false, kFirstProof.str(), "refuses whatever it is shown"};
    if (!run.succeeded && !run.isProof())
      // What a proof has refused may be more than later passes take.
      return result.verdict == Verdict::right ? refuse(run, layout) : result;
    // A proof changes nothing: its program stands.
    if (!run.succeeded)
      setPhase(*module, phase);
    if (options.sabotage == Sabotage::program && phase == Phase::Local &&
        !changeProgram(*module))
      return result;
    Outcome computed; // of what is rounded its proof alone knows
    if (!isRounded(*module))
      computed = compare(*module, name);
    if (run.succeeded) {
      if (computed.verdict != Verdict::right)
        return computed;
    } else {
      Outcome refused = refuse(run, layout);
      refused.isRight = computed.verdict == Verdict::right;
      if (!refused.isRight)
        refused.what += "\nand it is not right: " + computed.what;
      if (result.verdict == Verdict::right)
        result = refused;
      if (!refused.isRight)
        return result;
    }
    if (phase == Phase::Local)
      local = module->clone();
  }
  if (result.verdict != Verdict::right || options.mutants == 0)
    return result;
  OwningOpRef<ModuleOp> logical(source->clone());
  if (!compile(*logical, layout, "train").succeeded)
    return result;
  return tryMutants(*logical, *local, *module);
}
