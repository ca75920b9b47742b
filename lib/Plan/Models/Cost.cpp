// FLOPs of the nn ops. Ops that only move elements cost none; elementwise ops
// one per element; the products what their sums and multiplications are.

#include "lib/Plan/Models.h"

#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Flops.h"

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
    return cost::countProductFlops(inner, elements(matmul.getResult()));
  }
};

/// A product of the inner size for each element of the rows that come out, or
/// go in.
struct GroupedMatmulCost
    : CostOpInterface::ExternalModel<GroupedMatmulCost, nn::GroupedMatmulOp> {
  int64_t getFlops(Operation *op) const {
    auto matmul = cast<nn::GroupedMatmulOp>(op);
    return cost::countProductFlops(matmul.getLhs().getType().getDimSize(1),
                                   elements(matmul.getResult()));
  }
};
struct GroupedMatmulGradCost
    : CostOpInterface::ExternalModel<GroupedMatmulGradCost,
                                     nn::GroupedMatmulGradOp> {
  int64_t getFlops(Operation *op) const {
    auto matmul = cast<nn::GroupedMatmulGradOp>(op);
    return cost::countProductFlops(matmul.getLhs().getType().getDimSize(1),
                                   elements(matmul.getRhs()));
  }
};

/// A term for each of a channel's places in the window, at each position.
template <typename Op>
struct ConvolutionCost
    : CostOpInterface::ExternalModel<ConvolutionCost<Op>, Op> {
  int64_t getFlops(Operation *op) const {
    auto conv = cast<Op>(op);
    // The output has a dimension of channels, which the weight has as well.
    Value weight, output;
    if constexpr (std::is_same_v<Op, nn::ConvOp>)
      weight = conv.getRhs(), output = conv.getResult();
    else if constexpr (std::is_same_v<Op, nn::ConvInputGradOp>)
      weight = conv.getRhs(), output = conv.getLhs();
    else
      weight = conv.getResult(), output = conv.getRhs();
    ArrayRef<int64_t> window = cast<RankedTensorType>(weight.getType())
                                   .getShape()
                                   .take_back(conv.getSizes().size() + 1);
    return cost::countProductFlops(ShapedType::getNumElements(window),
                                   elements(output));
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

/// Of attention and of its gradient, as lib/Cost/Flops.h counts them.
template <auto count, typename Op>
struct AttentionCost
    : CostOpInterface::ExternalModel<AttentionCost<count, Op>, Op> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<Op>(op);
    ArrayRef<int64_t> query = attention.getQuery().getType().getShape();
    return count(cost::countScores(attention, query,
                                   attention.getKey().getType().getDimSize(2)),
                 query[3], attention.getValue().getType().getDimSize(3));
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
    ConvOp::attachInterface<ConvolutionCost<ConvOp>>(*context);
    ConvInputGradOp::attachInterface<ConvolutionCost<ConvInputGradOp>>(
        *context);
    ConvWeightGradOp::attachInterface<ConvolutionCost<ConvWeightGradOp>>(
        *context);
    NewtonSchulzOp::attachInterface<NewtonSchulzCost>(*context);
    TopKOp::attachInterface<TopKCost>(*context);
    AttentionOp::attachInterface<
        AttentionCost<cost::countAttentionFlops, AttentionOp>>(*context);
    AttentionGradOp::attachInterface<
        AttentionCost<cost::countAttentionGradFlops, AttentionGradOp>>(
        *context);
    ScatterAddOp::attachInterface<ScatterAddCost>(*context);
  });
}
