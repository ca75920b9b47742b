// acc-opt's flags of training, and which of them need which others.

#include "TrainFlags.h"

using namespace accel::driver;
using llvm::StringRef;
namespace cl = llvm::cl;

static cl::opt<bool>
    train("train",
          cl::desc("Compile a training step: gradients, and an optimizer's "
                   "update of the parameters"),
          cl::cat(category));
static cl::opt<std::string>
    loss("loss",
         cl::desc("The output to minimise, or cross_entropy:LOGITS,LABELS, "
                  "which adds an input LABELS (int64, -100 is ignored)"),
         cl::value_desc("output"), cl::cat(category));
static cl::opt<std::string> optimizer("optimizer",
                                      cl::desc("adamw (default), adam or sgd"),
                                      cl::value_desc("name"),
                                      cl::cat(category));
static cl::list<std::string> settings(
    "set",
    cl::desc("A setting of the update, by PyTorch's names: optimizer.lr, "
             "optimizer.betas, optimizer.eps, optimizer.weight_decay, "
             "optimizer.momentum, gradient_clipping, "
             "scheduler.type=constant|linear, scheduler.warmup_steps, "
             "scheduler.total_steps, seed; and how ranks share the states: "
             "zero_stage=0..3, zero.gather_once=true|false; repeatable"),
    cl::value_desc("key=value"), cl::cat(category));
static cl::opt<int64_t> microBatches(
    "micro-batches",
    cl::desc("Run the batch in M parts, one after another (default 1)"),
    cl::value_desc("M"), cl::init(1), cl::cat(category));
static cl::opt<std::string> mixedPrecision(
    "mixed-precision",
    cl::desc("bf16: matrix products and attention in bfloat16, everything "
             "else, weights and moments included, in float32"),
    cl::value_desc("bf16"), cl::cat(category));
static cl::opt<bool> emitGradients(
    "emit-gradients",
    cl::desc("Return each trained parameter's gradient as <name>.grad"),
    cl::cat(category));
static cl::list<std::string> trainable(
    "trainable",
    cl::desc("Train what this glob pattern matches, by name or alias, also "
             "where --frozen matches; repeatable"),
    cl::value_desc("pattern"), cl::cat(category));
static cl::list<std::string>
    frozen("frozen",
           cl::desc("Do not train what this glob pattern matches; "
                    "repeatable"),
           cl::value_desc("pattern"), cl::cat(category));

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Takes the settings that say how states are sharded out of `settings`.
static llvm::Error readSharding(std::vector<std::string> &settings,
                                accel::parallel::StateSharding &into) {
  std::vector<std::string> others;
  bool once = false;
  for (const std::string &setting : settings) {
    auto [key, value] = StringRef(setting).split('=');
    if (key == "zero_stage") {
      if (value.getAsInteger(10, into.stage) || into.stage < 0 ||
          into.stage > 3)
        return fail("expected 0, 1, 2 or 3 as 'zero_stage', found '" + value +
                    "'");
    } else if (key == "zero.gather_once") {
      if (value != "true" && value != "false")
        return fail("expected true or false as 'zero.gather_once', found '" +
                    value + "'");
      into.gatherOnce = value == "true";
      once = true;
    } else {
      others.push_back(setting);
    }
  }
  if (once && into.stage != 3)
    return fail("expected 'zero_stage=3' with 'zero.gather_once': only there "
                "parameters are gathered");
  settings = std::move(others);
  return llvm::Error::success();
}

llvm::Error readTrainFlags(CompileOptions &options) {
  accel::autodiff::TrainOptions &into = options.phases.train;
  into.enabled = train;
  into.loss = loss;
  into.optimizer = optimizer;
  into.settings.assign(settings.begin(), settings.end());
  if (llvm::Error error = readSharding(into.settings, options.phases.sharding))
    return error;
  into.trainable.assign(trainable.begin(), trainable.end());
  into.frozen.assign(frozen.begin(), frozen.end());
  into.emitGradients = emitGradients;
  into.mixedPrecision = mixedPrecision;
  into.microBatches = microBatches;

  bool reports = !options.report.empty();
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
                        {std::addressof(trainable), Phase::Train, true},
                        {std::addressof(frozen), Phase::Train, true},
                        {std::addressof(microBatches), Phase::Dist, false}};
  for (auto [option, phase, inReport] : flags) {
    if (!option->getNumOccurrences())
      continue;
    std::string name = ("--" + option->ArgStr).str();
    options.given.emplace_back(name, phase);
    if (reports && !inReport)
      return fail("cannot use '" + name + "' with --report");
    // A step that is a step already can be cut into micro-batches.
    if (!reports && !train && (isModel || phase == Phase::Train))
      return fail("expected --train with '" + name + "'");
  }
  if (train && options.f64 && !mixedPrecision.empty())
    return fail("cannot use --mixed-precision with --dtype=f64");
  return checkTrainOptions(into);
}
