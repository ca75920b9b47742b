// The table of optimizers. Names, hyperparameters and their values where
// nothing is said are those of the original that each file names.

#include "lib/Autodiff/Optimizers/OptimizerTable.h"
#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace accel::autodiff;
using Type = Hyperparameter::Type;

static constexpr Hyperparameter lr(double first) {
  return {"lr", Type::NonNegative, first};
}
static constexpr Hyperparameter weightDecay(double first) {
  return {"weight_decay", Type::NonNegative, first};
}
static constexpr Hyperparameter betas(double first, double second) {
  return {"betas", Type::Betas, first, second};
}
static constexpr Hyperparameter eps(double first) {
  return {"eps", Type::NonNegative, first};
}
static constexpr Hyperparameter flag(StringLiteral name) {
  return {name, Type::Flag, 0};
}

static constexpr Hyperparameter kSgd[] = {lr(1e-3),
                                          weightDecay(0),
                                          {"momentum", Type::NonNegative, 0},
                                          {"dampening", Type::NonNegative, 0},
                                          flag("nesterov")};
static constexpr Hyperparameter kAdam[] = {
    lr(1e-3), weightDecay(0), betas(0.9, 0.999), eps(1e-8), flag("amsgrad")};
static constexpr Hyperparameter kAdamW[] = {
    lr(1e-3), weightDecay(0.01), betas(0.9, 0.999), eps(1e-8), flag("amsgrad")};
static constexpr Hyperparameter kAdamax[] = {lr(2e-3), weightDecay(0),
                                             betas(0.9, 0.999), eps(1e-8)};
static constexpr Hyperparameter kNAdam[] = {
    lr(2e-3),
    weightDecay(0),
    betas(0.9, 0.999),
    eps(1e-8),
    {"momentum_decay", Type::NonNegative, 4e-3},
    flag("decoupled_weight_decay")};
static constexpr Hyperparameter kRAdam[] = {lr(1e-3), weightDecay(0),
                                            betas(0.9, 0.999), eps(1e-8),
                                            flag("decoupled_weight_decay")};
static constexpr Hyperparameter kAdagrad[] = {
    lr(1e-2),
    weightDecay(0),
    eps(1e-10),
    {"lr_decay", Type::NonNegative, 0},
    {"initial_accumulator_value", Type::NonNegative, 0}};
static constexpr Hyperparameter kAdadelta[] = {
    lr(1), weightDecay(0), eps(1e-6), {"rho", Type::Fraction, 0.9}};
static constexpr Hyperparameter kRmsprop[] = {
    lr(1e-2),
    weightDecay(0),
    eps(1e-8),
    {"alpha", Type::Fraction, 0.99},
    {"momentum", Type::NonNegative, 0},
    flag("centered")};
static constexpr Hyperparameter kLion[] = {lr(1e-4), weightDecay(0),
                                           betas(0.9, 0.99)};
static constexpr Hyperparameter kLamb[] = {lr(1e-3), weightDecay(0),
                                           betas(0.9, 0.999), eps(1e-6)};
static constexpr Hyperparameter kLars[] = {
    lr(0.1),
    weightDecay(0),
    eps(0),
    {"momentum", Type::NonNegative, 0.9},
    {"trust_coefficient", Type::Positive, 1e-3}};
static constexpr Hyperparameter kAdafactor[] = {
    lr(1e-2),
    weightDecay(0),
    {"beta2_decay", Type::Signed, -0.8},
    {"eps1", Type::NonNegative, 0},
    {"eps2", Type::NonNegative, 1e-3},
    {"d", Type::Positive, 1}};
// Beside PyTorch's the scale modes of Megatron-LM.
static constexpr StringLiteral kAdjustments[] = {"original", "match_rms_adamw",
                                                 "spectral", "unit_rms_norm"};
static constexpr Hyperparameter kMuon[] = {
    lr(1e-3),
    weightDecay(0.1),
    {"momentum", Type::NonNegative, 0.95},
    {"nesterov", Type::Flag, 1},
    {"ns_steps", Type::Count, 5},
    {"adjust_lr_fn", Type::Word, 0, 0, kAdjustments},
    // Of AdamW, which has the parameters that are no matrices.
    {"adam_lr", Type::Rate, 0},
    betas(0.9, 0.999),
    eps(1e-8),
    flag("amsgrad")};
static constexpr Hyperparameter kScheduleFreeAdamW[] = {
    lr(2.5e-3),
    weightDecay(0),
    betas(0.9, 0.999),
    eps(1e-8),
    {"warmup_steps", Type::Steps, 0},
    {"r", Type::NonNegative, 0},
    {"weight_lr_power", Type::NonNegative, 2}};

static constexpr StringLiteral kPaper = "the paper's";

