// Plans that are changed in one place, each executed on virtual ranks: all that
// compute something else must be refused, by the proof or by plan-verify before
// it, and the unchanged ones accepted.

#ifndef ACCEL_TEST_UNIT_EQUIVALENCE_PLANMUTANTS_H
#define ACCEL_TEST_UNIT_EQUIVALENCE_PLANMUTANTS_H

#include "PlanMutator.h"
#include "lib/Driver/InitAll.h"
#include "lib/Driver/Passes.h"
#include "lib/Equivalence/PlanEquivalence.h"
#include "lib/Evaluate/Interpreter.h"
#include "lib/Plan/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

namespace accel::test {

/// A decoder's layer: embedding, norm, one projection to query, key and value,
/// attention, a sum with what came in, tied logits; squared error.
inline constexpr const char *kPlanProgram = R"(
module attributes {accel.phase = "nn"} {
nn.state @table : tensor<8x8xf32> = #8x8
nn.state @scale : tensor<8xf32> = #8
nn.state @shift : tensor<8xf32> = #8
nn.state @wqkv : tensor<8x24xf32> = #8x24
nn.state @bqkv : tensor<24xf32> = #24
nn.state @wo : tensor<8x8xf32> = #8x8
func.func @main(%ids: tensor<8x4xi64> {nn.input = "ids"}, %t: tensor<8x4x8xf32> {nn.input = "t"},
    %table: tensor<8x8xf32> {nn.state = @table}, %scale: tensor<8xf32> {nn.state = @scale},
    %shift: tensor<8xf32> {nn.state = @shift}, %wqkv: tensor<8x24xf32> {nn.state = @wqkv},
    %bqkv: tensor<24xf32> {nn.state = @bqkv}, %wo: tensor<8x8xf32> {nn.state = @wo})
    -> (tensor<f32> {nn.output = "loss"}) attributes {nn.entry} {
  %x = nn.gather %table, %ids dim 0 : (tensor<8x8xf32>, tensor<8x4xi64>) -> tensor<8x4x8xf32>
  %n = nn.layer_norm %x, %scale, %shift dim 2 epsilon 1.0e-05 : (tensor<8x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8x4x8xf32>
  %rows = nn.reshape %n : (tensor<8x4x8xf32>) -> tensor<32x8xf32>
  %p = nn.matmul %rows, %wqkv : (tensor<32x8xf32>, tensor<8x24xf32>) -> tensor<32x24xf32>
  %bb = nn.broadcast %bqkv : (tensor<24xf32>) -> tensor<32x24xf32>
  %pb = nn.add %p, %bb : tensor<32x24xf32>
  %qkv = nn.reshape %pb : (tensor<32x24xf32>) -> tensor<8x4x24xf32>
  %q0 = nn.slice %qkv starts [0, 0, 0] sizes [8, 4, 8] steps [1, 1, 1] : (tensor<8x4x24xf32>) -> tensor<8x4x8xf32>
  %k0 = nn.slice %qkv starts [0, 0, 8] sizes [8, 4, 8] steps [1, 1, 1] : (tensor<8x4x24xf32>) -> tensor<8x4x8xf32>
  %v0 = nn.slice %qkv starts [0, 0, 16] sizes [8, 4, 8] steps [1, 1, 1] : (tensor<8x4x24xf32>) -> tensor<8x4x8xf32>
  %q1 = nn.reshape %q0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %k1 = nn.reshape %k0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %v1 = nn.reshape %v0 : (tensor<8x4x8xf32>) -> tensor<8x4x2x4xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : (tensor<8x4x2x4xf32>) -> tensor<8x2x4x4xf32>
  %a:2 = nn.attention %q, %k, %v {causal, scale = 0.5 : f64} : (tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>, tensor<8x2x4x4xf32>) -> (tensor<8x2x4x4xf32>, tensor<8x2x4xf32>)
  %a1 = nn.transpose %a#0 [0, 2, 1, 3] : (tensor<8x2x4x4xf32>) -> tensor<8x4x2x4xf32>
  %a2 = nn.reshape %a1 : (tensor<8x4x2x4xf32>) -> tensor<32x8xf32>
  %o = nn.matmul %a2, %wo : (tensor<32x8xf32>, tensor<8x8xf32>) -> tensor<32x8xf32>
  %o1 = nn.reshape %o : (tensor<32x8xf32>) -> tensor<8x4x8xf32>
  %h = nn.add %o1, %x : tensor<8x4x8xf32>
  %g = nn.gelu erf %h : tensor<8x4x8xf32>
  %logits = nn.matmul %g, %table {transpose_rhs} : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
  %d = nn.sub %logits, %t : tensor<8x4x8xf32>
  %dd = nn.mul %d, %d : tensor<8x4x8xf32>
  %s = nn.reduce sum %dd dims [0, 1, 2] : (tensor<8x4x8xf32>) -> tensor<f32>
  %c = nn.constant dense<0.00390625> : tensor<f32>
  %loss = nn.mul %s, %c : tensor<f32>
  return %loss : tensor<f32>
}
}
)";

/// How the program is compiled.
struct PlanSetting {
  const char *name, *mesh, *precision;
  int64_t microBatches, stage;
  bool train;
  const char *schedule = "sequential";
  const char *target = "cpu";
  std::vector<std::string> settings = {};
  const char *optimizer = "adamw";
};

/// Numbers of a state, by its shape: they differ between states.
inline std::string makeElements(std::mt19937 &random,
                                llvm::ArrayRef<int64_t> shape) {
  std::string text = "dense<";
  int64_t columns = shape.back(), rows = shape.size() > 1 ? shape[0] : 1;
  text += shape.size() > 1 ? "[" : "";
  for (int64_t row = 0; row < rows; ++row) {
    text += row ? ", [" : "[";
    for (int64_t column = 0; column < columns; ++column)
      text += (column ? ", " : "") +
              std::to_string(static_cast<int>(random() % 65) - 32) + ".0e-2";
    text += "]";
  }
  text += shape.size() > 1 ? "]" : "";
  return text + ">";
}

/// What became of the mutants.
struct MutantTally {
  std::map<std::string, int> differing; ///< by what was changed
  int same = 0, strict = 0;             ///< as right as before; refused though
  int byProof = 0;                      ///< that plan-verify lets pass

