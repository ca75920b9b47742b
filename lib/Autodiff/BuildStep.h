// The parts of nn-build-step. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_BUILDSTEP_H
#define ACCEL_LIB_AUTODIFF_BUILDSTEP_H

#include "UpdateRule.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel::autodiff {

/// A parameter that is an argument of the entry.
struct Trained {
  nn::StateOp state;
  mlir::BlockArgument argument;
};

/// The scalar that `spec` (`--loss`) asks for, at the end of `entry`: an output
/// of one element, or the cross-entropy of an output, whose labels become an
/// input after the others. Fails with an error at the entry or at the output's
/// node.
mlir::FailureOr<mlir::Value> buildLoss(mlir::func::FuncOp entry,
                                       llvm::StringRef spec);

/// The parameters that are trained, in the entry's order; the others get
/// `frozen`. Fails where a pattern matches nothing, where nothing is trained,
/// or where a trained parameter is of another type than f32 or f64.
mlir::FailureOr<llvm::SmallVector<Trained>>
chooseTrained(mlir::ModuleOp module, mlir::func::FuncOp entry,
              llvm::ArrayRef<std::string> trainable,
              llvm::ArrayRef<std::string> frozen);

/// Replaces each nn.dropout of `entry`. `counter` is the number of finished
/// steps. The numbers of one dropout in one step are those of a key of its own,
/// counted by logical coordinates: the same for every layout.
void expandDropout(mlir::func::FuncOp entry, mlir::Value counter, int64_t seed);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_BUILDSTEP_H
