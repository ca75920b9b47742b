// Rows: what is worth keeping, and how they are read.

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

Row::Row(ElementBuilder &builder, Value tensor, ArrayRef<int64_t> shape,
         std::function<Values(ArrayRef<Value>)> getIndex)
    : e(builder), tensor(tensor), shape(shape), getIndex(std::move(getIndex)),
      elements(ShapedType::getNumElements(shape)) {
  if (isCostly(tensor))
    kept = e.scratch(getType(), elements);
}

Type Row::getType() const {
  return e.getComputeType(
      cast<RankedTensorType>(tensor.getType()).getElementType());
}

Value Row::read(ArrayRef<Value> index) {
  if (kept && filled)
    return e.loadScratch(kept, e.linearize(index, shape), getType());
  Value element = e.element(tensor, getIndex(index));
  if (kept)
    e.storeScratch(element, kept, e.linearize(index, shape));
  return element;
}

Value Row::reduceAt(Combine kind,
                    function_ref<Value(Value, ArrayRef<Value>)> term) {
  Value result = e.reduce(
      kind, getType(), shape,
      [&](ArrayRef<Value> index) { return term(read(index), index); },
      /*areNeighbours=*/true);
  filled = true;
  return result;
}

Value Row::reduce(Combine kind, function_ref<Value(Value)> term) {
  return reduceAt(
      kind, [&](Value element, ArrayRef<Value>) { return term(element); });
}
