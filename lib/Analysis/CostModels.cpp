// FLOPs of the nn ops. Ops that only move elements cost none; elementwise ops
// one per element; the products what their sums and multiplications are.

#include "accel/Analysis/CostModels.h"

#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

static int64_t elements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

namespace {
/// A fixed number of operations per element of the first operand.
template <typename Op, int64_t PerElement>
struct PerElementCost
    : CostOpInterface::ExternalModel<PerElementCost<Op, PerElement>, Op> {
  int64_t getFlops(Operation *op) const {
    if constexpr (PerElement == 0)
      return 0;
    else
      return PerElement * elements(op->getOperand(0));
  }
};

struct MatmulCost : CostOpInterface::ExternalModel<MatmulCost, nn::MatmulOp> {
  int64_t getFlops(Operation *op) const {
    auto matmul = cast<nn::MatmulOp>(op);
    ArrayRef<int64_t> lhs = matmul.getLhs().getType().getShape();
    int64_t inner = lhs[lhs.size() - (matmul.getTransposeLhs() ? 2 : 1)];
    return 2 * inner * elements(matmul.getResult());
  }
};

/// Scores of a head that are not hidden.
int64_t countScores(int64_t rows, int64_t keys, bool causal) {
  if (!causal)
    return rows * keys;
  int64_t scores = 0;
  for (int64_t row = 0; row < rows; ++row)
    scores += std::clamp<int64_t>(row + 1 + keys - rows, 0, keys);
  return scores;
}

/// Both products and a softmax of five operations per score; of a causal one
/// only the scores that are not hidden.
struct AttentionCost
    : CostOpInterface::ExternalModel<AttentionCost, nn::AttentionOp> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<nn::AttentionOp>(op);
    ArrayRef<int64_t> q = attention.getQuery().getType().getShape();
    int64_t keys = attention.getKey().getType().getDimSize(2);
    int64_t scores = countScores(q[2], keys, attention.getCausal());
    int64_t width = q[3] + attention.getValue().getType().getDimSize(3);
    return q[0] * q[1] * scores * (2 * width + 5);
  }
};

/// Five products of the forward's two kinds, of which the scores' is one, and
/// twelve operations per score.
struct AttentionGradCost
    : CostOpInterface::ExternalModel<AttentionGradCost, nn::AttentionGradOp> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<nn::AttentionGradOp>(op);
    ArrayRef<int64_t> q = attention.getQuery().getType().getShape();
    int64_t keys = attention.getKey().getType().getDimSize(2);
    int64_t width = 3 * q[3] + 2 * attention.getValue().getType().getDimSize(3);
    return q[0] * q[1] * countScores(q[2], keys, attention.getCausal()) *
           (2 * width + 12);
  }
};

/// One addition per element of the updates.
struct ScatterAddCost
    : CostOpInterface::ExternalModel<ScatterAddCost, nn::ScatterAddOp> {
  int64_t getFlops(Operation *op) const { return elements(op->getOperand(2)); }
};

template <int64_t PerElement, typename... Ops>
void attachPerElement(MLIRContext *context) {
  (Ops::template attachInterface<PerElementCost<Ops, PerElement>>(*context),
   ...);
}
} // namespace

void analysis::registerCostModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    using namespace nn;
    attachPerElement<0, ReshapeOp, TransposeOp, BroadcastOp, SliceOp, ConcatOp,
                     PadOp, GatherOp, GatherNdOp, CastOp, SelectOp, ConstantOp,
                     IotaOp, GradientOp>(context);
    attachPerElement<1, NegOp, AbsOp, ExpOp, LogOp, Log1pOp, SqrtOp, RsqrtOp,
                     ReciprocalOp, TanhOp, ErfOp, SigmoidOp, ReluOp, SinOp,
                     CosOp, FloorOp, NotOp, IsNanOp, AddOp, SubOp, MulOp, DivOp,
                     ModOp, PowOp, MinOp, MaxOp, AndOp, OrOp, CompareOp,
                     ReduceOp, CumsumOp>(context);
    attachPerElement<5, SoftmaxOp, CrossEntropyOp>(context);
    attachPerElement<8, GeluOp, LayerNormOp>(context);
    MatmulOp::attachInterface<MatmulCost>(*context);
    AttentionOp::attachInterface<AttentionCost>(*context);
    AttentionGradOp::attachInterface<AttentionGradCost>(*context);
    ScatterAddOp::attachInterface<ScatterAddCost>(*context);
    // Ten rounds of two multiplications and four other operations.
    attachPerElement<60, RandomUniformOp>(context);
  });
}
