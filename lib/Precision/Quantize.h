// The ops that quantize a tensor. Private to the library.

#ifndef ACCEL_LIB_PRECISION_QUANTIZE_H
#define ACCEL_LIB_PRECISION_QUANTIZE_H

#include "Fp8Recipe.h"
#include "lib/Autodiff/NNBuilder.h"

namespace accel::precision {

/// A tensor in fp8: `codes · inverse` is what it stands for.
struct Quantized {
  mlir::Value codes;
  /// f32. Of a tensor: a scalar, or [parts], a number for each equal part of
  /// dimension 0. Of rows: without the dimension that is summed over.
  mlir::Value inverse;
};

/// The largest magnitude of `value`, NaN if one of its numbers is, as f32: a
/// scalar, or one of each of `parts` equal parts of dimension 0, which they
/// divide.
mlir::Value buildAmax(const autodiff::NNBuilder &build, mlir::Value value,
                      int64_t parts);

/// largest / amax, the largest f32 where it is beyond; `otherwise` where an
/// amax is 0 or not finite. Of f32s.
mlir::Value buildScaleOr(const autodiff::NNBuilder &build, mlir::Value amax,
                         double largest, mlir::Value otherwise);

/// The scale for each element of `amax`, f32s, to a format's `largest` number.
mlir::Value buildScale(const autodiff::NNBuilder &build, mlir::Value amax,
                       double largest, ScaleRule rule);

/// value · factors, which are as `Quantized::inverse` of a tensor.
mlir::Value scaleParts(const autodiff::NNBuilder &build, mlir::Value value,
                       mlir::Value factors);

/// cast(value · scale), to `format`, saturating; `scale` and the inverse are as
/// of a tensor.
Quantized quantize(const autodiff::NNBuilder &build, mlir::Value value,
                   mlir::Value scale, mlir::FloatType format);

/// f32, or f64 where `value` is.
mlir::Value widen(const autodiff::NNBuilder &build, mlir::Value value);

/// A tensor some dimensions of which are blocks of equal size.
struct Blocks {
  mlir::Value values; ///< each such dimension is two: blocks, and elements
  llvm::SmallVector<int64_t> shared; ///< the second of each pair
  llvm::SmallVector<int64_t> padded; ///< the shape, in multiples of the size
};

/// Splits `dims`, ascending, into blocks of `size`, the last filled with zeros.
Blocks splitBlocks(const autodiff::NNBuilder &build, mlir::Value value,
                   llvm::ArrayRef<int64_t> dims, int64_t size);

/// The largest magnitude of each block, as f32.
mlir::Value buildBlockAmax(const autodiff::NNBuilder &build,
                           const Blocks &blocks);

/// `values`, of the shape of the blocks' values, as a tensor of `shape`: what
/// is beyond was padding.
mlir::Value joinBlocks(const autodiff::NNBuilder &build, mlir::Value values,
                       const Blocks &blocks, llvm::ArrayRef<int64_t> shape);

/// Rows along `dim` have scales of their own.
Quantized quantizeRows(const autodiff::NNBuilder &build, mlir::Value value,
                       int64_t dim, const OperandRecipe &recipe);

/// Parts of `recipe.block` elements along `dim` (of tiles along the other of
/// the last two dimensions, too; the last part may be smaller) have scales of
/// their own: what the codes stand for, in f32, or in f64 where `value` is.
mlir::Value roundBlocks(const autodiff::NNBuilder &build, mlir::Value value,
                        int64_t dim, const OperandRecipe &recipe);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_QUANTIZE_H
