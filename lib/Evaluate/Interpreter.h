// The reference interpreter: runs a module of any phase on virtual ranks in one
// process and gives its outputs. Law 11 is checked by comparing what it gives
// for one program at two phases.

#ifndef ACCEL_LIB_EVALUATE_INTERPRETER_H
#define ACCEL_LIB_EVALUATE_INTERPRETER_H

#include "dialects/Interfaces/Evaluate.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace accel::evaluate {

/// An input or output of a program: its name and its global type.
struct NamedType {
  std::string name;
  mlir::RankedTensorType type;
};

/// What a program takes and gives, states aside, in their order.
struct Signature {
  llvm::SmallVector<NamedType> inputs, outputs;
};

using TensorsByName = llvm::StringMap<Tensor>;

/// None: the step, or else the only entry.
using EntryKind = std::optional<nn::EntryKind>;

struct InterpreterOptions {
  EvaluationMode mode = EvaluationMode::Float64;
  /// `plan` only: in how many different orders that its waits allow the streams
  /// are executed. All must give the same bits.
  unsigned interleavings = 3;
  /// The entry that is run; without one the step, or else the only entry.
  EntryKind entry = {};
};

/// The signature of an entry of the module: of `plan.program`s in phase `plan`,
/// of the function with `nn.entry` (or else the only public one) before.
/// Arguments without `nn.input` are called `arg0`, `arg1`…, results `result0`….
mlir::FailureOr<Signature> getSignature(mlir::ModuleOp module,
                                        EntryKind entry = {});

/// Runs an entry of the module on global `inputs` and gives its global
/// `outputs`; new values of states are outputs called `@state`. States start at
/// their `init`, or at the input called `@state` if there is one: the outputs
/// of a step are the next one's inputs. Emits a located error and fails where
/// an input is missing, has another type than asked for, or an op cannot be
/// evaluated.
mlir::LogicalResult evaluateModule(mlir::ModuleOp module,
                                   const TensorsByName &inputs,
                                   const InterpreterOptions &options,
                                   TensorsByName &outputs);

/// Puts the sum of all ranks' terms in the place of each residual that a module
/// gives: what a program of any layout has of it.
void sumTerms(mlir::ModuleOp module, TensorsByName &outputs);

/// Inputs for a program: floats of a normal distribution that every float type
/// represents exactly; integers that are legal where they index something
/// (token ids of an embedding), else 0 or 1. A function of `seed` and the
/// inputs' names, types and uses alone.
mlir::FailureOr<TensorsByName>
makeRandomInputs(mlir::ModuleOp module, uint64_t seed, EntryKind entry = {});

/// The largest |found - expected| / (1 + |expected|). Infinite where one is NaN
/// or infinite and the other is not the same. Requires equal shapes.
double getMaxDifference(const Tensor &found, const Tensor &expected);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_INTERPRETER_H
