// acc-opt: an mlir-opt that also reads .onnx and writes .accx.

#include "ConfigFlags.h"
#include "FlagCategories.h"
#include "InputFile.h"
#include "Resources.h"
#include "TrainFlags.h"
#include "accel-rt/Version.h"
#include "lib/Driver/Compile.h"
#include "lib/Driver/InitAll.h"
#include "lib/Driver/OpenText.h"
#include "lib/Driver/OutputFile.h"
#include "lib/Driver/Passes.h"
#include "lib/Driver/RepeatedFlags.h"
#include "lib/Driver/SchedulerReport.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace accel::driver;
namespace cl = llvm::cl;

static cl::list<std::string>
    dims("dim",
         cl::desc("Bind a symbolic dimension of the model to its global "
                  "size; repeatable"),
         cl::value_desc("name=N"), cl::cat(modelFlags));
static cl::list<std::string> inputs(
    "input",
    cl::desc("Bind an input of the model to the tensor in a file, .npy or .pb: "
             "it is a constant of the program then; repeatable"),
    cl::value_desc("NAME=FILE"), cl::cat(modelFlags));
static cl::opt<std::string>
    mesh("mesh",
         cl::desc("Axes of the device mesh and their sizes; none: one rank"),
         cl::value_desc("dp=4"), cl::cat(layoutFlags));
static cl::opt<std::string> compileTo(
    "compile-to",
    cl::desc("Print the IR after this phase: nn, train, dist, decided, "
             "local or plan (default for a model: plan)"),
    cl::value_desc("phase"), cl::cat(outputFlags));
static cl::list<std::string>
    batchDims("batch-dim",
              cl::desc("The batch dimension of an input (default 0)"),
              cl::value_desc("INPUT=K"), cl::cat(modelFlags));
static cl::list<std::string> shards(
    "shard",
    cl::desc("Split what this glob pattern matches of states and inputs, along "
             "a dimension over an axis of the mesh; several with commas; "
             "repeatable"),
    cl::value_desc("pattern=dim:axis"), cl::cat(layoutFlags));
static cl::list<std::string>
    cuts("cut",
         cl::desc("A chunk of the pipeline begins before this ONNX node, or "
                  "the first of this module (transformer.h.6); as many as "
                  "chunks less one, in order; repeatable"),
         cl::value_desc("name"), cl::cat(layoutFlags));
static cl::list<std::string>
    ties("tie",
         cl::desc("Two names of one parameter, where the model does not say "
                  "so; repeatable"),
         cl::value_desc("A=B"), cl::cat(modelFlags));
static cl::opt<std::string> originalWeights(
    "original-weights",
    cl::desc("The parameters that the model was exported with, of which a "
             "default export holds some only folded: what was folded is held "
             "to them bit by bit, and undone"),
    cl::value_desc("F.safetensors"), cl::cat(modelFlags));
static cl::opt<std::string>
    dtype("dtype",
          cl::desc("f64: compute in float64; a float32 model still rounds "
                   "where it casts to a narrower type"),
          cl::value_desc("f64"), cl::cat(modelFlags));
static cl::opt<bool> hashWeights(
    "hash-weights",
    cl::desc("Read weights in files of external data, so that acc-run refuses "
             "others; those in the model file are always held to it"),
    cl::cat(modelFlags));
static cl::opt<bool> embedWeights(
    "embed-weights",
    cl::desc("Copy the model's weights into the executable, which then needs "
             "no other file"),
    cl::cat(outputFlags));
static cl::list<std::string> provedAgainst(
    "proved-against",
    cl::desc("For an executable of IR that is past phase 'train': what that "
             "phase ended with, and of a plan what 'local' did; repeatable"),
    cl::value_desc("file"), cl::cat(outputFlags));
static cl::opt<std::string>
    target("target",
           cl::desc("cpu (default): this machine; cpu:x86-64-v3: portable; "
                    "null: only counted (acc-run --device=null)"),
           cl::cat(outputFlags));
static cl::opt<int64_t>
    threads("threads-per-rank",
            cl::desc("Threads of each rank (default: cores / ranks)"),
            cl::init(0), cl::cat(outputFlags));
