// The states of delayed scaling, Transformer Engine's and MS-AMP's: of each
// quantized tensor a scale and the largest magnitudes that it follows from.
// Private to the library.

#ifndef ACCEL_LIB_PRECISION_DELAYEDSCALES_H
#define ACCEL_LIB_PRECISION_DELAYEDSCALES_H

#include "Fp8Recipe.h"
#include "lib/Autodiff/NNBuilder.h"
#include "lib/Autodiff/StepStates.h"
#include "llvm/ADT/StringMap.h"

namespace accel::precision {

/// Those of one entry, which writes them if it is the step.
class DelayedScales {
public:
  DelayedScales(mlir::func::FuncOp entry, const Fp8Recipe &recipe)
      : entry(entry), recipe(recipe) {}

  /// The slot of a tensor that a layer (`site`, whose forward is in `chunk`)
  /// quantizes to `format`. A tensor that several layers read has one: each
  /// would see the same largest magnitude.
  unsigned addSlot(mlir::Value tensor, mlir::FloatType format,
                   llvm::StringRef site, TensorRole role, int64_t chunk);

  /// Binds the states of all slots to arguments of the entry: a step declares
  /// them, any other reads those that the step has declared.
  llvm::LogicalResult bind();

  /// Whether the tensors of a role have states.
  bool keeps(TensorRole role) const { return recipe.keepsScale(role); }

  /// The scale of a slot, for an op of `chunk`. f32 scalar.
  mlir::Value getScale(const autodiff::NNBuilder &build, unsigned slot,
                       int64_t chunk);

  /// The scale with which MS-AMP quantizes `tensor` for an op of `chunk`: f32
  /// scalar, or one of each of `parts` equal parts of dimension 0.
  mlir::Value getScaleInTime(const autodiff::NNBuilder &build, unsigned slot,
                             int64_t chunk, mlir::Value tensor, int64_t parts);

  /// Takes the largest magnitude of `tensor` for the slot's history, once for
  /// each tensor.
  void measure(const autodiff::NNBuilder &build, unsigned slot,
               mlir::Value tensor);

  /// Makes the new scales and histories results of the step. A step that fails
  /// leaves them as they were.
  void write();

private:
  struct Slot {
    std::string name;
    int64_t chunk;
    mlir::FloatType format;
    llvm::SmallDenseSet<mlir::Value> measured;  ///< tensors
    llvm::SmallVector<mlir::Value> amaxes = {}; ///< theirs
    autodiff::Write scale = {}, history = {};
    autodiff::Write count = {}; ///< with MS-AMP
  };

  llvm::LogicalResult declare();
  llvm::LogicalResult read();

  /// A state of a slot, for an op of `chunk`.
  static mlir::Value getOld(const autodiff::NNBuilder &build, const Slot &slot,
                            const autodiff::Write &state, int64_t chunk);

  mlir::func::FuncOp entry;
  const Fp8Recipe &recipe;
  std::vector<Slot> slots;
  llvm::StringMap<unsigned> byName;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, unsigned> byTensor;
  mlir::BlockArgument calls; ///< the step's counter of them
};

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_DELAYEDSCALES_H
