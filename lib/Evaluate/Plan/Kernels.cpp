// Kernels: their function of nn ops on what the inputs' bytes hold, and the
// proof that writing in place is legal.

#include "lib/Evaluate/Lockstep.h"
#include "lib/Evaluate/Plan/Commands.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
class KernelEvaluator {
public:
  KernelEvaluator(plan::KernelOp kernel, const plan::RunTurn &run,
                  RankMemory &memory, PlanWorld &world)
      : kernel(kernel), run(run), memory(memory), world(world) {}

  LogicalResult execute();

private:
  /// The results of the kernel's function on what its inputs hold now.
  FailureOr<SmallVector<Tensor>> evaluate();
  LogicalResult checkInPlace(ArrayRef<Tensor> results);

  plan::KernelOp kernel;
  plan::RunTurn run;
  RankMemory &memory;
  PlanWorld &world;
};
} // namespace

FailureOr<SmallVector<Tensor>> KernelEvaluator::evaluate() {
  auto function =
      world.getModule().lookupSymbol<func::FuncOp>(kernel.getFunction());
  if (!function)
    return kernel.emitOpError()
           << "names no function " << kernel.getFunctionAttr();
  if (function.getNumArguments() != kernel.getInputs().size() ||
      function.getNumResults() != kernel.getOutputs().size())
    return kernel.emitOpError()
           << "expected " << function.getNumArguments() << " inputs and "
           << function.getNumResults() << " outputs, found "
           << kernel.getInputs().size() << " and "
           << kernel.getOutputs().size();
  SmallVector<GroupTensors> arguments, results;
  for (auto [argument, view] :
       llvm::zip(function.getArguments(),
                 kernel.getInputs().getAsRange<plan::ViewAttr>())) {
    FailureOr<Tensor> tensor = memory.read(kernel, view, run);
    if (failed(tensor))
      return failure();
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.getNumElements() != tensor->getNumElements())
      return kernel.emitOpError()
             << "expected an input of type " << type << ", found view " << view;
    arguments.push_back({tensor->reshape(type.getShape())});
  }
  if (failed(Lockstep(/*mesh=*/{}, /*wholeTensors=*/true, world.getMode())
                 .call(function, arguments, results)))
    return failure();
  SmallVector<Tensor> outputs;
  for (auto [result, view] :
       llvm::zip(results, kernel.getOutputs().getAsRange<plan::ViewAttr>())) {
    if (result.front().getNumElements() != view.getNumElements() ||
        result.front().getElementType() != view.getElement())
      return kernel.emitOpError()
             << "expected an output of type " << result.front().getType()
             << ", found view " << view;
    outputs.push_back(result.front().reshape(view.getShape()));
    outputs.back().roundToElementType(); // as its bytes will hold it
  }
  return outputs;
}

/// The rows before `middle` of one tensor and the others of another.
static Tensor mergeRows(const Tensor &before, const Tensor &after,
                        int64_t middle, int64_t rows) {
  Tensor merged = before;
  size_t start = merged.getNumElements() / rows * middle;
  if (merged.isFloat())
    llvm::copy(after.floats().drop_front(start),
               merged.mutableFloats().begin() + start);
  else
    llvm::copy(after.ints().drop_front(start),
               merged.mutableInts().begin() + start);
  return merged;
}

static bool haveSameBytes(const Tensor &one, const Tensor &other) {
  std::vector<char> bytes(one.getNumElements() * one.getElementBytes());
  std::vector<char> otherBytes(bytes.size());
  one.toBytes(bytes);
  other.toBytes(otherBytes);
  return bytes == otherBytes;
}

/// Threads take a kernel's rows in any order. If it writes where it reads, the
/// rows that are written must not be what the others read: with either half of
/// the rows written, the other half must still come out the same.
LogicalResult KernelEvaluator::checkInPlace(ArrayRef<Tensor> results) {
  SmallVector<plan::ViewAttr> outputs(
      kernel.getOutputs().getAsRange<plan::ViewAttr>());
  int64_t rows = kernel.getRows(), middle = rows / 2;
  SmallVector<Tensor> old;
  for (auto [view, result] : llvm::zip(outputs, results)) {
    if (rows < 1 || result.getNumElements() % rows != 0)
      return kernel.emitOpError()
             << "expected outputs of " << rows << " rows, found view " << view;
    FailureOr<Tensor> tensor = memory.read(kernel, view, run);
    if (failed(tensor))
      return failure();
    old.push_back(*tensor);
  }
  for (bool first : {true, false}) {
    for (auto [view, before, result] : llvm::zip(outputs, old, results))
      if (failed(memory.write(kernel, view, run,
                              first ? mergeRows(result, before, middle, rows)
                                    : mergeRows(before, result, middle, rows))))
        return failure();
    FailureOr<SmallVector<Tensor>> again = evaluate();
    if (failed(again))
      return failure();
    for (auto [view, tensor, result, before] :
         llvm::zip(outputs, *again, results, old)) {
      if (!haveSameBytes(first ? mergeRows(result, tensor, middle, rows)
                               : mergeRows(tensor, result, middle, rows),
                         result))
        return kernel.emitOpError()
               << "writes rows in place that its other rows read";
      if (failed(memory.write(kernel, view, run, before)))
        return failure();
    }
  }
  return success();
}

LogicalResult KernelEvaluator::execute() {
  FailureOr<SmallVector<Tensor>> results = evaluate();
  if (failed(results))
    return failure();
  bool inPlace = false;
  for (auto output : kernel.getOutputs().getAsRange<plan::ViewAttr>())
    for (auto input : kernel.getInputs().getAsRange<plan::ViewAttr>())
      inPlace |= memory.overlap(input, output, run);
  if (inPlace && failed(checkInPlace(*results)))
    return failure();
  for (auto [result, view] :
       llvm::zip(*results, kernel.getOutputs().getAsRange<plan::ViewAttr>()))
    if (failed(memory.write(kernel, view, run, result)))
      return failure();
  return success();
}

LogicalResult evaluate::executeKernel(plan::KernelOp kernel,
                                      const plan::RunTurn &run,
                                      RankMemory &memory, PlanWorld &world) {
  return KernelEvaluator(kernel, run, memory, world).execute();
}