static cl::opt<std::string>
    report("report",
           cl::desc("Print a report instead of IR: parameters, memory, "
                    "precision (types of products), sharding, collectives, "
                    "commands, scale, decisions (what "
                    "was chosen by cost, and what else there was), stages, "
                    "schedule (of micro-batches; with -o FILE.svg a picture, "
                    "FILE.json a trace) or scheduler (the learning rate and "
                    "what else scheduler.type drives, step by step; needs no "
                    "model; with -o FILE.svg a picture)"),
           cl::value_desc("kind"), cl::cat(reportFlags));
static cl::opt<std::string>
    links("links",
          cl::desc("For --report=scale: what machines and the links between "
                   "them do in a second (docs/Scale.md)"),
          cl::value_desc("file.json"), cl::cat(reportFlags));
static cl::opt<bool> whatIf(
    "what-if",
    cl::desc("For --report=memory: what the step would take with less memory, "
             "a row for each budget; with -o FILE.svg a picture"),
    cl::cat(reportFlags));
static cl::opt<std::string>
    explain("explain",
            cl::desc("Print why ranks have what they have (sharding: where "
                     "each axis of each state, input and output comes from), "
                     "or why they exchange what they exchange (collectives)"),
            cl::value_desc("kind"), cl::cat(reportFlags));
static cl::opt<int64_t> steps(
    "steps",
    cl::desc("For --report=scheduler: how many steps (default: as many as the "
             "schedule is long)"),
    cl::value_desc("N"), cl::init(0), cl::cat(reportFlags));
static cl::opt<bool> json("json", cl::desc("Reports as JSON"),
                          cl::cat(reportFlags));

static LogicalResult usageError(const llvm::Twine &message) {
  llvm::errs() << "acc-opt: error: " << message << "\n";
  return failure();
}

/// Resolves --dim, --input and --tie, and checks those that are words; each one
/// that cannot be is told.
static LogicalResult readWords(CompileOptions &options) {
  bool isGood = true;
  auto refuse = [&](const llvm::Twine &message) {
    (void)usageError(message);
    isGood = false;
  };
  for (const std::string &dim : dims) {
    auto [name, size] = StringRef(dim).rsplit('=');
    int64_t value;
    if (name.empty() || size.getAsInteger(10, value) || value < 1)
      refuse("expected --dim name=N with N of at least 1, found '" + dim + "'");
    else if (!options.dims.try_emplace(name, value).second)
      refuse("dimension '" + name + "' is bound twice");
  }
  for (const std::string &input : inputs) {
    auto [name, path] = StringRef(input).split('=');
    if (name.empty() || path.empty())
      refuse("expected --input NAME=FILE, found '" + input + "'");
    else if (!options.inputs.try_emplace(name, path).second)
      refuse("input '" + name + "' is bound twice");
  }
  for (const std::string &tie : ties) {
    auto [first, second] = StringRef(tie).split('=');
    if (first.empty() || second.empty())
      refuse("expected --tie A=B with two names, found '" + tie + "'");
    else
      options.ties.emplace_back(first.str(), second.str());
  }
  if (!dtype.empty() && dtype != "f64")
    refuse("expected --dtype=f64, found '" + dtype + "'");
  options.f64 = dtype == "f64";
  options.hashWeights = hashWeights;
  options.embedWeights = embedWeights;
  if (embedWeights && !StringRef(options.output).ends_with(".accx"))
    refuse("expected an executable, -o FILE.accx, with --embed-weights, found "
           "'" +
           options.output + "'");
  options.originalWeights = originalWeights;
  static constexpr StringLiteral reports[] = {
      "parameters", "memory", "sharding", "collectives", "commands", "scale",
      "decisions",  "stages", "schedule", "scheduler",   "precision"};
  if (!report.empty() && !llvm::is_contained(reports, report))
    refuse("expected --report=parameters, memory, sharding, collectives, "
           "commands, scale, decisions, stages, schedule, scheduler or "
           "precision, found '" +
           report + "'");
  if ((report == "scale") != !links.empty())
    refuse(report == "scale"
               ? "expected --links=FILE with --report=scale: what machines and "
                 "the links between them do in a second"
               : "expected --report=scale with --links");
  if (whatIf && report != "memory")
    refuse("expected --report=memory with --what-if");
  options.whatIf = whatIf;
  if (steps.getNumOccurrences() && report != "scheduler")
    refuse("expected --report=scheduler with --steps");
  // More could not be told apart as numbers of a schedule.
  if (steps.getNumOccurrences() && (steps < 1 || steps > 1000000000000000))
    refuse("expected --steps from 1 to 1000000000000000, found " +
           Twine(steps));
  if (!explain.empty() && explain != "sharding" && explain != "collectives")
    refuse("expected --explain=sharding or collectives, found '" + explain +
           "'");
  if (!explain.empty() && !report.empty())
    refuse("cannot use --report with --explain");
  if (!(report + explain).empty() &&
      StringRef(options.output).ends_with(".accx"))
    refuse("cannot write a report to '" + options.output +
           "': expected another name than of an executable");
  if (!(report + explain).empty() && !compileTo.empty())
    refuse("cannot use --compile-to with --" +
           Twine(report.empty() ? "explain" : "report") +
           ", which compiles as far as it needs");
  options.report = report;
  options.links = links;
  options.explain = explain;
  if (json && (report + explain).empty() && !printsConfig())
    refuse("expected --report with --json: IR is no JSON");
  options.json = json;
  if (!compileTo.empty()) {
    if (std::optional<Phase> phase = accel::symbolizePhase(compileTo))
      options.compileTo = *phase;
    else
      refuse("expected --compile-to=nn, train, dist, decided, local or plan, "
             "found '" +
             compileTo + "'");
  }
  return success(isGood);
}