static constexpr OptimizerKind kKinds[] = {
    {"adamw", kAdamW, makeAdamW},
    {"adam", kAdam, makeAdam},
    {"sgd", kSgd, makeSgd},
    {"muon", kMuon, makeMuon, "PyTorch's", "adamw"},
    {"adafactor", kAdafactor, makeAdafactor},
    {"lion", kLion, makeLion, kPaper},
    {"lamb", kLamb, makeLamb, kPaper},
    {"lars", kLars, makeLars, kPaper},
    {"adagrad", kAdagrad, makeAdagrad},
    {"adadelta", kAdadelta, makeAdadelta},
    {"adamax", kAdamax, makeAdamax},
    {"rmsprop", kRmsprop, makeRmsprop},
    {"nadam", kNAdam, makeNAdam},
    {"radam", kRAdam, makeRAdam},
    {"schedule_free_adamw", kScheduleFreeAdamW, makeScheduleFreeAdamW,
     "schedulefree's"},
};

ArrayRef<OptimizerKind> accel::autodiff::optimizerKinds() { return kKinds; }

const OptimizerKind *accel::autodiff::findOptimizer(StringRef name) {
  // PyTorch's spelling, AdamW, is as good.
  const OptimizerKind *found = find_if(kKinds, [&](const OptimizerKind &kind) {
    return kind.name.equals_insensitive(name);
  });
  return found == std::end(kKinds) ? nullptr : found;
}

std::string accel::autodiff::joinOptimizers() {
  SmallVector<StringRef> names;
  for (const OptimizerKind &kind : kKinds)
    names.push_back(kind.name);
  StringRef last = names.pop_back_val();
  return (join(names, ", ") + " or " + last).str();
}

double Hyperparameters::get(StringRef name) const {
  auto found = values.find(name.str());
  assert(found != values.end() && "of another optimizer");
  return found->second;
}

const Hyperparameter *OptimizerKind::find(StringRef wanted) const {
  const Hyperparameter *found =
      find_if(hyperparameters,
              [&](const Hyperparameter &one) { return one.name == wanted; });
  return found == hyperparameters.end() ? nullptr : found;
}

Hyperparameters OptimizerKind::getDefaults() const {
  Hyperparameters values;
  for (const Hyperparameter &one : hyperparameters) {
    if (one.type == Type::Betas) {
      values.set("beta1", one.first);
      values.set("beta2", one.second);
    } else {
      values.set(one.name, one.first);
    }
  }
  return values;
}

static Error expected(const Twine &what, StringRef key, StringRef value) {
  return createStringError(inconvertibleErrorCode(),
                           "expected " + what + " as '" + key + "', found '" +
                               value + "'");
}

static Error readBetas(StringRef key, StringRef value,
                       Hyperparameters &values) {
  auto [first, second] = value.split(',');
  double beta1, beta2;
  if (first.getAsDouble(beta1) || second.getAsDouble(beta2) ||
      !(beta1 >= 0 && beta1 < 1) || !(beta2 >= 0 && beta2 < 1))
    return expected("two numbers in [0, 1) like 0.9,0.999", key, value);
  values.set("beta1", beta1);
  values.set("beta2", beta2);
  return Error::success();
}

static Error readWord(const Hyperparameter &parameter, StringRef key,
                      StringRef value, Hyperparameters &values) {
  if (parameter.type == Type::Flag) {
    if (value != "true" && value != "false")
      return expected("true or false", key, value);
    values.set(parameter.name, value == "true");
    return Error::success();
  }
  const StringLiteral *found = find(parameter.words, value);
  if (found == parameter.words.end())
    return expected(join(parameter.words, " or "), key, value);
  values.set(parameter.name, found - parameter.words.begin());
  return Error::success();
}

Error accel::autodiff::readHyperparameter(const Hyperparameter &parameter,
                                          StringRef key, StringRef value,
                                          Hyperparameters &values) {
  double number = 0;
  bool isNumber = !value.getAsDouble(number) && std::isfinite(number);
  bool fits = false;
  const char *what = "";
  switch (parameter.type) {
  case Type::Betas:
    return readBetas(key, value, values);
  case Type::Flag:
  case Type::Word:
    return readWord(parameter, key, value, values);
  case Type::NonNegative:
    fits = number >= 0;
    what = "a number of at least 0";
    break;
  case Type::Positive:
    fits = number > 0;
    what = "a number above 0";
    break;
  case Type::Rate:
    if (value == "lr") {
      values.set(parameter.name, 0);
      return Error::success();
    }
    fits = number > 0;
    what = "a number above 0, or lr";
    break;
  case Type::Fraction:
    fits = number >= 0 && number < 1;
    what = "a number in [0, 1)";
    break;
  case Type::Signed:
    fits = true;
    what = "a number";
    break;
  case Type::Steps:
    fits = number >= 0 && number == std::floor(number);
    what = "an integer of at least 0";
    break;
  case Type::Count:
    // An unrolled loop: as PyTorch has it, less than 100.
    fits = number >= 1 && number < 100 && number == std::floor(number);
    what = "an integer from 1 to 99";
    break;
  }
  if (!isNumber || !fits)
    return expected(what, key, value);
  values.set(parameter.name, number);
  return Error::success();
}
