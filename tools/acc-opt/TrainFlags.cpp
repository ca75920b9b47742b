// acc-opt's flags of training, and which of them need which others.

#include "TrainFlags.h"
#include "ConfigFlags.h"
#include "FlagCategories.h"
#include "dialects/Dist/ScheduleKind.h"
#include "lib/Config/Settings.h"
#include "lib/Driver/Settings.h"

using namespace accel::driver;
using llvm::StringRef;
namespace cl = llvm::cl;

static cl::opt<bool>
    train("train",
          cl::desc("Compile a training step: gradients, and an optimizer's "
                   "update of the parameters"),
          cl::cat(trainingFlags));
static cl::opt<std::string>
    loss("loss",
         cl::desc("The output to minimise, or cross_entropy:LOGITS,LABELS, "
                  "which adds an input LABELS (int64, -100 is ignored)"),
         cl::value_desc("output"), cl::cat(trainingFlags));
/// Flags keep a reference to their texts.
static const std::string kOptimizerHelp =
    accel::config::describeOptimizers() +
    ", in any letter case (default adamw)";
static cl::opt<std::string> optimizer("optimizer", cl::desc(kOptimizerHelp),
                                      cl::value_desc("name"),
                                      cl::cat(trainingFlags));
static const std::string kSetHelp =
    "Any key of a config file, which it beats, or one of these; repeatable:\n"
    "optimizer.KEY: of the optimizer's own (docs/Optimizers.md): lr, betas, "
    "...\n"
    "groups[PATTERN].KEY: the same, type, or min_lr of the schedule, of the "
    "parameters whose names match\n"
    "optimizer.no_decay=PATTERN,...: parameters that are not decayed; vectors: "
    "those of one dimension, and biases\n"
    "optimizer.decay=PATTERN,...: which are all the same; qk_norms: norms of "
    "queries and keys\n"
    "gradient_clipping: the largest norm of all gradients together\n"
    "scheduler.type: a schedule of transformers, PyTorch, DeepSpeed or "
    "Megatron-LM by its name\n"
    "scheduler.KEY: of the schedule's own (docs/LearningRates.md): "
    "warmup_steps, total_steps, ...\n"
    "schedulers[I].KEY: of the parts of SequentialLR and ChainedScheduler\n"
    "scheduler.weight_decay_incr_style: how the weight decay grows\n"
    "scaler.type: torch, deepspeed, megatron or static: the loss is scaled as "
    "theirs is (docs/Precision.md)\n"
    "scaler.KEY: of the scaler's own: init_scale, growth_interval, ...\n"
    "ema.decay, ema.evaluate: averages of weights\n"
    "seed: of everything random\n" +
    accel::config::describePassSettings();
static cl::list<std::string> settings("set", cl::desc(kSetHelp),
                                      cl::value_desc("key=value"),
                                      cl::cat(trainingFlags));
static cl::opt<int64_t> microBatches(
    "micro-batches",
    cl::desc("Run the batch in M parts, one after another (default 1)"),
    cl::value_desc("M"), cl::init(1), cl::cat(layoutFlags));
static cl::opt<std::string> schedule(
    "schedule",
    cl::desc("How micro-batches follow each other: sequential (default; each "
             "ends before the next begins), gpipe (all forwards, then all "
             "backwards) or 1f1b:D (D in flight); the activations of as many "
             "are kept. Of several stages gpipe, 1f1b (default), eager-1f1b, "
             "interleaved:V, zb-h1, zb-h2, zbv, dualpipev or auto (the fastest "
             "found)"),
    cl::value_desc("name"), cl::init("sequential"), cl::cat(layoutFlags));
static cl::opt<std::string> recompute(
    "recompute",
    cl::desc("What of the activations the backward computes again instead of "
             "keeping it: auto (default; what --memory-budget needs, and "
             "without one as model), model (what its code ran in "
             "torch.utils.checkpoint, as acc-export writes it), none, full "
             "(all layers; full:uniform:N: N "
             "together; full:block:N: the first N of each chunk of a "
             "pipeline), selective[:PART,PART] (parts of layers: core_attn, "
             "the default, layernorm, mlp, mlp_act, moe, moe_act, "
             "shared_experts), or "
             "glob patterns of modules' paths"),
    cl::value_desc("policy"), cl::cat(layoutFlags));
static cl::opt<std::string> memoryBudget(
    "memory-budget",
    cl::desc("What the arenas of a rank may have: bytes, 12GiB, or 80% of what "
             "this machine has for each of its ranks. What the backward "
             "computes again, and what else is auto (--schedule, "
             "offload.KEY, zero.gather_once), is chosen so that it fits and "
             "the step takes the least time"),
    cl::value_desc("bytes"), cl::cat(layoutFlags));
