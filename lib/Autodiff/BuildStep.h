// The parts of nn-build-step. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_BUILDSTEP_H
#define ACCEL_LIB_AUTODIFF_BUILDSTEP_H

#include "NNBuilder.h"
#include "UpdateRule.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::autodiff {

/// A parameter that is an argument of the entry.
struct Trained {
  nn::StateOp state;
  mlir::BlockArgument argument;
  OptimizerRule rule;
};

/// The value that the entry returns as output `name`; an error at the entry if
/// there is none.
mlir::FailureOr<mlir::Value> findOutput(mlir::func::FuncOp entry,
                                        llvm::StringRef name);

/// Adds an input before the first state, that is, after the other inputs; an
/// error at the entry, which calls it `what`, if there is one of that name.
mlir::FailureOr<mlir::Value> addInput(mlir::func::FuncOp entry,
                                      llvm::StringRef name,
                                      mlir::RankedTensorType type,
                                      llvm::StringRef what);

/// The scalar that `spec` (`--loss`) asks for, at the end of `entry`: an output
/// of one element, or the cross-entropy of an output, whose labels become an
/// input after the others. Fails with an error at the entry or at the output's
/// node.
mlir::FailureOr<mlir::Value> buildLoss(mlir::func::FuncOp entry,
                                       llvm::StringRef spec);

/// What users call a state: its own name, and those of weights tied to it.
llvm::SmallVector<llvm::StringRef> getNames(nn::StateOp state);

/// The parameters that are trained, in the entry's order; the others get
/// `frozen`. Fails where a pattern matches nothing, where nothing is trained,
/// or where a trained parameter is of another type than f64, f32, bf16 or f16.
mlir::FailureOr<llvm::SmallVector<Trained>>
chooseTrained(mlir::ModuleOp module, mlir::func::FuncOp entry,
              llvm::ArrayRef<std::string> trainable,
              llvm::ArrayRef<std::string> frozen);

/// Makes states of `trained` that are narrower than f32 states of f32, their
/// master weights: each entry that reads one casts it to the type that it had.
mlir::LogicalResult keepMasterWeights(mlir::ModuleOp module,
                                      llvm::ArrayRef<Trained> trained);

/// Finds the optimizer and its numbers for each of `trained`: what the rule
/// says of all, of matrices of hidden layers, of weight decay and of groups, by
/// their names and shapes as the user has them. Fails where a pattern matches
/// nothing, where a group's optimizer does not read what is said of it, or
/// where some members of a stack come to something else than the others.
mlir::LogicalResult chooseGroups(mlir::ModuleOp module,
                                 mlir::func::FuncOp entry,
                                 const UpdateRule &rule,
                                 llvm::MutableArrayRef<Trained> trained);

/// The arguments that are tables of a lookup, or the matrix of the product that
/// makes the logits of a cross-entropy: the first and the last layer.
llvm::DenseSet<mlir::Value> findOuterLayers(mlir::func::FuncOp entry);

/// Replaces each nn.dropout of `entry`. `calls` is the number of finished
/// calls of the step. The numbers of one dropout in one step are those of a key
/// of its own, counted by logical coordinates: the same for every layout.
void expandDropout(mlir::func::FuncOp entry, mlir::Value calls, int64_t seed);

/// Replaces each nn.rng of `entry` in the same way. Without `calls` the numbers
/// are those of one call that no step is.
void expandRng(mlir::func::FuncOp entry, mlir::Value calls, int64_t seed);

/// A verdict as a scalar, and whether a verdict is that the step is done, on
/// which every state but the count of calls is written.
mlir::Value buildVerdictConstant(const NNBuilder &build, Verdict verdict);
mlir::Value buildIsDone(const NNBuilder &build, mlir::Value verdict);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_BUILDSTEP_H