  int count() const {
    int sum = 0;
    for (auto &[change, number] : differing)
      sum += number;
    return sum;
  }
  void print() const {
    std::cout << "  " << count() << " mutants compute something else ("
              << byProof << " of them pass plan-verify):";
    for (auto &[change, number] : differing)
      std::cout << " " << change << " " << number << ",";
    std::cout << " and " << same << " the same (" << strict << " refused)\n";
  }
};

class PlanMutantsTest : public ::testing::Test {
protected:
  PlanMutantsTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse() {
    std::mt19937 random(7);
    std::string text = kPlanProgram;
    for (auto [name, shape] :
         {std::pair("#8x8\n", llvm::SmallVector<int64_t>{8, 8}),
          std::pair("#8\n", llvm::SmallVector<int64_t>{8}),
          std::pair("#8x24\n", llvm::SmallVector<int64_t>{8, 24}),
          std::pair("#24\n", llvm::SmallVector<int64_t>{24})})
      for (size_t at; (at = text.find(name)) != std::string::npos;)
        text.replace(at, strlen(name) - 1, makeElements(random, shape));
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }

  void compile(mlir::ModuleOp module, const PlanSetting &setting,
               llvm::StringRef phase) {
    mlir::PassManager pm(&context);
    driver::RunPhasesPassOptions options;
    options.to = phase.str();
    options.train = setting.train;
    options.loss = setting.train ? "loss" : "";
    options.optimizer = setting.train ? setting.optimizer : "";
    if (setting.train)
      options.settings = {"optimizer.lr=0.1", "gradient_clipping=0.5"};
    options.mesh = setting.mesh;
    options.mixedPrecision = setting.precision;
    options.microBatches = setting.microBatches;
    options.settings.push_back("zero_stage=" + std::to_string(setting.stage));
    for (const std::string &each : setting.settings)
      options.settings.push_back(each);
    options.schedule = setting.schedule;
    // Of CPUs not another one: a process keeps oneDNN to one set of
    // instructions.
    options.target = setting.target;
    options.threads = options.target == "cpu" ? 1 : 0;
    pm.addPass(driver::createRunPhasesPass(options));
    ASSERT_TRUE(mlir::succeeded(pm.run(module)));
  }

  /// Whether collectives cut and join what can be cut and joined: the evaluator
  /// asks for it.
  static bool fits(mlir::ModuleOp module) {
    auto check = [&](plan::CollectiveOp op) {
      int64_t ranks = 1, dim = op.getDim();
      dist::MeshOp mesh = *module.getOps<dist::MeshOp>().begin();
      for (auto axis : op.getAxes().getAsRange<mlir::StringAttr>())
        ranks *= axis == "mb" ? 1 : *mesh.findAxisSize(axis.getValue());
      bool gathers = op.getCollective() == plan::Collective::all_gather,
           scatters = op.getCollective() == plan::Collective::reduce_scatter;
      return llvm::all_of(
          llvm::zip(op.getInputs(), op.getOutputs()), [&](auto pair) {
            auto input = mlir::cast<plan::ViewAttr>(std::get<0>(pair)),
                 output = mlir::cast<plan::ViewAttr>(std::get<1>(pair));
            if (!gathers && !scatters)
              return input.getNumElements() == output.getNumElements();
            return dim < int64_t(input.getShape().size()) &&
                   (gathers || input.getShape()[dim] % ranks == 0);
          });
    };
    mlir::WalkResult found = module.walk([&](plan::CollectiveOp op) {
      return check(op) ? mlir::WalkResult::advance()
                       : mlir::WalkResult::interrupt();
    });
    return !found.wasInterrupted();
  }

