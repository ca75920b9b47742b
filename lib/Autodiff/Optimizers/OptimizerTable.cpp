// The table of optimizers. Names, hyperparameters and their values where
// nothing is said are those of the original that each file names.

#include "lib/Autodiff/Optimizers/OptimizerTable.h"
#include "lib/Autodiff/Optimizers/Makers.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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
// Smaller parameters than this keep their moments in float32.
static constexpr Hyperparameter kLeast8bit = {
    "min_8bit_size", Type::Count, 4096, 0, {}, 0};
static constexpr Hyperparameter kAdam8bit[] = {
    lr(1e-3), weightDecay(0), betas(0.9, 0.999), eps(1e-8), kLeast8bit};
static constexpr Hyperparameter kAdamW8bit[] = {
    lr(1e-3), weightDecay(0.01), betas(0.9, 0.999), eps(1e-8), kLeast8bit};
static constexpr Hyperparameter kAdamFp8[] = {lr(1e-3), weightDecay(0),
                                              betas(0.9, 0.999), eps(1e-8)};
static constexpr Hyperparameter kAdamWFp8[] = {lr(1e-3), weightDecay(0.01),
                                               betas(0.9, 0.999), eps(1e-8)};
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
    // An unrolled loop: as PyTorch has it, less than 100.
    {"ns_steps", Type::Count, 5, 0, {}, 1, 99},
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
    {"warmup_steps", Type::Count, 0, 0, {}, 0},
    {"r", Type::NonNegative, 0},
    {"weight_lr_power", Type::NonNegative, 2}};

static constexpr StringLiteral kPaper = "the paper's",
                               kBitsAndBytes = "bitsandbytes'",
                               kMsAmp = "MS-AMP's";

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
    {"adamw_8bit", kAdamW8bit, makeAdam8bit, kBitsAndBytes},
    {"adam_8bit", kAdam8bit, makeAdam8bit, kBitsAndBytes},
    {"adamw_fp8", kAdamWFp8, makeAdamWFp8, kMsAmp},
    {"adam_fp8", kAdamFp8, makeAdamFp8, kMsAmp},
    {"schedule_free_adamw", kScheduleFreeAdamW, makeScheduleFreeAdamW,
     "schedulefree's"},
};

ArrayRef<OptimizerKind> accel::autodiff::optimizerKinds() { return kKinds; }

const OptimizerKind *accel::autodiff::findOptimizer(StringRef name) {
  // The spelling of classes, AdamW8bit, is as good, and Transformers' name of
  // that one, whose `bnb` says whose it is.
  auto plain = [](StringRef spelling) {
    std::string letters = spelling.lower();
    llvm::erase(letters, '_');
    return letters;
  };
  std::string wanted = plain(name);
  if (wanted == "adamwbnb8bit")
    wanted = "adamw8bit";
  const OptimizerKind *found = find_if(kKinds, [&](const OptimizerKind &kind) {
    return plain(kind.name) == wanted;
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

Error accel::autodiff::readHyperparameter(const Hyperparameter &parameter,
                                          StringRef key, StringRef value,
                                          Hyperparameters &values) {
  Expected<std::vector<double>> numbers = readValue(
      {parameter.type, parameter.words, parameter.least, parameter.most}, key,
      value);
  if (!numbers)
    return numbers.takeError();
  if (parameter.type == Type::Betas) {
    values.set("beta1", numbers->front());
    values.set("beta2", numbers->back());
  } else {
    values.set(parameter.name, numbers->front());
  }
  return Error::success();
}