/// Resolves the flags into options; all that cannot be is told at once.
static LogicalResult readOptions(CompileOptions &options) {
  LogicalResult words = readWords(options);
  options.phases.place.annotate.mesh = mesh;
  if (llvm::Error error = readTrainFlags(options)) {
    // A file may have as many as it has lines; nobody reads them.
    constexpr size_t mostErrors = 100;
    size_t count = 0;
    llvm::handleAllErrors(
        std::move(error),
        [&](const accel::config::ConfigError &located) {
          if (++count > mostErrors)
            return;
          located.log(llvm::errs());
          llvm::errs() << "\n";
        },
        [&](const llvm::ErrorInfoBase &other) {
          if (++count <= mostErrors)
            (void)usageError(other.message());
        });
    if (count > mostErrors)
      (void)usageError("and " + llvm::Twine(count - mostErrors) +
                       " errors more");
    return failure();
  }
  if (failed(words))
    return failure();
  options.phases.train.inference.batchDims.assign(batchDims.begin(),
                                                  batchDims.end());
  options.phases.place.annotate.batchDims.assign(batchDims.begin(),
                                                 batchDims.end());
  options.phases.place.placeNamed.shard.assign(shards.begin(), shards.end());
  options.phases.cut.cuts.assign(cuts.begin(), cuts.end());
  options.provedAgainst.assign(provedAgainst.begin(), provedAgainst.end());
  options.phases.plan.target = target;
  options.phases.plan.threads = threads;
  struct Reader {
    cl::Option *option;
    Phase phase;
  };
  const Reader readers[] = {{std::addressof(dims), Phase::NN},
                            {std::addressof(inputs), Phase::NN},
                            {std::addressof(ties), Phase::NN},
                            {std::addressof(dtype), Phase::NN},
                            {std::addressof(hashWeights), Phase::NN},
                            {std::addressof(originalWeights), Phase::NN},
                            {std::addressof(cuts), Phase::Train},
                            {std::addressof(mesh), Phase::Dist},
                            {std::addressof(batchDims), Phase::Dist},
                            {std::addressof(shards), Phase::Dist},
                            {std::addressof(target), Phase::Plan},
                            {std::addressof(threads), Phase::Plan}};
  for (auto [option, phase] : readers)
    if (option->getNumOccurrences())
      options.given.emplace_back(("--" + option->ArgStr).str(), phase);
  return success();
}