static cl::opt<std::string> mixedPrecision(
    "mixed-precision",
    cl::desc(
        "bf16, fp16: matrix products, convolutions and attention in bfloat16 "
        "or "
        "float16, everything else, weights and moments included, in "
        "float32; fp16 with a scaled loss (--set scaler.type); fp8: as "
        "bf16, but linear layers in 8 bits with scales (--set fp8.recipe)"),
    cl::value_desc("bf16|fp16|fp8"), cl::cat(trainingFlags));
static cl::opt<bool> emitGradients(
    "emit-gradients",
    cl::desc("Return each trained parameter's gradient as <name>.grad"),
    cl::cat(trainingFlags));
enum class Metrics { None, Precision };
static cl::opt<Metrics> metrics(
    "metrics", cl::desc("What else a step measures, for acc-run --metrics"),
    cl::values(clEnumValN(Metrics::Precision, "precision",
                          "of each tensor that is rounded to float16 or 8 bits "
                          "its largest magnitude and scale, and how many "
                          "elements overflow and vanish")),
    cl::cat(trainingFlags));
static cl::opt<bool> rowMask(
    "row-mask",
    cl::desc("Give the step an input row_mask of the rows that count, for a "
             "smaller last batch of an epoch (acc-run --last-batch=keep) where "
             "the model makes the loss"),
    cl::cat(trainingFlags));
static cl::list<std::string> entries(
    "entries",
    cl::desc("What the program can be called for: step, which is always "
             "there, eval (the loss alone) and forward (the model's outputs); "
             "all three unless given, and fewer compile faster"),
    cl::value_desc("step,eval,forward"), cl::CommaSeparated,
    cl::cat(modelFlags));
static cl::list<std::string> evalOutputs(
    "eval-outputs",
    cl::desc("Outputs of the model that the entry eval gives beside the loss"),
    cl::value_desc("names"), cl::CommaSeparated, cl::cat(modelFlags));
static cl::list<std::string> trainable(
    "trainable",
    cl::desc("Train what this glob pattern matches, by name or alias, also "
             "where --frozen matches; repeatable"),
    cl::value_desc("pattern"), cl::cat(trainingFlags));
static cl::list<std::string>
    frozen("frozen",
           cl::desc("Do not train what this glob pattern matches; "
                    "repeatable"),
           cl::value_desc("pattern"), cl::cat(trainingFlags));
static cl::opt<bool> allowFolded(
    "allow-folded",
    cl::desc("Hold parameters constant of which the exporter folded a use "
             "into a constant, instead of refusing the model"),
    cl::cat(modelFlags));

namespace {
enum class BatchNorms { Train, Frozen };
} // namespace
static cl::opt<BatchNorms> batchNorm(
    "batch-norm",
    cl::desc("Whether batch norms are trained; as the model was exported, "
             "unless given"),
    cl::values(clEnumValN(BatchNorms::Train, "train",
                          "by statistics of the batch, and keep running ones, "
                          "as after train() in PyTorch"),
               clEnumValN(BatchNorms::Frozen, "frozen",
                          "by their running statistics, which stay as they "
                          "are, as after eval()")),
    cl::cat(modelFlags));

