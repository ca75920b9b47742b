// Joins the parts of the compiler: load, phases, output.

#include "Compile.h"

#include "CheckCuts.h"
#include "Diagnostics.h"
#include "FixedBatch.h"
#include "InitAll.h"
#include "OpenText.h"
#include "OutputFile.h"
#include "Overview.h"
#include "PhaseText.h"
#include "PipelineDumps.h"
#include "Progress.h"
#include "ProveStart.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Frontier.h"
#include "lib/Cost/Prediction.h"
#include "lib/Emit/WriteExecutable.h"
#include "lib/Evaluate/TensorFiles.h"
#include "lib/Import/Import.h"
#include "lib/Names/BatchDim.h"
#include "lib/Onnx/ParameterReport.h"
#include "lib/Report/Reports.h"
#include "lib/Target/TargetTable.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include <set>

using namespace mlir;
using namespace accel;
using namespace accel::driver;

static LogicalResult fail(MLIRContext &context, StringRef file,
                          const Twine &message) {
  return emitError(FileLineColLoc::get(&context, file, 0, 0)) << message;
}

/// Everything that one compilation carries along.
namespace {
class Compilation {
public:
  explicit Compilation(const CompileOptions &options);
  LogicalResult run();

private:
  bool isModel() const { return StringRef(options.input).ends_with(".onnx"); }
  bool wantsExecutable() const {
    return StringRef(options.output).ends_with(".accx");
  }
  onnxio::IdentifyOptions identifyOptions() const {
    const autodiff::TrainOptions &train = options.phases.train;
    auto copy = [](ArrayRef<std::string> patterns) { return patterns.vec(); };
    return {options.ties, copy(train.step.trainable), copy(train.step.frozen),
            train.allowFolded};
  }
  FailureOr<std::unique_ptr<onnxio::OnnxFile>> readModel();
  LogicalResult load();
  LogicalResult checkBatchNorms();
  LogicalResult checkWeights();
  LogicalResult applyConfig();
  LogicalResult runPhases();
  LogicalResult runPipeline(ModuleOp on, StringRef name,
                            function_ref<LogicalResult(PassManager &)> fill);
  /// Names what is being done, and times it until the scope ends.
  TimingScope begin(const Twine &stage) {
    progress.setStage(stage.str());
    return root.nest(stage.str());
  }
  LogicalResult emitExecutable();
  LogicalResult reportParameters();
  LogicalResult
  writeText(function_ref<LogicalResult(llvm::raw_ostream &)> write);

  const CompileOptions &options;
  MLIRContext context;
  DiagnosticPrinter diagnostics;
  Progress progress;
  TreeFolders treeFolders;
  /// One tree of times for everything (`--mlir-timing`).
  DefaultTimingManager timing;
  TimingScope root;
  OwningOpRef<ModuleOp> module;
  /// The text of each phase that was run, for the executable.
  std::vector<std::pair<std::string, std::string>> phaseTexts;
};
} // namespace

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return registry;
}

Compilation::Compilation(const CompileOptions &options)
    : options(options), context(makeRegistry()), diagnostics(&context),
      progress("acc-opt") {
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false); // a module is no part of a sentence
  applyDefaultTimingManagerCLOptions(timing);
  root = timing.getRootScope();
}

LogicalResult Compilation::run() {
  if (options.report == "parameters")
    return reportParameters();
  if (failed(load()) || failed(checkWeights()) || failed(applyConfig()) ||
      failed(runPhases()))
    return failure();
  if (wantsExecutable())
    return emitExecutable();
  return writeText([&](llvm::raw_ostream &os) {
    if (options.report == "memory")
      return report::printMemory(*module, options.output, os, options.json);
    if (options.report == "precision")
      return report::printPrecision(*module, os, options.json);
    if (options.report == "sharding")
      return report::printSharding(*module, os, options.json);
    if (options.report == "collectives")
      return report::printCollectives(*module, os, options.json);
    if (options.report == "commands")
      return report::printCommands(*module, os, options.json);
    if (options.report == "stages")
      return report::printStages(*module, os, options.json);
    if (options.report == "schedule")
      return report::printSchedule(*module, options.output, os, options.json);
    if (options.report == "decisions")
      return report::printDecisions(*module, os, options.json);
    if (options.report == "scale")
      return report::printScale(*module, options.links, os, options.json);
    if (options.explain == "sharding")
      return report::explainSharding(*module, os, options.json);
    if (options.explain == "collectives")
      return report::explainCollectives(*module, os, options.json);
    if (options.overview) {
      printOverview(*module, options.input, os);
      return success();
    }
    printPhaseText(*module, os);
    os << "\n";
    return success();
  });
}

