// The scalers to the letter, as scalar ops: torch/amp/grad_scaler.py,
// deepspeed/runtime/fp16/loss_scaler.py, megatron/core/optimizer/
// grad_scaler.py. One thing is ours: a scale that would become infinite stays,
// as PyTorch's does.

#include "LossScaler.h"

#include "lib/Autodiff/OptionError.h"
#include "lib/Names/Nearest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

namespace {
struct Kind {
  StringLiteral name;
  ScalerRule defaults;
};

/// A key, and by whom it is read: a bit for each ScalerKind.
struct ScalerKey {
  StringLiteral name;
  unsigned readers;
  StringLiteral what; ///< that is expected
  bool (*read)(StringRef, ScalerRule &);
};
} // namespace

static ScalerRule makeRule(ScalerKind kind, double initScale,
                           int64_t growthInterval) {
  ScalerRule rule;
  rule.kind = kind;
  rule.initScale = initScale;
  rule.growthInterval = growthInterval;
  return rule;
}

static ArrayRef<Kind> scalerKinds() {
  static const Kind kinds[] = {
      {"none", makeRule(ScalerKind::None, 1, 0)},
      {"torch", makeRule(ScalerKind::Torch, 0x1p16, 2000)},
      {"deepspeed", makeRule(ScalerKind::DeepSpeed, 0x1p16, 1000)},
      {"megatron", makeRule(ScalerKind::Megatron, 0x1p32, 1000)},
      {"static", makeRule(ScalerKind::Static, 1, 0)}};
  return kinds;
}

/// A scale is an f32.
static bool readScale(StringRef text, double &into) {
  double number;
  if (text.getAsDouble(number) || !(number > 0) ||
      !std::isfinite(static_cast<float>(number)))
    return false;
  into = number;
  return true;
}

static bool readFactor(StringRef text, double least, double most,
                       double &into) {
  double number;
  if (text.getAsDouble(number) || !(number > least && number < most))
    return false;
  into = number;
  return true;
}

static bool readScalerCount(StringRef text, int64_t &into) {
  int64_t number;
  if (text.getAsInteger(10, number) || number < 1)
    return false;
  into = number;
  return true;
}

static constexpr unsigned bit(ScalerKind kind) {
  return 1u << static_cast<unsigned>(kind);
}
static constexpr unsigned kDynamic = bit(ScalerKind::Torch) |
                                     bit(ScalerKind::DeepSpeed) |
                                     bit(ScalerKind::Megatron);
static constexpr unsigned kPatient =
    bit(ScalerKind::DeepSpeed) | bit(ScalerKind::Megatron);
static constexpr double kAny = std::numeric_limits<double>::infinity();

static constexpr ScalerKey kScalerKeys[] = {
    {"init_scale", kDynamic | bit(ScalerKind::Static), "a scale above 0",
     [](StringRef s, ScalerRule &r) { return readScale(s, r.initScale); }},
    {"growth_factor", kDynamic, "a factor above 1",
     [](StringRef s, ScalerRule &r) {
       return readFactor(s, 1, kAny, r.growthFactor);
     }},
    {"backoff_factor", bit(ScalerKind::Torch) | bit(ScalerKind::Megatron),
     "a factor between 0 and 1",
     [](StringRef s, ScalerRule &r) {
       return readFactor(s, 0, 1, r.backoffFactor);
     }},
    {"growth_interval", kDynamic, "a count of steps of at least 1",
     [](StringRef s, ScalerRule &r) {
       return readScalerCount(s, r.growthInterval);
     }},
    {"hysteresis", kPatient, "a count of overflows of at least 1",
     [](StringRef s, ScalerRule &r) {
       return readScalerCount(s, r.hysteresis);
     }},
    {"consecutive_hysteresis", bit(ScalerKind::DeepSpeed), "true or false",
     [](StringRef s, ScalerRule &r) {
       r.consecutiveHysteresis = s == "true";
       return s == "true" || s == "false";
     }},
    {"min_scale", kPatient, "a scale above 0",
     [](StringRef s, ScalerRule &r) { return readScale(s, r.minScale); }},
};

