// Casts the operands of products to 16 bits and their results back.

#include "Passes.h"
#include "dialects/Interfaces/Castable.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_NARROWPRODUCTSPASS
#include "lib/Precision/Passes.h.inc"

static Type withElement(Value value, Type element) {
  return RankedTensorType::get(
      cast<RankedTensorType>(value.getType()).getShape(), element);
}

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
      op->setOperand(operand, narrow(op->getOperand(operand), op));
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

  /// The value in the type: a view of what it is a view of, or a cast. Stands
  /// where the value does, for all that read it.
  Value narrow(Value value, CastableOpInterface reader) {
    Value &known = narrowed[value];
    if (known)
      return known;
    OpBuilder builder(&getContext());
    Operation *op = value.getDefiningOp();
    Value made;
    SplatElementsAttr equal;
    if (matchPattern(value, m_Constant(&equal))) {
      // One number is rounded now, and stays known.
      auto number = equal.getSplatValue<APFloat>();
      bool losesInfo = false;
      number.convert(narrowType.getFloatSemantics(),
                     APFloat::rmNearestTiesToEven, &losesInfo);
      builder.setInsertionPointAfter(op);
      auto type = cast<ShapedType>(withElement(value, narrowType));
      made = nn::ConstantOp::create(builder, op->getLoc(),
                                    DenseElementsAttr::get(type, number));
    } else if (op && isView(op)) {
      Value operand = narrow(op->getOperand(0), reader);
      builder.setInsertionPointAfter(op);
      Operation *view = builder.clone(*op);
      view->setOperand(0, operand);
      view->getResult(0).setType(
          cast<RankedTensorType>(withElement(value, narrowType)));
      made = view->getResult(0);
    } else {
      if (op)
        builder.setInsertionPointAfter(op);
      else
        builder.setInsertionPointToStart(value.getParentBlock());
      auto cast = nn::CastOp::create(builder, reader.getLoc(),
                                     withElement(value, narrowType), value);
      cast->setAttr(nn::kReasonAttr, reasonOf(reader));
      made = cast;
    }
    return narrowed[value] = made;
  }

  llvm::DenseMap<Value, Value> narrowed;
  FloatType narrowType;
};
} // namespace
} // namespace accel::precision
