// What a recipe of fp8 training quantizes, and how: Transformer Engine's,
// torchao's and MS-AMP's. Private to the library.

#ifndef ACCEL_LIB_PRECISION_FP8RECIPE_H
#define ACCEL_LIB_PRECISION_FP8RECIPE_H

#include "Passes.h"
#include "dialects/NN/NN.h"
#include "llvm/Support/Error.h"

namespace accel::precision {

/// Which of the three tensors of a linear layer an operand of its products is.
enum class TensorRole { Input, Weight, Gradient };

/// What shares a scale.
enum class Granularity {
  Tensor, ///< all of a tensor: of weights; of others what a part of a batch has
  Row,    ///< what is summed over for one row or column of the product
  Block,  ///< `block` elements of that
  Tile,   ///< `block` elements of that, and as many rows: of weights
};

/// How a scale follows from the largest magnitude of what shares it.
enum class ScaleRule {
  Exact,          ///< Transformer Engine's
  Power2,         ///< the power of two below that
  Bounded,        ///< torchao's
  BoundedPower2,  ///< the power of two below that
  SharedExponent, ///< that of OCP's microscaling formats: an f8E8M0FNU
  TwoLevels,      ///< NVFP4's: an f8E4M3FN, times one of the whole tensor
};

/// How one operand of one product is quantized.
struct OperandRecipe {
  mlir::FloatType format;
  Granularity granularity = Granularity::Tensor;
  ScaleRule rule = ScaleRule::Exact;
  int64_t block = 0;
  bool isRotated = false;    ///< by a random Hadamard transform of each block
  bool isStochastic = false; ///< rounded up or down by chance

  /// Whether one number is made of all of a tensor, or of a part's.
  bool isOfTensor() const {
    return granularity == Granularity::Tensor || rule == ScaleRule::TwoLevels;
  }
  /// Whether what is multiplied is what codes stand for, not codes.
  bool isOfBlocks() const {
    return granularity == Granularity::Block ||
           granularity == Granularity::Tile;
  }
};

/// The numbers of a recipe. The defaults are those of Transformer Engine 2.
struct Fp8Recipe {
  enum class Kind {
    Delayed,
    Current,
    Block,
    Mxfp8,
    Tensorwise,
    Rowwise,
    RowwiseWithGwHp,
    MsAmp, ///< of both levels: moments are the optimizer's
    Nvfp4
  };
  enum class Amax { Max, MostRecent };

  Kind kind = Kind::Delayed;
  bool isHybrid = true; ///< gradients in f8E5M2, all else in f8E4M3FN
  int64_t margin = 0;   ///< scales are 2^margin smaller
  int64_t historyLength = 1024;
  Amax amax = Amax::Max;
  int64_t interval = 1; ///< steps from one scale to the next
  int64_t blocks = 1; ///< equal parts of a batch that have scales of their own
  /// Parts of a batch whose gradients of weights are rounded before they are
  /// added up: of as many ranks, which share out each micro-batch.
  int64_t gradientParts = 1;
  /// Whether scales are powers of two; none: as the recipe has it.
  std::optional<bool> hasPower2;
  // Of NVFP4: a transform of what a weight's gradient is made of, gradients
  // rounded by chance, and weights in blocks of 16 x 16.
  bool isRotated = true, isStochastic = true, hasTiles = true;
  /// The kinds of products that stay in 16 bits.
  llvm::SmallVector<nn::ProductKind> inHighPrecision;

  /// Whether scales are states, from the steps before.
  bool isDelayed() const { return kind == Kind::Delayed; }
  bool isMsAmp() const { return kind == Kind::MsAmp; }
  /// Whether the scale of a tensor is a state.
  bool keepsScale(TensorRole role) const {
    return isDelayed() || (isMsAmp() && role != TensorRole::Weight);
  }
  /// Whether gradients may have another format than all else.
  bool hasFormats() const {
    return kind == Kind::Delayed || kind == Kind::Current ||
           kind == Kind::Tensorwise;
  }
  /// Whether parts of a batch have scales of their own. Those of rows do not
  /// say so unless they are summed over, as in the gradient of a weight.
  bool hasParts() const {
    return kind != Kind::Delayed && kind != Kind::RowwiseWithGwHp;
  }
  /// Whether a recipe leaves open if scales are powers of two.
  bool asksForPower2() const {
    return kind != Kind::Delayed && kind != Kind::Mxfp8 &&
           kind != Kind::Nvfp4 && kind != Kind::MsAmp;
  }
  bool quantizes(nn::ProductKind product) const {
    return !llvm::is_contained(inHighPrecision, product) &&
           !(kind == Kind::RowwiseWithGwHp &&
             product == nn::ProductKind::wgrad);
  }
  /// What its products say of themselves (`nn.reason`).
  llvm::StringRef describe() const;
  /// How the operand of a role in a product of a kind is quantized.
  OperandRecipe choose(mlir::MLIRContext *context, nn::ProductKind product,
                       TensorRole role) const;
};

/// What the options of the pass say. Fails with one sentence where they say
/// nothing, or what the recipe does not read.
llvm::Expected<Fp8Recipe>
parseFp8Recipe(const QuantizeProductsPassOptions &options);

/// The largest number of a format.
double getLargest(mlir::FloatType format);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_FP8RECIPE_H
