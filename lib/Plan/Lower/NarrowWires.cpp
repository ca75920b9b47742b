// Writes a collective's type on the wire as casts around it.

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "lib/Plan/Passes.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_NARROWWIRESPASS
#include "lib/Plan/Passes.h.inc"

static Type withElement(Type type, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(type).getShape(),
                               element);
}

namespace {
struct NarrowWiresPass : impl::NarrowWiresPassBase<NarrowWiresPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](dist::CollectiveOpInterface op) {
      std::optional<Type> wire = op.getWireType();
      if (!wire)
        return;
      op->removeAttr("wire");
      Value input = op->getOperand(0), result = op->getResult(0);
      Type own = result.getType();
      OpBuilder builder(op);
      op->setOperand(0, nn::CastOp::create(builder, op.getLoc(),
                                           withElement(input.getType(), *wire),
                                           input));
      result.setType(withElement(own, *wire));
      builder.setInsertionPointAfter(op);
      auto back = nn::CastOp::create(builder, op.getLoc(), own, result);
      result.replaceAllUsesExcept(back.getResult(), back);
    });
  }
};
} // namespace
} // namespace accel::plan