/// The model, and what else is known of its parameters.
FailureOr<std::unique_ptr<onnxio::OnnxFile>> Compilation::readModel() {
  auto file = onnxio::OnnxFile::load(options.input, &context);
  if (succeeded(file) && !options.originalWeights.empty() &&
      failed((*file)->readOriginals(options.originalWeights)))
    return failure();
  return file;
}

LogicalResult Compilation::load() {
  TimingScope reading = begin("reading " + options.input);
  if (!isModel()) {
    module = parseModule(options.input, &context, /*keepsNames=*/true);
    return success(static_cast<bool>(module));
  }
  if (!options.provedAgainst.empty())
    return fail(context, options.input,
                "cannot use '--proved-against' with a model: all that is made "
                "of it is proved");
  auto file = readModel();
  if (failed(file))
    return failure();
  if (failed(checkFixedBatch(**file, options.phases)))
    return failure();
  auto parameters = onnxio::identifyParameters(**file, identifyOptions());
  if (failed(parameters))
    return failure();
  reading.stop();
  TimingScope importing = begin("importing");
  import::ImportOptions importOptions;
  importOptions.dims = options.dims;
  for (const auto &[name, path] : options.inputs) {
    FailureOr<Tensor> value = evaluate::readTensorFile(path, &context);
    if (failed(value))
      return failure();
    importOptions.values[name] = value->toElements();
  }
  importOptions.f64 = options.f64;
  importOptions.hashWeights = options.hashWeights;
  importOptions.batchParts = countBatchParts(options.phases).value_or(1);
  importOptions.forTraining = options.phases.train.enabled;
  importOptions.trainsBatchNorms = options.phases.train.trainsBatchNorms;
  importOptions.allowFolded = options.phases.train.allowFolded;
  importOptions.marksMeans = options.phases.train.rowMask;
  importOptions.marksCalls = options.phases.autocast.lists != "none";
  module = import::importOnnx(**file, *parameters, importOptions, &context);
  if (!module || failed((*file)->checkValuesRead()))
    return failure();
  if (failed(checkBatchNorms()))
    return failure();
  importing.stop();
  if (failed(runPipeline(*module, "compiling: nn", [&](PassManager &pm) {
        buildPhase(Phase::NN, pm, options.phases);
        return success();
      })))
    return failure();
  return checkCuts(**file, *module, options.phases.cut.cuts);
}