/// mlir-opt proper: IR in, passes, IR out, with all of its options.
static LogicalResult runPasses(const CompileOptions &options,
                               DialectRegistry &registry,
                               MlirOptMainConfig config) {
  std::string error;
  auto input = openText(options.input);
  if (!input)
    return failure();
  auto output = openOutputFile(options.output, &error);
  if (!output)
    return usageError(error);
  LogicalResult result =
      MlirOptMain(output->os(), std::move(input), registry, config);
  if (failed(result)) {
    output->os().clear_error();
    return failure();
  }
  std::string why = keepOutput(*output);
  return why.empty()
             ? success()
             : usageError("cannot write '" + options.output + "': " + why);
}

/// Before anything is done: whether its result can be written, and replaces
/// nothing that it is made of.
static LogicalResult checkOutput(const CompileOptions &options) {
  std::vector<std::string> inputs = configFiles();
  inputs.push_back(options.input);
  inputs.push_back(options.links);
  inputs.insert(inputs.end(), options.provedAgainst.begin(),
                options.provedAgainst.end());
  std::string why = whyNotWrite(
      options.output, StringRef(options.output).ends_with(".accx"), inputs);
  return why.empty()
             ? success()
             : usageError("cannot write '" + options.output + "': " + why);
}

/// Leaves to --help what belongs to acc-opt; LLVM's several hundred options are
/// listed by --help-hidden.
static void hideForeignOptions() {
  for (auto &entry : cl::getRegisteredOptions()) {
    cl::Option *option = entry.second;
    bool isOurs = llvm::any_of(option->Categories, isOurCategory);
    bool isHelp =
        option->ArgStr.starts_with("help") || option->ArgStr == "version";
    if (!isOurs && !isHelp && option->getOptionHiddenFlag() == cl::NotHidden)
      option->setHiddenFlag(cl::Hidden);
  }
}

int main(int argc, char **argv) {
  leaveToLLVM();
  llvm::InitLLVM init(argc, argv);
  if (failed(guardResources()))
    return EXIT_FAILURE;
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << accel::rt::versionText("acc-opt")
       << "compiled with: LLVM and MLIR " LLVM_VERSION_STRING "\n";
  });
  DialectRegistry registry;
  accel::registerAllDialects(registry);
  accel::registerAllPasses();
  std::string header = registerCLIOptions(
      "acc-opt: compiles a model for a mesh of devices\n", registry);
  hideForeignOptions();
  CompileOptions options;
  std::tie(options.input, options.output) = parseCLIOptions(argc, argv, header);
  if (llvm::Error error = checkRepeatedFlags({argv, size_t(argc)})) {
    llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &one) {
      (void)usageError(one.message());
    });
    return EXIT_FAILURE;
  }
  if (failed(readOptions(options)))
    return EXIT_FAILURE;
  // Asked for a configuration only, there need not be a model.
  if (printsConfig() && options.output == "-")
    return EXIT_SUCCESS;
  if (failed(checkOutput(options)))
    return EXIT_FAILURE;
  if (report == "scheduler")
    return failed(reportScheduler(options, steps)) ? EXIT_FAILURE
                                                   : EXIT_SUCCESS;
  auto config = MlirOptMainConfig::createFromCLOptions();
  options.printPipelines = config.shouldDumpPassPipeline();
  options.addUserPasses = [&](PassManager &pm) {
    return config.setupPassPipeline(pm);
  };
  // Whoever says nothing at a terminal wants help, not to type IR.
  if (argc == 1 && llvm::sys::Process::StandardInIsUserInput()) {
    (void)usageError("expected a model, or IR; acc-opt --help says more");
    return EXIT_FAILURE;
  }
  std::string head = readHead(options.input);
  if (isExecutable(head))
    return failed(printPhase(options, !compileTo.empty())) ? EXIT_FAILURE
                                                           : EXIT_SUCCESS;
  bool model = StringRef(options.input).ends_with(".onnx");
  if (!model && failed(checkText(options.input, head)))
    return EXIT_FAILURE;
  // The text of a plan is for pipes and files.
  options.overview = model && options.output == "-" && compileTo.empty() &&
                     report.empty() && explain.empty() &&
                     llvm::outs().is_displayed();
  bool phases = !compileTo.empty() || !report.empty() || !explain.empty() ||
                !options.given.empty();
  bool executable = StringRef(options.output).ends_with(".accx");
  LogicalResult result = model || phases || executable
                             ? compile(options)
                             : runPasses(options, registry, config);
  return failed(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
