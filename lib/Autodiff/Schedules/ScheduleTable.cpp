// The table of schedules. Names, keys and their values where nothing is said
// are those of the original that each file names; `num_warmup_steps` and the
// like are without their `num_`.

#include "lib/Autodiff/Schedules/ScheduleTable.h"
#include "lib/Autodiff/Schedules/Builders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::autodiff;
using Type = ScheduleKey::Type;

static constexpr ScheduleKey required(ScheduleKey key) {
  key.isRequired = true;
  return key;
}
static constexpr ScheduleKey
whole(StringLiteral name, std::optional<double> first = {}, int64_t least = 1) {
  return {name, Type::Count, first, false, least};
}
static constexpr ScheduleKey rate(StringLiteral name,
                                  std::optional<double> first = {}) {
  return {name, Type::NonNegative, first};
}
static constexpr ScheduleKey share(StringLiteral name,
                                   std::optional<double> first = {}) {
  return {name, Type::Share, first};
}
static constexpr ScheduleKey positive(StringLiteral name,
                                      std::optional<double> first = {}) {
  return {name, Type::Positive, first};
}
static constexpr ScheduleKey flag(StringLiteral name, bool first) {
  return {name, Type::Flag, double(first)};
}
static constexpr ScheduleKey momentum(StringLiteral name, double first) {
  return {name, Type::Fraction, first};
}
static constexpr ScheduleKey word(StringLiteral name, double first,
                                  ArrayRef<StringLiteral> words) {
  return {name, Type::Word, first, false, 1, words};
}

static constexpr StringLiteral kWarmups[] = {"linear", "log"};
static constexpr StringLiteral kShapes[] = {"linear", "cosine", "1-sqrt"};
static constexpr StringLiteral kModes[] = {"triangular", "triangular2",
                                           "exp_range"};
static constexpr StringLiteral kStrategies[] = {"cos", "linear"};
static constexpr StringLiteral kStyles[] = {"exponential", "linear", "cosine",
                                            "minus_sqrt"};

static constexpr ScheduleKey kWarmupSteps = whole("warmup_steps", 0, 0);
static constexpr ScheduleKey kTotal = required(whole("total_steps"));
static constexpr ScheduleKey kCycles = positive("num_cycles", 0.5);
static constexpr ScheduleKey kFirst = rate("warmup_min_lr", 0);
static constexpr ScheduleKey kLeast = rate("min_lr", 0);

static constexpr ScheduleKey kConstant[] = {word("warmup", 0, kWarmups),
                                            kWarmupSteps, kFirst};
static constexpr ScheduleKey kConstantWithWarmup[] = {
    word("warmup", 0, kWarmups), required(whole("warmup_steps")), kFirst};
static constexpr ScheduleKey kLinear[] = {word("warmup", 0, kWarmups),
                                          kWarmupSteps, whole("total_steps"),
                                          kFirst, kLeast};
static constexpr ScheduleKey kCosine[] = {
    word("warmup", 0, kWarmups), kWarmupSteps, kTotal, kFirst, kLeast, kCycles};
static constexpr ScheduleKey kRestarts[] = {kWarmupSteps, kTotal,
                                            whole("num_cycles", 1)};
static constexpr ScheduleKey kPolynomial[] = {
    kWarmupSteps, kTotal, rate("lr_end", 1e-7), positive("power", 1)};
static constexpr ScheduleKey kInverseSqrt[] = {kWarmupSteps,
                                               whole("timescale")};
static constexpr ScheduleKey kCosineMinLr[] = {
    kWarmupSteps, kTotal, kCycles, rate("min_lr"), share("min_lr_rate")};
static constexpr ScheduleKey kCosineWarmupMinLr[] = {kWarmupSteps,
                                                     kTotal,
                                                     kCycles,
                                                     rate("min_lr"),
                                                     share("min_lr_rate"),
                                                     share("warmup_lr_rate")};
