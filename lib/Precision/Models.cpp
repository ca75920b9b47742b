// Which nn ops may compute in a narrower type: those whose library sums in f32.

#include "Models.h"
#include "dialects/Interfaces/Castable.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

namespace {
struct MatmulCastable
    : CastableOpInterface::ExternalModel<MatmulCastable, nn::MatmulOp> {
  SmallVector<unsigned> getCastableOperands(Operation *) const {
    return {0, 1};
  }
  StringRef getCastReason(Operation *) const { return "f32 sums"; }
};

template <typename Op>
struct ConvolutionCastable
    : CastableOpInterface::ExternalModel<ConvolutionCastable<Op>, Op> {
  SmallVector<unsigned> getCastableOperands(Operation *) const {
    return {0, 1};
  }
  StringRef getCastReason(Operation *) const { return "f32 sums"; }
};

struct GroupedMatmulCastable
    : CastableOpInterface::ExternalModel<GroupedMatmulCastable,
                                         nn::GroupedMatmulOp> {
  SmallVector<unsigned> getCastableOperands(Operation *) const {
    return {0, 1};
  }
  StringRef getCastReason(Operation *) const { return "f32 sums"; }
};

/// A mask of floats is of the query's type.
struct AttentionCastable
    : CastableOpInterface::ExternalModel<AttentionCastable, nn::AttentionOp> {
  SmallVector<unsigned> getCastableOperands(Operation *op) const {
    Value mask = cast<nn::AttentionOp>(op).getMask();
    if (mask && isa<FloatType>(getElementTypeOrSelf(mask.getType())))
      return {0, 1, 2, 3};
    return {0, 1, 2};
  }
  StringRef getCastReason(Operation *) const { return "f32 scores and sums"; }
};
} // namespace

void precision::registerCastableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    nn::MatmulOp::attachInterface<MatmulCastable>(*context);
    nn::ConvOp::attachInterface<ConvolutionCastable<nn::ConvOp>>(*context);
    nn::ConvInputGradOp::attachInterface<
        ConvolutionCastable<nn::ConvInputGradOp>>(*context);
    nn::GroupedMatmulOp::attachInterface<GroupedMatmulCastable>(*context);
    nn::AttentionOp::attachInterface<AttentionCastable>(*context);
  });
}
