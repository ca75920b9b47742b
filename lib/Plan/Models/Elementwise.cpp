// How elementwise ops take part in kernels: any row of the result needs the
// same row of the operands. They differ in what computing them twice costs.

#include "Group.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
template <typename Op>
struct ElementwiseKernel
    : KernelSourceOpInterface::ExternalModel<ElementwiseKernel<Op>, Op> {
  KernelRole getKernelRole(Operation *) const {
    return KernelRole::Elementwise;
  }
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    return type.getNumElements() % rows == 0;
  }
  bool isCheap(Operation *) const { return Op::kFacts.isCheap; }
};
} // namespace

void plan::attachElementwiseModels(MLIRContext *context) {
  nn::forEachElementwiseOp([&](auto tag) {
    using Op = typename decltype(tag)::type;
    Op::template attachInterface<ElementwiseKernel<Op>>(*context);
  });
}