SmallVector<StringRef> accel::autodiff::scalerKeys() {
  SmallVector<StringRef> names{"type"};
  for (const ScalerKey &key : kScalerKeys)
    names.push_back(key.name);
  return names;
}

llvm::Expected<ScalerRule> accel::autodiff::parseScalerRule(
    ArrayRef<std::pair<StringRef, StringRef>> settings) {
  ScalerRule rule;
  StringRef type = "none";
  llvm::StringSet<> seen;
  for (auto [key, value] : settings) {
    if (!seen.insert(key).second)
      return fail("key 'scaler." + key + "' is set twice");
    if (key != "type")
      continue;
    type = value;
    auto *kind = llvm::find_if(
        scalerKinds(), [&](const Kind &one) { return one.name == type; });
    if (kind == scalerKinds().end())
      return fail("expected none, torch, deepspeed, megatron or static as "
                  "'scaler.type', found '" +
                  value + "'");
    rule = kind->defaults;
  }
  for (const auto &[setting, value] : settings) {
    StringRef name = setting;
    if (name == "type")
      continue;
    auto *key = llvm::find_if(
        kScalerKeys, [&](const ScalerKey &one) { return one.name == name; });
    if (key == std::end(kScalerKeys)) {
      SmallVector<StringRef> names = scalerKeys();
      return fail("unknown key 'scaler." + name + "'" +
                  suggestName(name, names));
    }
    if (!(key->readers & bit(rule.kind))) {
      SmallVector<StringRef> readers;
      for (const Kind &kind : scalerKinds())
        if (key->readers & bit(kind.defaults.kind))
          readers.push_back(kind.name);
      return fail("expected 'scaler.type' " + llvm::join(readers, " or ") +
                  " with 'scaler." + name + "', found " + type);
    }
    if (!key->read(value, rule))
      return fail("expected " + key->what + " as 'scaler." + name +
                  "', found '" + value + "'");
  }
  if (rule.kind == ScalerKind::Static && !seen.contains("init_scale"))
    return fail("expected 'scaler.init_scale' with 'scaler.type' static: the "
                "scale of all steps");
  return rule;
}

//===----------------------------------------------------------------------===//
// What is built
//===----------------------------------------------------------------------===//

SmallVector<LossScaler::State> LossScaler::getStates() const {
  SmallVector<State> states{{"scaler/scale", true, rule.initScale}};
  auto count = [&](StringLiteral name, double first) {
    states.push_back({name, false, first});
  };
  auto patience = static_cast<double>(rule.hysteresis);
  switch (rule.kind) {
  case ScalerKind::None:
  case ScalerKind::Static:
    break;
  case ScalerKind::Torch:
    count("scaler/growth_tracker", 0);
    break;
  case ScalerKind::DeepSpeed:
    count("scaler/iteration", 0);
    count("scaler/last_overflow", -1);
    count("scaler/hysteresis", patience);
    break;
  case ScalerKind::Megatron:
    count("scaler/growth_tracker", 0);
    count("scaler/hysteresis", patience);
    break;
  }
  return states;
}

Value LossScaler::scaleLoss(const NNBuilder &build, Value loss,
                            Value scale) const {
  return build.mul(loss, build.like(scale, loss));
}

Value LossScaler::getInverse(const NNBuilder &build, Value scale) const {
  Value wide = build.cast(scale, build.builder.getF64Type());
  return build.cast(build.div(build.f64(1), wide), build.builder.getF32Type());
}

Value LossScaler::grow(const NNBuilder &build, Value scale) const {
  Value grown = build.scale(scale, rule.growthFactor);
  return build.select(build.isFinite(grown), grown, scale);
}

