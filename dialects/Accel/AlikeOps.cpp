// By name, types, and attributes but for numbers and symbols.

#include "AlikeOps.h"

using namespace mlir;

llvm::hash_code accel::hashAlike(Operation *op, llvm::StringRef except) {
  llvm::hash_code hash = llvm::hash_combine(op->getName().getAsOpaquePointer(),
                                            op->getNumOperands());
  for (NamedAttribute attr : op->getAttrs())
    if (attr.getName() != except &&
        !isa<IntegerAttr, SymbolRefAttr>(attr.getValue()))
      hash = llvm::hash_combine(hash, attr.getName().getAsOpaquePointer(),
                                attr.getValue().getAsOpaquePointer());
  for (Type type : op->getOperandTypes())
    hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
  for (Type type : op->getResultTypes())
    hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
  return hash;
}
