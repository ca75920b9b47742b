// How elementwise ops take part in kernels: any row of the result needs the
// same row of the operands. They differ in what computing them twice costs.

#include "accel/Plan/KernelModels.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
template <typename Op, bool Cheap>
struct ElementwiseKernel
    : KernelSourceOpInterface::ExternalModel<ElementwiseKernel<Op, Cheap>, Op> {
  KernelRole getKernelRole(Operation *) const {
    return KernelRole::Elementwise;
  }
  bool isRowLocal(Operation *op, unsigned operand, int64_t rows) const {
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    return type.getNumElements() % rows == 0;
  }
  bool isCheap(Operation *) const { return Cheap; }
};

template <bool Cheap, typename... Ops> void attach(MLIRContext &context) {
  (Ops::template attachInterface<ElementwiseKernel<Ops, Cheap>>(context), ...);
}
} // namespace

void plan::attachElementwiseKernelModels(MLIRContext &context) {
  using namespace nn;
  attach<true, NegOp, AbsOp, ReluOp, FloorOp, NotOp, IsNanOp, AddOp, SubOp,
         MulOp, MinOp, MaxOp, AndOp, OrOp, CompareOp, SelectOp, CastOp>(
      context);
  attach<false, ExpOp, LogOp, Log1pOp, SqrtOp, RsqrtOp, ReciprocalOp, TanhOp,
         ErfOp, SigmoidOp, SinOp, CosOp, GeluOp, DivOp, ModOp, PowOp,
         RandomUniformOp>(context);
}

void plan::registerKernelSourceModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementwiseKernelModels(*context);
    attachShapeKernelModels(*context);
    attachReductionKernelModels(*context);
  });
}
