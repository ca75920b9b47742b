// Casts the operands of products to 16 bits and their results back.

#include "Casts.h"
#include "Passes.h"
#include "dialects/Interfaces/Castable.h"
#include "dialects/NN/NN.h"

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_NARROWPRODUCTSPASS
#include "lib/Precision/Passes.h.inc"

namespace {
struct NarrowProductsPass : impl::NarrowProductsPassBase<NarrowProductsPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    if (type == "bf16")
      narrowType = BFloat16Type::get(context);
    else if (type == "f16")
      narrowType = Float16Type::get(context);
    else
      return emitError(UnknownLoc::get(context))
             << "expected bf16 or f16 as the type of products, found '" << type
             << "'";
    return success();
  }

  void runOnOperation() override {
    casts = Casts();
    SmallVector<CastableOpInterface> ops;
    getOperation().walk([&](CastableOpInterface op) { ops.push_back(op); });
    for (CastableOpInterface op : ops)
      rewrite(op);
  }

  void rewrite(CastableOpInterface op) {
    SmallVector<unsigned> operands = op.getCastableOperands();
    for (unsigned operand : operands)
      if (!getElementTypeOrSelf(op->getOperand(operand).getType()).isF32())
        return; // the model's own types stay
    for (unsigned operand : operands)
      op->setOperand(operand, casts.get(op->getOperand(operand), narrowType,
                                        reasonOf(op), op.getLoc()));
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (auto [result, type] : llvm::zip_equal(op->getResults(), infer(op))) {
      Type wide = result.getType();
      if (wide == type)
        continue; // a log-sum-exp, which is a sum
      result.setType(type);
      auto back = nn::CastOp::create(builder, op.getLoc(), wide, result);
      back->setAttr(nn::kReasonAttr, reasonOf(op));
      result.replaceAllUsesExcept(back.getResult(), back);
    }
  }

  /// The types of the results of narrow operands.
  static SmallVector<Type> infer(Operation *op) {
    SmallVector<Type> types;
    LogicalResult inferred = cast<InferTypeOpInterface>(op).inferReturnTypes(
        op->getContext(), op->getLoc(), op->getOperands(),
        op->getRawDictionaryAttrs(), op->getPropertiesStorage(),
        op->getRegions(), types);
    assert(succeeded(inferred) && "operands of one type for another");
    (void)inferred;
    return types;
  }

  StringAttr reasonOf(CastableOpInterface op) {
    return StringAttr::get(&getContext(), op->getName().stripDialect() + ": " +
                                              type + " operands, " +
                                              op.getCastReason());
  }

  Casts casts;
  FloatType narrowType;
};
} // namespace
} // namespace accel::precision
