// Registration of the nn dialect, the checks on the attributes it puts on
// functions, and the helpers that all op groups share.

#include "dialects/NN/Calls.h"
#include "dialects/NN/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::nn;

#include "dialects/NN/NNDialect.cpp.inc"
#include "dialects/NN/NNEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.cpp.inc"

#define GET_OP_DEFS
#include "dialects/NN/NNOps.cpp.inc"

namespace {
/// The states that a function names are looked up when the module is verified,
/// which has a table of them: a search for each argument would make every pass
/// take the square of the states.
struct FunctionStates
    : SymbolUserOpInterface::ExternalModel<FunctionStates, func::FuncOp> {
  LogicalResult verifySymbolUses(Operation *op,
                                 SymbolTableCollection &symbols) const {
    auto function = cast<func::FuncOp>(op);
    auto verify = [&](FlatSymbolRefAttr symbol) -> LogicalResult {
      if (!symbol || symbols.lookupNearestSymbolFrom<StateOp>(op, symbol))
        return success();
      return op->emitError() << "no nn.state named " << symbol;
    };
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (failed(verify(
              function.getArgAttrOfType<FlatSymbolRefAttr>(i, kStateAttr))))
        return failure();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (failed(verify(
              function.getResultAttrOfType<FlatSymbolRefAttr>(i, kStateAttr))))
        return failure();
    return success();
  }
};
} // namespace

void NNDialect::initialize() {
  registerNNDialectOperations(this);
  func::FuncOp::attachInterface<FunctionStates>(*getContext());
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NN/NNAttrs.cpp.inc"
      >();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  if (attribute.getName() == kEntryAttr && isa<FunctionOpInterface>(op)) {
    if (isa<UnitAttr, EntryKindAttr>(attribute.getValue()))
      return success();
    return op->emitError() << "expected a kind as '" << kEntryAttr
                           << "', #nn<entry step> or eval, or none for a "
                              "forward, found "
                           << attribute.getValue();
  }
  if (attribute.getName() == kCallsAttr && isa<ModuleOp>(op)) {
    auto calls = dyn_cast<DictionaryAttr>(attribute.getValue());
    if (calls && llvm::all_of(calls, [](NamedAttribute call) {
          return isa<StringAttr>(call.getValue());
        }))
      return success();
    return op->emitError() << "expected strings by names of nodes as '"
                           << kCallsAttr << "', found " << attribute.getValue();
  }
  if (attribute.getName() == kAutocastAttr && isa<ModuleOp>(op)) {
    if (isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitError() << "expected a string as '" << kAutocastAttr
                           << "', found " << attribute.getValue();
  }
  if (attribute.getName() == kReasonAttr &&
      isa<StringAttr>(attribute.getValue()) &&
      isa<CastOp, MatmulOp, CompleteOp>(op))
    return success();
  if (attribute.getName() == kProductAttr &&
      isa<ProductAttr>(attribute.getValue()) && isa<MatmulOp>(op))
    return success();
  if (attribute.getName() == kMeanAttr && isa<UnitAttr>(attribute.getValue()) &&
      isa<MulOp>(op))
    return success();
  return op->emitError() << "unexpected attribute '"
                         << attribute.getName().getValue()
                         << "'; of nn, modules may carry '" << kCallsAttr
                         << "' and '" << kAutocastAttr << "', functions '"
                         << kEntryAttr << "', casts and nn.complete '"
                         << kReasonAttr << "', matrix products that and '"
                         << kProductAttr << "', and products '" << kMeanAttr
                         << "'";
}

/// A string or a symbol, by attribute name.
static LogicalResult verifyBinding(Operation *op, NamedAttribute attribute,
                                   StringRef nameAttr) {
  StringRef name = attribute.getName().getValue();
  if (name == nameAttr) {
    if (isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitError() << "expected a string as '" << name << "', found "
                           << attribute.getValue();
  }
  if (name != kStateAttr)
    return op->emitError() << "expected '" << nameAttr << "' or '" << kStateAttr
                           << "', found attribute '" << name << "'";
  auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
  if (!symbol)
    return op->emitError() << "expected a symbol as '" << name << "', found "
                           << attribute.getValue();
  return success();
}

LogicalResult NNDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                  unsigned,
                                                  NamedAttribute attribute) {
  return verifyBinding(op, attribute, kInputAttr);
}

LogicalResult NNDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                     unsigned result,
                                                     NamedAttribute attribute) {
  if (attribute.getName() == kWriteAttr) {
    if (!isa<WriteKindAttr>(attribute.getValue()))
      return op->emitError()
             << "expected a kind of write, #nn<write accumulate_sum>, as '"
             << kWriteAttr << "', found " << attribute.getValue();
    auto function = cast<FunctionOpInterface>(op);
    if (!function.getResultAttr(result, kStateAttr))
      return op->emitError()
             << "expected '" << kWriteAttr
             << "' on a state's new value, found it on result " << result;
    return success();
  }
  return verifyBinding(op, attribute, kOutputAttr);
}

bool accel::nn::sameShapesAndElements(TypeRange lhs, TypeRange rhs) {
  if (lhs.size() != rhs.size())
    return false;
  for (auto [left, right] : llvm::zip(lhs, rhs)) {
    auto leftType = dyn_cast<RankedTensorType>(left);
    auto rightType = dyn_cast<RankedTensorType>(right);
    if (!leftType || !rightType ||
        leftType.getShape() != rightType.getShape() ||
        leftType.getElementType() != rightType.getElementType())
      return false;
  }
  return true;
}
