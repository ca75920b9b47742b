// Which op of a model a name of `--cut` means.

#ifndef ACCEL_LIB_STAGES_CUTNAMES_H
#define ACCEL_LIB_STAGES_CUTNAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace accel::stages {

/// The names of an entry's ops: of the ONNX nodes that they are or have taken
/// in (of text that was read again, of its values), and of the modules that
/// these lie in. A module is called by its path,
/// `transformer.h.1`, where the exporter wrote it down (torch.onnx with
/// dynamo), or where names of nodes are such paths (`/transformer/h.1/ln/Add`,
/// of the exporter before it; either spelling will do).
class CutNames {
public:
  explicit CutNames(mlir::func::FuncOp entry);

  /// Whether an op is called so, or lies in a module of that path.
  bool contains(llvm::StringRef name) const {
    return ofNodes.contains(name) || ofModules.contains(name);
  }

  /// The first op, in the order of the text, of those that `isPlace` takes: of
  /// the node of that name, else of the module. Emits an error at the entry if
  /// there is none.
  mlir::FailureOr<mlir::Operation *>
  find(llvm::StringRef name,
       llvm::function_ref<bool(mlir::Operation *)> isPlace) const;

  /// The nearest name to one that there is not; empty if there is none at all.
  std::string nearest(llvm::StringRef name) const;

private:
  using Ops = llvm::SmallVector<mlir::Operation *>;

  mutable mlir::func::FuncOp entry;
  llvm::StringMap<Ops> ofNodes, ofModules; ///< in the order of the text
};

} // namespace accel::stages

#endif // ACCEL_LIB_STAGES_CUTNAMES_H