  /// Whether a plan gives what is expected, bit for bit, in each order that its
  /// waits allow. What cannot be executed gives something else.
  bool computesSame(mlir::ModuleOp module,
                    const evaluate::TensorsByName &expected) {
    mlir::ScopedDiagnosticHandler quiet(
        &context, [](mlir::Diagnostic &) { return mlir::success(); });
    evaluate::TensorsByName outputs;
    if (!fits(module) ||
        mlir::failed(evaluate::evaluateModule(module, inputs, {}, outputs)) ||
        outputs.size() != expected.size())
      return false;
    for (auto &entry : expected) {
      auto found = outputs.find(entry.getKey());
      if (found == outputs.end() ||
          evaluate::getMaxDifference(found->second, entry.second) != 0)
        return false;
    }
    return true;
  }

  bool passesPlanVerify(mlir::ModuleOp module) {
    mlir::ScopedDiagnosticHandler quiet(
        &context, [](mlir::Diagnostic &) { return mlir::success(); });
    mlir::PassManager pm(&context);
    pm.enableVerifier(false);
    pm.addPass(plan::createVerifyPlanPass());
    return mlir::succeeded(pm.run(module));
  }

  bool accepts(mlir::ModuleOp local, mlir::ModuleOp plan,
               std::string *message = nullptr) {
    mlir::ScopedDiagnosticHandler quiet(&context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          if (message && message->empty())
                                            *message = diagnostic.str();
                                          return mlir::success();
                                        });
    return mlir::succeeded(equivalence::verifyPlanEquivalence(local, plan));
  }

  /// Makes a setting's plan, and what it gives.
  void makePlan(const PlanSetting &setting,
                mlir::OwningOpRef<mlir::ModuleOp> &local,
                mlir::OwningOpRef<mlir::ModuleOp> &plan,
                evaluate::TensorsByName &expected) {
    local = parse();
    ASSERT_TRUE(local);
    compile(*local, setting, "local");
    plan = local->clone();
    compile(*plan, setting, "plan");
    std::string message;
    ASSERT_TRUE(accepts(*local, *plan, &message)) << message;
    inputs = *evaluate::makeRandomInputs(*local, 3);
    ASSERT_TRUE(
        mlir::succeeded(evaluate::evaluateModule(*plan, inputs, {}, expected)));
  }

  void tryPlan(const PlanSetting &setting, unsigned first, unsigned seeds,
               MutantTally &tally) {
    SCOPED_TRACE(setting.name);
    mlir::OwningOpRef<mlir::ModuleOp> local, plan;
    evaluate::TensorsByName expected;
    ASSERT_NO_FATAL_FAILURE(makePlan(setting, local, plan, expected));
    for (unsigned seed = first; seed < first + seeds; ++seed) {
      mlir::OwningOpRef<mlir::ModuleOp> mutant(plan->clone());
      std::string change;
      {
        mlir::ScopedDiagnosticHandler quiet(
            &context, [](mlir::Diagnostic &) { return mlir::success(); });
        change = test::PlanMutator(*mutant, seed).change();
        if (change.empty() || mlir::failed(mlir::verify(*mutant)))
          continue;
      }
      SCOPED_TRACE("seed " + std::to_string(seed));
      count(*local, *mutant, expected, change, tally);
    }
  }

  void count(mlir::ModuleOp local, mlir::ModuleOp mutant,
             const evaluate::TensorsByName &expected, const std::string &change,
             MutantTally &tally) {
    bool passes = passesPlanVerify(mutant);
    bool accepted = passes && accepts(local, mutant);
    bool same = computesSame(mutant, expected);
    tally.same += same;
    tally.strict += same && !accepted;
    if (same)
      return;
    ++tally.differing[change];
    tally.byProof += passes;
    EXPECT_FALSE(accepted) << change;
  }

  /// So many seeds of each setting, or as many as ACCEL_PLAN_MUTANTS says.
  MutantTally tryPlans(llvm::ArrayRef<PlanSetting> settings, unsigned seeds) {
    if (const char *more = std::getenv("ACCEL_PLAN_MUTANTS"))
      seeds = std::atoi(more);
    MutantTally tally;
    for (auto [number, setting] : llvm::enumerate(settings))
      tryPlan(setting, number * seeds, seeds, tally);
    tally.print();
    return tally;
  }

  mlir::MLIRContext context;
  evaluate::TensorsByName inputs;
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_EQUIVALENCE_PLANMUTANTS_H