LossScaler::Updated LossScaler::updateTorch(const NNBuilder &build,
                                            ValueRange states,
                                            Value found) const {
  Value scale = states[0], zero = build.i64(0);
  Value clean = build.add(states[1], build.i64(1));
  Value isDue = build.compare(nn::ComparePredicate::eq, clean,
                              build.i64(rule.growthInterval));
  return {{build.select(found, build.scale(scale, rule.backoffFactor),
                        build.select(isDue, grow(build, scale), scale)),
           build.select(found, zero, build.select(isDue, zero, clean))},
          nullptr};
}

/// DynamicLossScaler: grows when the steps since the last overflow are a
/// multiple of the window, which the first step is not counted among.
LossScaler::Updated LossScaler::updateDeepSpeed(const NNBuilder &build,
                                                ValueRange states,
                                                Value found) const {
  Value scale = states[0], iteration = states[1], last = states[2],
        patience = states[3];
  Value full = build.i64(rule.hysteresis);
  Value isSpent =
      build.compare(nn::ComparePredicate::le, patience, build.i64(1));
  Value least = build.splat(rule.minScale, scale);
  // The factor is that by which it grows.
  Value shrunk = build.make<nn::MaxOp>(
      build.div(scale, build.splat(rule.growthFactor, scale)), least);
  Value since = build.sub(build.sub(iteration, last), build.i64(1));
  Value isDue = build.make<nn::AndOp>(
      build.compare(nn::ComparePredicate::gt, since, build.i64(0)),
      build.compare(
          nn::ComparePredicate::eq,
          build.make<nn::ModOp>(since, build.i64(rule.growthInterval)),
          build.i64(0)));
  Value kept = rule.consecutiveHysteresis ? full : patience;
  return {{build.select(found, build.select(isSpent, shrunk, scale),
                        build.select(isDue, grow(build, scale), scale)),
           build.add(iteration, build.i64(1)),
           build.select(found, iteration, last),
           build.select(found,
                        build.select(isSpent, patience,
                                     build.sub(patience, build.i64(1))),
                        build.select(isDue, full, kept))},
          build.make<nn::AndOp>(
              build.make<nn::AndOp>(found, isSpent),
              build.compare(nn::ComparePredicate::eq, scale, least))};
}

/// DynamicGradScaler: steps without overflow do not refill the patience.
LossScaler::Updated LossScaler::updateMegatron(const NNBuilder &build,
                                               ValueRange states,
                                               Value found) const {
  Value scale = states[0], zero = build.i64(0);
  Value clean = build.add(states[1], build.i64(1));
  Value isDue = build.compare(nn::ComparePredicate::eq, clean,
                              build.i64(rule.growthInterval));
  Value left = build.sub(states[2], build.i64(1));
  Value isSpent = build.compare(nn::ComparePredicate::le, left, zero);
  Value shrunk = build.make<nn::MaxOp>(build.scale(scale, rule.backoffFactor),
                                       build.splat(rule.minScale, scale));
  return {{build.select(found, build.select(isSpent, shrunk, scale),
                        build.select(isDue, grow(build, scale), scale)),
           build.select(found, zero, build.select(isDue, zero, clean)),
           build.select(
               found, left,
               build.select(isDue, build.i64(rule.hysteresis), states[2]))},
          nullptr};
}

LossScaler::Updated LossScaler::update(const NNBuilder &build,
                                       ValueRange states, Value found) const {
  switch (rule.kind) {
  case ScalerKind::None:
  case ScalerKind::Static:
    return {llvm::to_vector(states), nullptr};
  case ScalerKind::Torch:
    return updateTorch(build, states, found);
  case ScalerKind::DeepSpeed:
    return updateDeepSpeed(build, states, found);
  case ScalerKind::Megatron:
    return updateMegatron(build, states, found);
  }
  llvm_unreachable("a kind of scaler");
}