/// What is said of their scope is obeyed by norms that are trained.
LogicalResult Compilation::checkBatchNorms() {
  bool isSaid = options.phases.batchNormParts > 0 ||
                options.phases.batchNormScope != PhaseOptions().batchNormScope;
  auto hasNorms = [&] {
    return module->walk([](nn::BatchNormOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  };
  if (!isSaid || hasNorms())
    return success();
  return module->emitError(
      "expected a batch norm that is trained with 'batch_norm.scope' or "
      "'batch_norm.parts', found none");
}

/// Weights are read by the run, from where they are now.
LogicalResult Compilation::checkWeights() {
  std::set<std::string> files;
  AttrTypeWalker walker;
  walker.addWalk(
      [&](nn::FileAttr file) { files.insert(file.getPath().str()); });
  module->walk(
      [&](nn::StateOp state) { walker.walk(state->getAttrDictionary()); });
  std::string why =
      whyNotWrite(options.output, wantsExecutable(),
                  SmallVector<std::string>(files.begin(), files.end()));
  return why.empty() ? success()
                     : fail(context, options.output, "cannot write: " + why);
}

/// Config files become part of the module, and are held against the model.
LogicalResult Compilation::applyConfig() {
  if (options.config.empty())
    return success();
  Builder builder(&context);
  NamedAttrList settings;
  for (auto &[name, value] : options.config)
    settings.set(name, builder.getStringAttr(value));
  SmallVector<StringRef> keys(options.configKeys.begin(),
                              options.configKeys.end());
  settings.set("keys", builder.getStrArrayAttr(keys));
  (*module)->setAttr(kConfigAttr, settings.getDictionary(&context));
  auto &[rows, file, line] = options.batchSize;
  if (rows == 0)
    return success();
  for (auto function : module->getOps<func::FuncOp>())
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
      auto name = function.getArgAttrOfType<StringAttr>(index, nn::kInputAttr);
      auto shaped = dyn_cast<ShapedType>(type);
      if (!name || !shaped)
        continue;
      std::optional<unsigned> dim =
          batchDimOf(name, options.phases.place.annotate.batchDims);
      if (!dim || *dim >= shaped.getRank() || shaped.getDimSize(*dim) == rows)
        continue;
      return emitError(FileLineColLoc::get(
                 &context, file.empty() ? "acc-opt" : file, line, 0))
             << "expected 'train_batch_size' to be the "
             << shaped.getDimSize(*dim) << " rows of input '" << name.getValue()
             << "', found " << rows;
    }
  return success();
}

LogicalResult
Compilation::runPipeline(ModuleOp on, StringRef name,
                         function_ref<LogicalResult(PassManager &)> fill) {
  PassManager pm(&context);
  if (failed(fill(pm)))
    return failure();
  if (pm.empty())
    return success();
  StringRef phase = name;
  bool isPhase = phase.consume_front("compiling: ");
  treeFolders.enter(phase);
  if (failed(applyPassManagerCLOptions(pm)))
    return failure();
  if (options.printPipelines && isPhase)
    printPipeline(phase, pm);
  TimingScope scope = begin(name);
  pm.enableTiming(scope);
  return pm.run(on);
}

bool driver::isOfLocal(StringRef report) {
  return report == "sharding" || report == "stages" || report == "schedule";
}

LogicalResult Compilation::runPhases() {
  std::optional<Phase> reached = getPhase(*module);
  if (!reached)
    return fail(context, options.input,
                "expected a module that says which phase it has reached, found "
                "no 'accel.phase'");
  if (!isModel())
    for (auto &[flag, readBy] : options.given)
      if (*reached >= readBy && !(flag == "--target" && wantsExecutable()))
        return fail(context, options.input,
                    "cannot use '" + flag + "': the module is in phase '" +
                        stringifyPhase(*reached) + "', past what reads it");
  Phase last = wantsExecutable() ? Phase::Plan
               : options.report == "parameters" || options.report == "precision"
                   ? Phase::Train
               : isOfLocal(options.report)     ? Phase::Local
               : options.explain == "sharding" ? Phase::Dist
               : !options.explain.empty()      ? Phase::Local
               : !options.report.empty()       ? Phase::Plan
                                               : options.compileTo;
  if (*reached > last)
    return fail(context, options.input,
                "cannot compile to phase '" + stringifyPhase(last) +
                    "': the module is past it, in phase '" +
                    stringifyPhase(*reached) + "'");
  PhaseOptions phases = options.phases;
  phases.logical = equivalence::makeKeptProgram();
  phases.padded = equivalence::makeKeptProgram();
  phases.place.explain = !options.explain.empty();
  if (phases.place.explain && *reached >= Phase::Dist)
    return fail(context, options.input,
                "cannot use '--explain': the module is in phase '" +
                    stringifyPhase(*reached) +
                    "', past that in which reasons are known");
  if (options.report == "decisions") {
    if (*reached >= Phase::Decided)
      return fail(context, options.input,
                  "cannot use '--report=decisions': the module is in phase '" +
                      stringifyPhase(*reached) +
                      "', past that in which it is decided");
    cost::askForDecisions(*module);
  }
  if ((options.report == "decisions" || options.report == "memory") &&
      *reached < Phase::Decided)
    cost::askForPrediction(*module);
  if (options.whatIf) {
    if (*reached >= Phase::Decided)
      return fail(context, options.input,
                  "cannot use '--what-if': the module is in phase '" +
                      stringifyPhase(*reached) +
                      "', past that in which it is decided");
    cost::askForFrontier(*module);
  }
  // Of a model they were obeyed when its parameters were identified, where
  // constants have names too.
  if (isModel()) {
    phases.train.step.trainable.clear();
    phases.train.step.frozen.clear();
  }
  bool goesOn = last > *reached || wantsExecutable();
  if (!isModel() && goesOn &&
      failed(proveStart(
          *module,
          {options.input, *reached, options.provedAgainst, wantsExecutable()},
          phases, [&](ModuleOp text, StringRef name, auto add) {
            return runPipeline(text, name, [&](PassManager &pm) {
              add(pm);
              return success();
            });
          })))
    return failure();
  for (int phase = static_cast<int>(*reached); phase <= static_cast<int>(last);
       ++phase) {
    StringRef name = stringifyPhase(static_cast<Phase>(phase));
    if (phase > static_cast<int>(*reached)) {
      if (failed(runPipeline(
              *module, ("compiling: " + name).str(), [&](PassManager &pm) {
                buildPhase(static_cast<Phase>(phase), pm, phases);
                return success();
              })))
        return failure();
      setPhase(*module, static_cast<Phase>(phase));
    }
    if (wantsExecutable()) {
      TimingScope printing = root.nest("text of " + name.str());
      std::string text;
      llvm::raw_string_ostream os(text);
      printKeptText(*module, os);
      phaseTexts.emplace_back(name.str(), std::move(text));
    }
  }
  return runPipeline(*module, "passes of the command line",
                     options.addUserPasses);
}

LogicalResult Compilation::emitExecutable() {
  TimingScope generating = begin("generating kernels");
  auto targets = findTargets(*module, options.phases.plan.target,
                             options.phases.plan.threads);
  if (failed(targets))
    return failure();
  SmallVector<emit::Compiled> engines;
  for (const Target *target : *targets) {
    FailureOr<Code> code = target->compile(*module);
    if (failed(code))
      return failure();
    engines.push_back({target, std::move(*code)});
  }
  generating.stop();
  TimingScope writing = begin("writing " + options.output);
  return emit::writeExecutable(*module, engines, phaseTexts, options.output,
                               options.embedWeights);
}

/// Of a model what its parameters are, and if it is trained how they are
/// updated, which is all that the text of a phase tells.
LogicalResult Compilation::reportParameters() {
  bool trains = options.phases.train.enabled;
  if ((trains || !isModel()) && failed(load()))
    return failure();
  if (trains && (failed(applyConfig()) || failed(runPhases())))
    return failure();
  if (!isModel()) {
    if (!trains && !options.given.empty())
      return fail(context, options.input,
                  "cannot use '" + options.given.front().first +
                      "' with --report=parameters: the text says what is so");
    return writeText([&](llvm::raw_ostream &os) {
      return report::printUpdates(*module, os, options.json);
    });
  }
  auto file = readModel();
  if (failed(file))
    return failure();
  auto parameters = onnxio::identifyParameters(**file, identifyOptions());
  if (failed(parameters))
    return failure();
  return writeText([&](llvm::raw_ostream &os) {
    if (!trains || options.json) {
      onnxio::printParameterReport(*parameters, os, options.json,
                                   trains
                                       ? report::collectUpdates(*module)
                                       : llvm::StringMap<llvm::json::Object>());
      return success();
    }
    onnxio::printParameterReport(*parameters, os, /*json=*/false);
    os << "\nhow a step updates them:\n";
    return report::printUpdates(*module, os, /*json=*/false);
  });
}

LogicalResult
Compilation::writeText(function_ref<LogicalResult(llvm::raw_ostream &)> write) {
  std::string error;
  auto output = openOutputFile(options.output, &error);
  if (!output)
    return fail(context, options.output, error);
  if (failed(write(output->os())))
    return failure();
  if (std::string why = keepOutput(*output); !why.empty())
    return fail(context, options.output, "cannot write: " + why);
  return success();
}

LogicalResult accel::driver::reportUpdates(const CompileOptions &options,
                                           StringRef text) {
  MLIRContext context(makeRegistry());
  DiagnosticPrinter diagnostics(&context);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  if (std::optional<TooDeep> deep = findTooDeep(text))
    return fail(context, options.input, deep->message);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  std::string error;
  auto output = module ? openOutputFile(options.output, &error) : nullptr;
  if (!output)
    return module ? fail(context, options.output, error) : failure();
  if (failed(report::printUpdates(*module, output->os(), options.json)))
    return failure();
  std::string why = keepOutput(*output);
  return why.empty() ? success()
                     : fail(context, options.output, "cannot write: " + why);
}

LogicalResult accel::driver::compile(const CompileOptions &options) {
  return Compilation(options).run();
}
