// The roofline of an op.

#include "Work.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

/// Whether one kernel may have both, and nothing between them in memory.
static bool areFused(Operation *maker, Operation *reader) {
  return maker && maker->getBlock() == reader->getBlock() &&
         isa<KernelSourceOpInterface>(maker) &&
         isa<KernelSourceOpInterface>(reader);
}

int64_t cost::getTraffic(Operation *op) {
  if (auto scatter = dyn_cast<nn::ScatterAddOp>(op))
    return 3 * getTensorBytes(scatter.getUpdates().getType());
  int64_t bytes = 0, most = std::numeric_limits<int64_t>::max();
  auto source = dyn_cast<KernelSourceOpInterface>(op);
  if (source && source.getKernelRole() == KernelRole::Movement)
    most = getTensorBytes(op->getResult(0).getType());
  for (Value operand : op->getOperands())
    if (!areFused(operand.getDefiningOp(), op))
      bytes += std::min(most, getTensorBytes(operand.getType()));
  for (Value result : op->getResults())
    if (result.use_empty() || llvm::any_of(result.getUsers(), [&](auto *user) {
          return !areFused(op, user);
        }))
      bytes += getTensorBytes(result.getType());
  return bytes;
}

double cost::getWork(Operation *op) {
  if (isa<dist::AccumulateOp>(op))
    return 3 * kFlopsPerByteMoved * getTensorBytes(op->getResult(0).getType());
  if (isa<dist::CollectiveOpInterface>(op))
    return kFlopsPerMessage +
           kFlopsPerByteSent * getTensorBytes(op->getResult(0).getType());
  auto counted = dyn_cast<CostOpInterface>(op);
  if (!counted || isView(op))
    return 0;
  return std::max<double>(counted.getFlops(),
                          kFlopsPerByteMoved * getTraffic(op));
}
