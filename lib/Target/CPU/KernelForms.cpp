// What the CPU decides of a kernel beside its grid: how much scratch a thread
// has for rows that its stack has no room for. Without it they are computed
// again wherever they are read: the exponentials of a softmax over a
// vocabulary, the sum before each element of a long scan, the indices that name
// a row of a table.

#include "Device/CPU/Kernel.h"
#include "EmitKernel.h"
#include "Kernels.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

/// What a thread may have for one kernel. Longer rows leave the second level of
/// cache, where reading them costs more than it saves: the gradient of a loss
/// over rows of 1 MiB takes 18 ms with them and 27 without, over rows of 2 MiB
/// 22 and 16 (a thread of an AMD EPYC with 1 MiB a core).
static constexpr int64_t kMostScratch = 1 << 20;

FailureOr<int64_t> cpu::parseForm(plan::KernelOp kernel) {
  int64_t bytes = 0;
  if (DictionaryAttr form = kernel.getFormAttr())
    for (NamedAttribute entry : form) {
      if (entry.getName() != rt::cpu::kThreadScratch)
        return kernel.emitOpError()
               << "expected nothing but '" << rt::cpu::kThreadScratch
               << "' in the form of a kernel of the target 'cpu', found "
               << entry.getName();
      auto number = dyn_cast<IntegerAttr>(entry.getValue());
      if (!number || number.getInt() <= 0 ||
          number.getInt() % rt::cpu::kScratchAlignment != 0)
        return kernel.emitOpError()
               << "expected a positive multiple of "
               << rt::cpu::kScratchAlignment << " as '"
               << rt::cpu::kThreadScratch << "', found " << entry.getValue();
      bytes = number.getInt();
    }
  std::optional<plan::ViewAttr> scratch = kernel.getScratch();
  if (scratch && bytes == 0)
    return kernel.emitOpError() << "expected scratch only where the form gives "
                                   "threads any";
  int64_t found = scratch ? scratch->getSpanBytes() : 0;
  if (found < bytes)
    return kernel.emitOpError()
           << "expected " << bytes << " bytes of scratch, one thread's, found "
           << found;
  return bytes;
}

/// Whether the rows that are worth keeping may be longer than the stack: to
/// know it takes emitting the kernel, some milliseconds. (With a bound that is
/// too low a kernel computes rows again, as one does without scratch.)
static bool mayNeedScratch(func::FuncOp kernel) {
  int64_t rows = kernel->getAttrOfType<IntegerAttr>(plan::kRowsAttr).getInt();
  // Of a tensor that is read twice two rows, of f64 or of positions.
  constexpr int64_t bytesAnElement = 2 * sizeof(double);
  int64_t bytes = 0;
  kernel.walk([&](KernelSourceOpInterface op) {
    // One that reduces keeps a panel of sums.
    if (op.getKernelRole() != KernelRole::RowReduction ||
        isa<nn::ReduceOp>(*op))
      return;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = cast<RankedTensorType>(operand.get().getType());
      bool isOfRow = op.isRowLocal(operand.getOperandNumber(), rows);
      bytes += type.getNumElements() /
               (isOfRow ? std::max<int64_t>(rows, 1) : 1) * bytesAnElement;
    }
  });
  return bytes > RowEmitter::kStackLimit;
}

int64_t cpu::measureScratch(const KernelInstance &instance) {
  if (!mayNeedScratch(instance.function))
    return 0;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = makeKernelModule(context);
  KernelInstance tried = instance;
  tried.threadScratch = kMostScratch;
  auto measure = [&] {
    int64_t used = emitKernel(*module, tried);
    module->getBody()->clear();
    return used;
  };
  int64_t most = measure();
  // Rows that are added to a table in place are looked for beforehand.
  func::FuncOp kernel = instance.function;
  if (!kernel.getOps<nn::ScatterAddOp>().empty())
    for (auto [input, output] : llvm::enumerate(instance.inPlace))
      if (output < 0) {
        tried.inPlace = instance.inPlace;
        tried.inPlace[input] = 0;
        most = std::max(most, measure());
      }
  return llvm::alignTo(most, rt::cpu::kScratchAlignment);
}
