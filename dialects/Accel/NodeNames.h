// The names of the nodes that an op was made of, and of the modules that they
// lie in, as locations keep them.

#ifndef ACCEL_DIALECTS_ACCEL_NODENAMES_H
#define ACCEL_DIALECTS_ACCEL_NODENAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace accel {

/// Tells the nodes of a location, and the modules: each, the innermost first,
/// by its path (`transformer.h.1`), where the exporter wrote it down
/// (torch.onnx with dynamo), or where names of nodes are such paths
/// (`/transformer/h.1/ln/Add`, of the exporter before it). Of text that was
/// read again the nodes are called as its values are.
void forEachName(mlir::Location location,
                 llvm::function_ref<void(llvm::StringRef)> node,
                 llvm::function_ref<void(llvm::StringRef)> module);

/// The modules of a location, each once, the outermost first.
llvm::SmallVector<std::string, 4> listModules(mlir::Location location);

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_NODENAMES_H
