// Rows: what is worth keeping, and the loops over them.

#include "Row.h"

#include "dialects/Interfaces/KernelSource.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace accel;

/// Whether reading an element again means computing something expensive again.
static bool isCostly(Value tensor) {
  SmallVector<Value> work{tensor};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    auto source = dyn_cast<KernelSourceOpInterface>(op);
    if (!source)
      continue;
    // A reduction's statistics are kept anyway.
    if (source.getKernelRole() != KernelRole::RowReduction && !source.isCheap())
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

Row::Row(RowEmitter &emitter, Value tensor, ArrayRef<int64_t> shape,
         std::function<Values(ArrayRef<Value>)> getIndex)
    : e(emitter), tensor(tensor), shape(shape), getIndex(std::move(getIndex)),
      elements(ShapedType::getNumElements(shape)) {
  if (isCostly(tensor))
    kept = e.scratch(
        e.getComputeType(
            cast<RankedTensorType>(tensor.getType()).getElementType()),
        elements);
}

Value Row::read(ArrayRef<Value> index) {
  Type type = e.getComputeType(
      cast<RankedTensorType>(tensor.getType()).getElementType());
  if (kept && filled)
    return e.loadScratch(kept, e.linearize(index, shape), type);
  Value element = e.element(tensor, getIndex(index));
  if (kept)
    e.storeScratch(element, kept, e.linearize(index, shape));
  return element;
}

Row::Values Row::loop(ValueRange initial, Body body) {
  Values last =
      e.loops(shape, initial, [&](ArrayRef<Value> index, ValueRange carried) {
        return body(read(index), carried);
      });
  filled = true;
  return last;
}
