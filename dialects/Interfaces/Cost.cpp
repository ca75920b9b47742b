// What all Cost models share: the bytes of tensors.

#include "dialects/Interfaces/Cost.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

#include "dialects/Interfaces/Cost.cpp.inc"

int64_t accel::getTensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementType().getIntOrFloatBitWidth(), 8);
}

int64_t accel::getOperandAndResultBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += getTensorBytes(type);
  for (Type type : op->getResultTypes())
    bytes += getTensorBytes(type);
  return bytes;
}
