// NVFP4: numbers of four bits with scales of two levels. Private to the
// library.

#ifndef ACCEL_LIB_PRECISION_NVFP4_H
#define ACCEL_LIB_PRECISION_NVFP4_H

#include "Fp8Recipe.h"
#include "lib/Autodiff/NNBuilder.h"

namespace accel::precision {

/// An operand in NVFP4: what it stands for is `values · amax / 2688`.
struct Nvfp4Operand {
  /// Codes times the scales of their blocks: six significant bits, in f32, or
  /// in f64 where the operand is.
  mlir::Value values;
  /// The largest magnitude of the tensor that was rounded, f32: a scalar, or
  /// one of each part.
  mlir::Value amax;
};

/// Rounds to f4E2M1FN and back (0, 0.5, 1, 1.5, 2, 3, 4 and 6, with signs): to
/// the nearest, ties to even; with `uniform`, numbers in [0, 1) of its shape,
/// to one of the two next to it, so that the mean is the number. Beyond 6 is 6.
/// NaN is 0: it is in the amax of the tensor, by which all is multiplied.
mlir::Value roundToE2M1(const autodiff::NNBuilder &build, mlir::Value value,
                        mlir::Value uniform = {});

/// Rounds an operand that is summed over along `dim`. Each of `parts` equal
/// parts of dimension 0 has an amax of its own. Dimension `dim` of the values
/// is padded to a multiple of the block. `uniform` is as of `roundToE2M1`, and
/// as `value`; null rounds to the nearest.
Nvfp4Operand roundToNvfp4(const autodiff::NNBuilder &build, mlir::Value value,
                          int64_t dim, int64_t parts,
                          const OperandRecipe &recipe, mlir::Value uniform);

/// What the product of two operands' values is multiplied with.
mlir::Value buildNvfp4Factor(const autodiff::NNBuilder &build,
                             const Nvfp4Operand &lhs, const Nvfp4Operand &rhs);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_NVFP4_H