static llvm::Error failTraining(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// What becomes part of the module.
static void describeConfig(const accel::config::Config &config,
                           CompileOptions &options) {
  for (const accel::config::Resolved &one : config.resolved)
    options.config.emplace_back(one.name,
                                one.value + " (" + one.origin.str() + ")");
  for (const accel::config::Setting &one : config.keys)
    options.configKeys.push_back(accel::config::describeKey(one));
  if (!config.batchSize)
    return;
  auto &[rows, origin] = *config.batchSize;
  options.batchSize = {rows, origin.place.isFile() ? origin.place.file : "",
                       origin.place.line};
}

/// What the flags and files come to, in `options`.
static llvm::Error resolveFlags(CompileOptions &options) {
  accel::config::Request request;
  request.sets.assign(settings.begin(), settings.end());
  request.mesh = options.phases.place.annotate.mesh;
  if (microBatches.getNumOccurrences())
    request.microBatches = microBatches;
  // Another one is refused when all flags are looked at.
  if (schedule.getNumOccurrences() && isSchedule(schedule))
    request.schedule = schedule;
  if (recompute.getNumOccurrences()) {
    if (llvm::Error error = checkRecompute(recompute))
      return error;
    request.recompute = recompute;
  }
  if (memoryBudget.getNumOccurrences()) {
    if (llvm::Error error = checkMemoryBudget(memoryBudget))
      return error;
    request.memoryBudget = memoryBudget;
  }
  if (!mixedPrecision.empty())
    request.mixedPrecision = mixedPrecision;
  if (!optimizer.empty())
    request.optimizer = optimizer;
  llvm::Expected<accel::config::Config> config =
      readConfigFlags(std::move(request), options.json);
  if (!config)
    return config.takeError();
  if (printsConfig() && options.output == "-")
    return llvm::Error::success();
  if (config->missing)
    return accel::config::failAt(config->missing->first,
                                 config->missing->second);
  for (const accel::config::Override &one : config->overrides)
    llvm::errs() << "acc-opt: note: --set " << one.name << "=" << one.value
                 << " beats " << one.beaten << " (" << one.place.str() << ")\n";
  accel::autodiff::TrainOptions &into = options.phases.train;
  into.step.optimizer = config->optimizer;
  into.step.settings.assign(config->settings.begin(), config->settings.end());
  into.mixedPrecision = config->mixedPrecision;
  if (hasConfigFiles())
    describeConfig(*config, options);
  options.phases.place.annotate.mesh = config->mesh;
  options.phases.place.annotate.microBatches = config->microBatches;
  for (auto &[name, value] : config->ofPasses)
    if (llvm::Error error = applySetting(options.phases, name, value))
      return error;
  for (const std::string &one : settings)
    if (llvm::Error error = checkIsRead(options.phases, one))
      return error;
  return checkTogether(options.phases);
}

llvm::Error readTrainFlags(CompileOptions &options) {
  accel::autodiff::TrainOptions &into = options.phases.train;
  into.enabled = train;
  into.step.loss = loss;
  options.phases.decide.schedule = schedule;
  if (llvm::Error error = resolveFlags(options))
    return error;
  if (printsConfig() && options.output == "-")
    return llvm::Error::success();
  // It is of the settings alone, whatever else would be compiled.
  if (options.report == "scheduler")
    return llvm::Error::success();
  into.step.trainable.assign(trainable.begin(), trainable.end());
  into.step.frozen.assign(frozen.begin(), frozen.end());
  into.step.emitGradients = emitGradients;
  options.phases.measuresRounding = metrics == Metrics::Precision;
  into.rowMask = rowMask;
  into.inference.entries.assign(entries.begin(), entries.end());
  into.inference.evalOutputs.assign(evalOutputs.begin(), evalOutputs.end());
  into.allowFolded = allowFolded;
  if (batchNorm.getNumOccurrences())
    into.trainsBatchNorms = batchNorm == BatchNorms::Train;

  // Without --train of parameters alone: the other reports are of what is
  // compiled.
  bool reports = options.report == "parameters" && !train;
  bool isModel = StringRef(options.input).ends_with(".onnx");
  struct Flag {
    cl::Option *option;
    /// The last phase that reads it.
    Phase phase;
    bool inReport;
  };
  const Flag flags[] = {{std::addressof(train), Phase::Train, false},
                        {std::addressof(loss), Phase::Train, false},
                        {std::addressof(optimizer), Phase::Train, false},
                        {std::addressof(settings), Phase::Train, false},
                        {std::addressof(mixedPrecision), Phase::Train, false},
                        {std::addressof(emitGradients), Phase::Train, false},
                        {std::addressof(metrics), Phase::Train, false},
                        {std::addressof(rowMask), Phase::NN, false},
                        {std::addressof(entries), Phase::Train, false},
                        {std::addressof(evalOutputs), Phase::Train, false},
                        {std::addressof(trainable), Phase::Train, true},
                        {std::addressof(frozen), Phase::Train, true},
                        {std::addressof(allowFolded), Phase::NN, true},
                        {std::addressof(batchNorm), Phase::NN, false},
                        {std::addressof(microBatches), Phase::Dist, false},
                        {std::addressof(schedule), Phase::Decided, false},
                        {std::addressof(recompute), Phase::Decided, false},
                        {std::addressof(memoryBudget), Phase::Decided, false}};
  llvm::Error errors = llvm::Error::success();
  auto refuse = [&](const llvm::Twine &message) {
    errors = joinErrors(std::move(errors), failTraining(message));
  };
  for (auto [option, phase, inReport] : flags) {
    if (!option->getNumOccurrences())
      continue;
    std::string name = ("--" + option->ArgStr).str();
    options.given.emplace_back(name, phase);
    if (reports && !inReport)
      refuse("cannot use '" + name +
             "' with --report=parameters without --train");
    // A step that is a step already can be cut into micro-batches.
    if (!reports && !train && (isModel || phase == Phase::Train))
      refuse("expected --train with '" + name + "'");
  }
  if (hasConfigFiles() && !train)
    refuse("expected --train with '--config'");
  if (!isSchedule(schedule))
    refuse("expected --schedule=" + accel::dist::ScheduleKind::getNames() +
           ", found '" + schedule + "'");
  // The codes of fp8 are what they are, whatever is computed of them.
  if (train && options.f64 && !into.mixedPrecision.empty() &&
      into.mixedPrecision != "fp8")
    refuse("cannot use --mixed-precision=" + into.mixedPrecision +
           " with --dtype=f64");
  return joinErrors(std::move(errors), checkTrainOptions(into));
}
