// FLOPs of the nn ops. Ops that only move elements cost none; elementwise ops
// one per element; the products what their sums and multiplications are.

#include "lib/Plan/Models.h"

#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/Causal.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

static int64_t elements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

namespace {
template <typename Op>
struct ElementwiseCost
    : CostOpInterface::ExternalModel<ElementwiseCost<Op>, Op> {
  int64_t getFlops(Operation *op) const {
    return Op::kFacts.flops * elements(op->getResult(0));
  }
};

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

/// A product of the inner size for each element of the rows that come out, or
/// go in.
struct GroupedMatmulCost
    : CostOpInterface::ExternalModel<GroupedMatmulCost, nn::GroupedMatmulOp> {
  int64_t getFlops(Operation *op) const {
    auto matmul = cast<nn::GroupedMatmulOp>(op);
    return 2 * matmul.getLhs().getType().getDimSize(1) *
           elements(matmul.getResult());
  }
};
struct GroupedMatmulGradCost
    : CostOpInterface::ExternalModel<GroupedMatmulGradCost,
                                     nn::GroupedMatmulGradOp> {
  int64_t getFlops(Operation *op) const {
    auto matmul = cast<nn::GroupedMatmulGradOp>(op);
    return 2 * matmul.getLhs().getType().getDimSize(1) *
           elements(matmul.getRhs());
  }
};

/// In each step two products of the matrix with what is of its shorter side,
/// one of that with itself, and five operations of elements.
struct NewtonSchulzCost
    : CostOpInterface::ExternalModel<NewtonSchulzCost, nn::NewtonSchulzOp> {
  int64_t getFlops(Operation *op) const {
    auto iterations = cast<nn::NewtonSchulzOp>(op);
    ArrayRef<int64_t> sizes = iterations.getType().getShape().take_back(2);
    int64_t all = elements(iterations.getResult());
    int64_t side = std::min(sizes[0], sizes[1]),
            grams = all / std::max(sizes[0], sizes[1]) * side;
    return iterations.getSteps() *
           (4 * side * all + 2 * side * grams + 2 * all + 3 * grams);
  }
};

/// A comparison of each element in each of the `k` rounds.
struct TopKCost : CostOpInterface::ExternalModel<TopKCost, nn::TopKOp> {
  int64_t getFlops(Operation *op) const {
    return cast<nn::TopKOp>(op).getK() * elements(op->getOperand(0));
  }
};

/// Scores that are not hidden.
template <typename AttentionLike> int64_t countScores(AttentionLike op) {
  ArrayRef<int64_t> q = op.getQuery().getType().getShape();
  return q[0] * q[1] *
         accel::countScores(op, q[2], op.getKey().getType().getDimSize(2));
}

/// Both products and a softmax of five operations per score; of a causal one
/// only the scores that are not hidden.
struct AttentionCost
    : CostOpInterface::ExternalModel<AttentionCost, nn::AttentionOp> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<nn::AttentionOp>(op);
    int64_t width = attention.getQuery().getType().getDimSize(3) +
                    attention.getValue().getType().getDimSize(3);
    return countScores(attention) * (2 * width + 5);
  }
};

/// Five products of the forward's two kinds, of which the scores' is one, and
/// six operations per score: its scale, less the log-sum-exp, the exponential,
/// and three for the slope.
struct AttentionGradCost
    : CostOpInterface::ExternalModel<AttentionGradCost, nn::AttentionGradOp> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<nn::AttentionGradOp>(op);
    int64_t width = 3 * attention.getQuery().getType().getDimSize(3) +
                    2 * attention.getValue().getType().getDimSize(3);
    return countScores(attention) * (2 * width + 6);
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

void plan::registerCostModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    using namespace nn;
    forEachElementwiseOp([&](auto tag) {
      using Op = typename decltype(tag)::type;
      Op::template attachInterface<ElementwiseCost<Op>>(*context);
    });
    attachPerElement<0, DealRowsOp, ReshapeOp, TransposeOp, BroadcastOp,
                     SliceOp, ConcatOp, PadOp, GatherOp, GatherNdOp, ConstantOp,
                     IotaOp, GradientOp, CompleteOp, CutOp>(context);
    attachPerElement<1, ReduceOp, CumsumOp>(context);
    attachPerElement<5, SoftmaxOp, CrossEntropyOp>(context);
    attachPerElement<8, LayerNormOp>(context);
    MatmulOp::attachInterface<MatmulCost>(*context);
    GroupedMatmulOp::attachInterface<GroupedMatmulCost>(*context);
    GroupedMatmulGradOp::attachInterface<GroupedMatmulGradCost>(*context);
    NewtonSchulzOp::attachInterface<NewtonSchulzCost>(*context);
    TopKOp::attachInterface<TopKCost>(*context);
    AttentionOp::attachInterface<AttentionCost>(*context);
    AttentionGradOp::attachInterface<AttentionGradCost>(*context);
    ScatterAddOp::attachInterface<ScatterAddCost>(*context);
  });
}