static constexpr ScheduleKey kWarmupStableDecay[] = {
    kWarmupSteps,
    required(whole("decay_steps", {}, 0)),
    whole("total_steps"),
    whole("stable_steps", {}, 0),
    word("warmup_type", 0, kShapes),
    word("decay_type", 1, kShapes),
    share("min_lr_ratio", 0),
    kCycles};

static constexpr ScheduleKey kMilestones = {
    "milestones", Type::Counts, {}, true};
static constexpr ScheduleKey kStep[] = {required(whole("step_size")),
                                        rate("gamma", 0.1)};
static constexpr ScheduleKey kMultiStep[] = {kMilestones, rate("gamma", 0.1)};
static constexpr ScheduleKey kExponential[] = {required(rate("gamma"))};
static constexpr ScheduleKey kConstantFactor[] = {share("factor", 1. / 3),
                                                  whole("total_iters", 5)};
static constexpr ScheduleKey kLinearFactor[] = {share("start_factor", 1. / 3),
                                                share("end_factor", 1),
                                                whole("total_iters", 5)};
static constexpr ScheduleKey kPolynomialFactor[] = {whole("total_iters", 5),
                                                    positive("power", 1)};
static constexpr ScheduleKey kAnnealing[] = {required(whole("T_max")),
                                             rate("eta_min", 0)};
static constexpr ScheduleKey kWarmRestarts[] = {
    required(whole("T_0")), whole("T_mult", 1), rate("eta_min", 0)};
static constexpr ScheduleKey kCyclic[] = {
    required(rate("base_lr")),    rate("max_lr"),
    whole("step_size_up", 2000),  whole("step_size_down"),
    word("mode", 0, kModes),      positive("gamma", 1),
    flag("cycle_momentum", true), momentum("base_momentum", 0.8),
    momentum("max_momentum", 0.9)};
static constexpr ScheduleKey kOneCycleLR[] = {
    kTotal,
    rate("max_lr"),
    share("pct_start", 0.3),
    word("anneal_strategy", 0, kStrategies),
    flag("cycle_momentum", true),
    momentum("base_momentum", 0.85),
    momentum("max_momentum", 0.95),
    positive("div_factor", 25),
    positive("final_div_factor", 1e4),
    flag("three_phase", false)};
static constexpr ScheduleKey kSequence[] = {kMilestones};

static constexpr ScheduleKey kDeepSpeedSteps = whole("warmup_steps", 1000, 0);
static constexpr ScheduleKey kDeepSpeedWarmup = word("warmup", 1, kWarmups);
static constexpr ScheduleKey kWarmupLR[] = {kDeepSpeedWarmup, kDeepSpeedSteps,
                                            kFirst};
static constexpr ScheduleKey kWarmupDecayLR[] = {
    kDeepSpeedWarmup, kDeepSpeedSteps, kTotal, kFirst};
static constexpr ScheduleKey kWarmupCosineLR[] = {
    kDeepSpeedWarmup, kDeepSpeedSteps, kTotal, rate("warmup_min_ratio", 0),
    rate("cos_min_ratio", 1e-4)};
static constexpr ScheduleKey kRangeTest[] = {
    rate("lr_range_test_min_lr", 1e-3), whole("lr_range_test_step_size", 2000),
    rate("lr_range_test_step_rate", 1), flag("lr_range_test_staircase", false)};
static constexpr ScheduleKey kOneCycle[] = {
    required(rate("cycle_min_lr")),
    rate("cycle_max_lr"),
    rate("decay_lr_rate", 0),
    whole("cycle_first_step_size", 2000),
    whole("cycle_second_step_size", {}, 0),
    whole("cycle_first_stair_count", 0, 0),
    whole("cycle_second_stair_count", {}, 0),
    whole("decay_step_size", 0, 0),
    flag("cycle_momentum", true),
    momentum("cycle_min_mom", 0.8),
    momentum("cycle_max_mom", 0.9),
    {"decay_mom_rate", Type::Signed, 0}};

