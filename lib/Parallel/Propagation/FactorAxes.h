// Translates between axes of dimensions, which types speak of, and axes of
// factors, which rules speak of.

#ifndef ACCEL_LIB_PARALLEL_PROPAGATION_FACTORAXES_H
#define ACCEL_LIB_PARALLEL_PROPAGATION_FACTORAXES_H

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "llvm/ADT/SetVector.h"

namespace accel::parallel {

/// Mesh axes, major to minor.
using AxisList = llvm::SmallVector<mlir::StringAttr, 2>;
/// Axes of every dimension of a tensor, or of every factor of a rule.
using AxisLists = llvm::SmallVector<AxisList, 4>;

/// What a tensor contributes to the choice of an op's factor axes.
struct TensorAxes {
  AxisLists dims;
  bool fixed = false; ///< a closed constraint stands on it: it wins conflicts
  /// Those of the axes that came of wishes: they lose conflicts.
  AxisList wishes = {};
};

/// Hands the axes of one dimension to the dimension's factors, major to minor.
/// Returns how many of `axes` found a place, which are a prefix: an axis must
/// divide what is left of a factor, and a factor gets axes only when all
/// factors before it are split completely. `sink` is called with (factor,
/// axis).
size_t
splitOverFactors(dist::MeshOp mesh, const ShardingRule &rule,
                 const ShardingRule::Dim &dim,
                 llvm::ArrayRef<mlir::StringAttr> axes,
                 llvm::function_ref<void(unsigned, mlir::StringAttr)> sink);

/// Axes of a dimension whose factors have `factorAxes`.
AxisList joinFactors(const ShardingRule::Dim &dim,
                     llvm::ArrayRef<AxisList> factorAxes);

/// The axes of the operands' dimensions with which a view, or an op that works
/// element by element, has this result; none if its operands cannot be split
/// so.
std::optional<llvm::SmallVector<AxisLists>>
findOperandAxes(dist::MeshOp mesh, const ShardingRule &rule,
                llvm::ArrayRef<AxisList> result);

/// Axes for every factor of an op, given the axes of its operands and results
/// (in this order). Every axis goes to one factor; conflicts go to fixed
/// tensors, from wishes to what is none, then to the larger. The choice is one
/// that all operands and results can express: sizes divide, and within a
/// dimension no factor is split unless those before it are split completely.
AxisLists chooseFactorAxes(dist::MeshOp mesh, mlir::Operation *op,
                           const ShardingRule &rule,
                           llvm::ArrayRef<TensorAxes> tensors);

/// The ops that make a value, its own first, of nothing or of numbers that are
/// the same everywhere: constants, what equal elements are broadcast to, and
/// what is made of such element by element; or, if they are asked for, of
/// arguments of the function, too.
struct Makers {
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SetVector<mlir::BlockArgument> arguments;
};
/// None if it is made of anything else, or by very many.
std::optional<Makers> findMakers(mlir::Value value, bool ofArguments = false);

/// What is made of nothing is made where it is wanted, by ops of its own where
/// it is wanted in several ways: places that a mask is made of are those of
/// sequences to one reader, and those of the batch to another.
bool isMadeOfNothing(mlir::Value value);

/// Whether where an operand is has no say in where the op works: a constant
/// beside others, which other readers may have elsewhere.
bool isSilent(mlir::Operation *op, mlir::Value operand);

/// The tensor type with this sharding.
mlir::RankedTensorType withSharding(mlir::Type type,
                                    dist::ShardingAttr sharding);

/// Whether every rank has all of a tensor of this type.
bool isWhole(mlir::Type type);

/// The axes of a sharding's dimensions.
AxisLists getAxisLists(dist::ShardingAttr sharding);

/// The sharding with these axes, and partial over `partial`.
dist::ShardingAttr
getSharding(mlir::FlatSymbolRefAttr mesh, const AxisLists &dims,
            llvm::ArrayRef<mlir::StringAttr> partial = {},
            dist::Reduction reduction = dist::Reduction::sum);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_PROPAGATION_FACTORAXES_H
