// The recipes, role by role.

#include "Fp8Recipe.h"

#include "llvm/ADT/StringSwitch.h"
#include <cstdlib>

using namespace mlir;
using namespace accel;
using namespace accel::precision;

static llvm::Error fail(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Steps that a scale of MS-AMP looks back (DEFAULT_WINDOW_SIZE of its linear
/// layer), and that it takes from the tensor itself at first.
static constexpr int64_t kMsAmpWindow = 16;

/// Three of true and false: of fprop, dgrad and wgrad.
static llvm::Error readOverrides(StringRef text, Fp8Recipe &recipe) {
  SmallVector<StringRef> words;
  text.split(words, ',');
  bool areKnown = words.size() == 3;
  for (auto [index, word] : llvm::enumerate(words)) {
    areKnown &= word == "true" || word == "false";
    if (word == "true" && index < 3)
      recipe.inHighPrecision.push_back(static_cast<nn::ProductKind>(index));
  }
  if (areKnown)
    return llvm::Error::success();
  return fail("expected true or false for each of fprop, dgrad and wgrad as "
              "'fp8.override_linear_precision', found '" +
              text + "'");
}

/// What is said of scales and of NVFP4 alone.
static llvm::Error readScales(const QuantizeProductsPassOptions &options,
                              Fp8Recipe &recipe) {
  if (!options.power2.empty()) {
    if (options.power2 != "true" && options.power2 != "false")
      return fail("expected true or false as 'fp8.power_2_scale', found '" +
                  options.power2 + "'");
    if (!recipe.asksForPower2())
      return fail("expected 'fp8.recipe=current' (or block, tensorwise, "
                  "rowwise) with 'fp8.power_2_scale', found " +
                  options.recipe);
    recipe.hasPower2 = options.power2 == "true";
  }
  recipe.isRotated = options.hadamard;
  recipe.isStochastic = options.stochastic;
  recipe.hasTiles = options.tiles;
  bool isSaid = !options.hadamard || !options.stochastic || !options.tiles;
  if (isSaid && recipe.kind != Fp8Recipe::Kind::Nvfp4)
    return fail("expected 'fp8.recipe=nvfp4' with "
                "'fp8.random_hadamard_transform', 'fp8.stochastic_rounding' or "
                "'fp8.fp4_2d_quantization', found " +
                options.recipe);
  return llvm::Error::success();
}

llvm::Expected<Fp8Recipe>
precision::parseFp8Recipe(const QuantizeProductsPassOptions &options) {
  const QuantizeProductsPassOptions defaults;
  Fp8Recipe recipe;
  auto kind = llvm::StringSwitch<std::optional<Fp8Recipe::Kind>>(options.recipe)
                  .Case("delayed", Fp8Recipe::Kind::Delayed)
                  .Case("current", Fp8Recipe::Kind::Current)
                  .Case("block", Fp8Recipe::Kind::Block)
                  .Case("mxfp8", Fp8Recipe::Kind::Mxfp8)
                  .Case("tensorwise", Fp8Recipe::Kind::Tensorwise)
                  .Case("rowwise", Fp8Recipe::Kind::Rowwise)
                  .Case("rowwise_with_gw_hp", Fp8Recipe::Kind::RowwiseWithGwHp)
                  .Cases({"msamp_o1", "msamp_o2"}, Fp8Recipe::Kind::MsAmp)
                  .Case("nvfp4", Fp8Recipe::Kind::Nvfp4)
                  .Default(std::nullopt);
  if (!kind)
    return fail("expected delayed, current, block, mxfp8, nvfp4, tensorwise, "
                "rowwise, rowwise_with_gw_hp, msamp_o1 or msamp_o2 as "
                "'fp8.recipe', found '" +
                options.recipe + "'");
  recipe.kind = *kind;
  if (options.format != "hybrid" && options.format != "e4m3")
    return fail("expected hybrid or e4m3 as 'fp8.format', found '" +
                options.format + "'" +
                (options.format == "e5m2"
                     ? ": numbers with two bits behind the point train no "
                       "model, and Transformer Engine refuses them"
                     : ""));
  recipe.isHybrid = options.format == "hybrid";
  auto amax = llvm::StringSwitch<std::optional<Fp8Recipe::Amax>>(options.amax)
                  .Case("max", Fp8Recipe::Amax::Max)
                  .Case("most_recent", Fp8Recipe::Amax::MostRecent)
                  .Default(std::nullopt);
  if (!amax)
    return fail("expected max or most_recent as 'fp8.amax_compute_algo', "
                "found '" +
                options.amax + "'");
  recipe.amax = *amax;
  recipe.margin = options.margin;
  recipe.historyLength = options.historyLength;
  if (options.historyLength < 1)
    return fail("expected at least one step as 'fp8.amax_history_len', found " +
                Twine(options.historyLength));
  recipe.interval = options.interval;
  if (options.interval < 1)
    return fail("expected at least one step as 'fp8.interval', found " +
                Twine(options.interval));
  if (std::abs(options.margin) > 64)
    return fail("expected -64 to 64 as 'fp8.margin', found " +
                Twine(options.margin));
  if (!recipe.isDelayed())
    for (auto [key, isSaid] :
         {std::pair("margin", options.margin != defaults.margin),
          std::pair("amax_history_len",
                    options.historyLength != defaults.historyLength),
          std::pair("interval", options.interval != defaults.interval),
          std::pair("amax_compute_algo", options.amax != defaults.amax)})
      if (isSaid)
        return fail(Twine("expected 'fp8.recipe=delayed' with 'fp8.") + key +
                    "', found " + options.recipe);
  if (options.format != defaults.format && !recipe.hasFormats())
    return fail("expected 'fp8.recipe=delayed' (or current, tensorwise) with "
                "'fp8.format', found " +
                options.recipe + ", whose numbers are all of one format");
  if (llvm::Error error = readScales(options, recipe))
    return std::move(error);
  if (options.blocks < 1)
    return fail("expected at least one part of a batch, found " +
                Twine(options.blocks));
  recipe.blocks = options.blocks;
  if (options.gradientParts < 1 || options.blocks % options.gradientParts != 0)
    return fail("expected a divisor of 'fp8.blocks' (" + Twine(options.blocks) +
                ") as 'fp8.gradient_parts', found " +
                Twine(options.gradientParts));
  recipe.gradientParts = options.gradientParts;
  if (recipe.isMsAmp()) {
    recipe.historyLength = kMsAmpWindow;
    if (options.overrides != defaults.overrides)
      return fail("expected a recipe of Transformer Engine or torchao with "
                  "'fp8.override_linear_precision', found " +
                  options.recipe);
  } else if (options.gradientParts != 1)
    return fail("expected 'fp8.recipe=msamp_o1' or msamp_o2 with "
                "'fp8.gradient_parts', found " +
                options.recipe);
  if (options.blocks != 1 && !recipe.hasParts())
    return fail("expected 'fp8.recipe=current' (or another whose scales are of "
                "parts of a batch) with " +
                Twine(options.blocks) + " parts, found " + options.recipe);
  if (llvm::Error error = readOverrides(options.overrides, recipe))
    return std::move(error);
  return recipe;
}

llvm::Error
precision::checkQuantizeOptions(const QuantizeProductsPassOptions &options) {
  return parseFp8Recipe(options).takeError();
}

double precision::getLargest(FloatType format) {
  return llvm::APFloat::getLargest(format.getFloatSemantics())
      .convertToDouble();
}

OperandRecipe Fp8Recipe::choose(MLIRContext *context, nn::ProductKind product,
                                TensorRole role) const {
  Type ofValues = Float8E4M3FNType::get(context);
  Type ofGradients = isHybrid && role == TensorRole::Gradient
                         ? Type(Float8E5M2Type::get(context))
                         : ofValues;
  auto make = [](Type format, Granularity granularity, ScaleRule rule,
                 int64_t block = 0) {
    return OperandRecipe{cast<FloatType>(format), granularity, rule, block};
  };
  auto choose = [&](bool byRecipe, ScaleRule power2, ScaleRule other) {
    return hasPower2.value_or(byRecipe) ? power2 : other;
  };
  ScaleRule ofTensors =
      choose(false, ScaleRule::BoundedPower2, ScaleRule::Bounded);
  ScaleRule ofRows = choose(true, ScaleRule::BoundedPower2, ScaleRule::Bounded);
  bool isWeight = role == TensorRole::Weight;
  switch (kind) {
  case Kind::Delayed:
  case Kind::Current:
    return make(ofGradients, Granularity::Tensor,
                choose(false, ScaleRule::Power2, ScaleRule::Exact));
  case Kind::MsAmp:
    return make(ofGradients, Granularity::Tensor, ScaleRule::Power2);
  case Kind::Tensorwise:
    return make(ofGradients, Granularity::Tensor, ofTensors);
  case Kind::Block:
    return make(ofValues, isWeight ? Granularity::Tile : Granularity::Block,
                choose(true, ScaleRule::Power2, ScaleRule::Exact), 128);
  case Kind::Mxfp8:
    return make(ofValues, Granularity::Block, ScaleRule::SharedExponent, 32);
  case Kind::RowwiseWithGwHp:
    if (isWeight && product == nn::ProductKind::dgrad)
      return make(ofValues, Granularity::Tensor, ofRows);
    [[fallthrough]];
  case Kind::Rowwise:
    return make(ofValues, Granularity::Row, ofRows);
  case Kind::Nvfp4: {
    bool isTile = isWeight && hasTiles;
    OperandRecipe own =
        make(ofValues, isTile ? Granularity::Tile : Granularity::Block,
             ScaleRule::TwoLevels, 16);
    own.isRotated = isRotated && product == nn::ProductKind::wgrad;
    own.isStochastic = isStochastic && role == TensorRole::Gradient;
    return own;
  }
  }
  llvm_unreachable("a recipe");
}

StringRef Fp8Recipe::describe() const {
  switch (kind) {
  case Kind::Delayed:
    return "fp8 delayed: scales of the steps before";
  case Kind::Current:
    return "fp8 current: scales of tensors";
  case Kind::MsAmp:
    return "fp8 MS-AMP: powers of two, of the steps before";
  case Kind::Tensorwise:
    return "fp8 tensorwise: scales of tensors";
  case Kind::Block:
    return "fp8 block: f8E4M3FN, scales of 1 x 128 or 128 x 128; multiplied as "
           "what codes stand for";
  case Kind::Mxfp8:
    return "fp8 mxfp8: f8E4M3FN, powers of two of 32; multiplied as what codes "
           "stand for";
  case Kind::Nvfp4:
    return "fp8 nvfp4: E2M1, scales of 16 and of tensors; multiplied as what "
           "codes stand for";
  case Kind::Rowwise:
  case Kind::RowwiseWithGwHp:
    return "fp8 rowwise: scales of rows";
  }
  llvm_unreachable("a recipe");
}