static constexpr ScheduleKey kInverseSquareRoot[] = {kWarmupSteps, kTotal,
                                                     kFirst, kLeast};
static constexpr ScheduleKey kWSD[] = {kWarmupSteps,
                                       kTotal,
                                       kFirst,
                                       kLeast,
                                       required(whole("wsd_decay_steps")),
                                       word("lr_wsd_decay_style", 0, kStyles)};

static constexpr StringLiteral kTransformers = "transformers'",
                               kTorch = "PyTorch's", kDeepSpeed = "DeepSpeed's",
                               kMegatron = "Megatron-LM's";

/// Of PyTorch's whose rate is optimizer.lr times a factor.
static constexpr ScheduleKind
factor(StringLiteral name, ArrayRef<ScheduleKey> keys, BuildCourse build) {
  ScheduleKind kind{name, kTorch, keys, build};
  kind.isFactor = true;
  return kind;
}
/// Of PyTorch's with a rate of each group's own.
static constexpr ScheduleKind ofGroups(StringLiteral name,
                                       ArrayRef<ScheduleKey> keys,
                                       BuildCourse build,
                                       CheckSchedule check = nullptr) {
  ScheduleKind kind{name, kTorch, keys, build, check};
  kind.groups = GroupRates::Own;
  return kind;
}
static constexpr ScheduleKind
late(StringLiteral name, ArrayRef<ScheduleKey> keys, BuildCourse build) {
  return {name, kDeepSpeed, keys, build, checkDeepSpeedWarmup, Clock::Late};
}
/// Whose rate is not made of optimizer.lr.
static constexpr ScheduleKind setting(ScheduleKind kind,
                                      BuildCourse momentum = nullptr) {
  kind.setsRate = true;
  kind.momentum = momentum;
  return kind;
}

static constexpr ScheduleKind kKinds[] = {
    {"constant", kTransformers, kConstant, buildConstant, checkWarmup},
    {"constant_with_warmup", kTransformers, kConstantWithWarmup, buildConstant,
     checkWarmup},
    {"linear", kTransformers, kLinear, buildLinear, checkLinear},
    {"cosine", kTransformers, kCosine, buildCosine, checkWarmup},
    {"cosine_with_restarts", kTransformers, kRestarts, buildCosineRestarts,
     [](ScheduleRule &rule, double) { return checkLengths(rule); }},
    {"polynomial", kTransformers, kPolynomial, buildPolynomial,
     checkPolynomial},
    {"inverse_sqrt", kTransformers, kInverseSqrt, buildInverseSqrt},
    {"cosine_with_min_lr", kTransformers, kCosineMinLr, buildCosineMinLr,
     checkCosineMinLr},
    {"cosine_warmup_with_min_lr", kTransformers, kCosineWarmupMinLr,
     buildCosineWarmupMinLr, checkCosineMinLr},
    {"warmup_stable_decay", kTransformers, kWarmupStableDecay,
     buildWarmupStableDecay, checkWarmupStableDecay},
    factor("StepLR", kStep, buildStepLR),
    factor("MultiStepLR", kMultiStep, buildMultiStepLR),
    factor("ConstantLR", kConstantFactor, buildConstantLR),
    factor("LinearLR", kLinearFactor, buildLinearLR),
    factor("ExponentialLR", kExponential, buildExponentialLR),
    factor("PolynomialLR", kPolynomialFactor, buildPolynomialLR),
    ofGroups("CosineAnnealingLR", kAnnealing, buildCosineAnnealingLR),
    ofGroups("CosineAnnealingWarmRestarts", kWarmRestarts, buildWarmRestarts),
    setting({"CyclicLR", kTorch, kCyclic, buildCyclicRate, checkCyclic},
            buildCyclicMomentum),
    setting({"OneCycleLR", kTorch, kOneCycleLR, buildOneCycleLRRate,
             checkOneCycleLR},
            buildOneCycleLRMomentum),
    ofGroups("ChainedScheduler", {}, buildChain, checkChain),
    ofGroups("SequentialLR", kSequence, buildSequence, checkSequence),
    setting({"LRRangeTest", kDeepSpeed, kRangeTest, buildLRRangeTest}),
    setting({"OneCycle", kDeepSpeed, kOneCycle, buildDeepSpeedCycleRate,
             checkDeepSpeedCycle},
            buildDeepSpeedCycleMomentum),
    late("WarmupLR", kWarmupLR, buildWarmupLR),
    late("WarmupDecayLR", kWarmupDecayLR, buildWarmupDecayLR),
    late("WarmupCosineLR", kWarmupCosineLR, buildWarmupCosineLR),
    {"inverse-square-root", kMegatron, kInverseSquareRoot,
     buildInverseSquareRoot, checkWSD},
    {"WSD", kMegatron, kWSD, buildWSD, checkWSD},
};

ArrayRef<ScheduleKind> accel::autodiff::scheduleKinds() { return kKinds; }

const ScheduleKind *accel::autodiff::findSchedule(StringRef name) {
  const ScheduleKind *found = find_if(
      kKinds, [&](const ScheduleKind &kind) { return kind.name == name; });
  return found == std::end(kKinds) ? nullptr : found;
}

const ScheduleKey *ScheduleKind::find(StringRef key) const {
  const ScheduleKey *found =
      find_if(keys, [&](const ScheduleKey &one) { return one.name == key; });
  return found == keys.end() ? nullptr : found;
}

bool accel::autodiff::isScheduleKey(StringRef key) {
  return any_of(kKinds, [&](const ScheduleKind &kind) {
    return kind.find(key) != nullptr;
  });
}

static std::string joinWords(ArrayRef<StringRef> words) {
  if (words.size() == 1)
    return words.front().str();
  return (join(words.drop_back(), ", ") + " or " + words.back()).str();
}

std::string accel::autodiff::joinReaders(StringRef key) {
  SmallVector<StringRef> names;
  for (const ScheduleKind &kind : kKinds)
    if (kind.find(key))
      names.push_back(kind.name);
  return joinWords(names);
}

namespace {
/// A schedule of others that cannot be one of a compiled step.
struct Refused {
  StringLiteral name, why;
};
} // namespace

static constexpr StringLiteral kByMetric =
    "its rate follows from a metric of the run, and a compiled step knows its "
    "number alone: train with --optimizer and scheduler.type=constant, and "
    "compile again with another optimizer.lr to go on from a checkpoint, or "
    "say "
    "a schedule of the step";
static constexpr StringLiteral kByFunction =
    "its rate is a function in Python, which no file and no flag can say: "
    "MultiStepLR, or SequentialLR of several schedules, have rates by steps";

static constexpr Refused kRefused[] = {
    {"ReduceLROnPlateau", kByMetric},
    {"reduce_lr_on_plateau", kByMetric},
    {"greedy", kByMetric},
    {"GreedyLR", kByMetric},
    {"LambdaLR", kByFunction},
    {"MultiplicativeLR", kByFunction},
    {"SWALR", "it ends a schedule at a constant rate: SequentialLR of the "
              "schedule and ConstantLR has such rates"}};

Error accel::autodiff::refuseSchedule(StringRef key, StringRef name) {
  for (const Refused &one : kRefused)
    if (one.name == name)
      return failSchedule("'" + key + "=" + name +
                          "' is not supported: " + one.why);
  SmallVector<StringRef> names;
  for (const ScheduleKind &kind : kKinds)
    names.push_back(kind.name);
  return failSchedule("expected " + joinWords(names) + " as '" + key +
                      "', found '" + name + "'");
}

double ScheduleValues::get(StringRef name) const {
  auto found = values.find(name.str());
  assert(found != values.end() && "of another schedule, or not said");
  return found->second.front();
}

ArrayRef<double> ScheduleValues::list(StringRef name) const {
  auto found = values.find(name.str());
  assert(found != values.end() && "of another schedule, or not said");
  return found->second;
}
