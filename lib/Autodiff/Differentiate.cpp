// The reverse walk: from the loss back to the parameters, op by op.

#include "Differentiate.h"

#include "dialects/Interfaces/Differentiable.h"
#include "dialects/NN/Concat.h"
#include "dialects/NN/NN.h"
#include "lib/Autodiff/Models/Group.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;

namespace {
class Reverse {
public:
  Reverse(OpBuilder &builder, Value loss, ValueRange wrt)
      : builder(builder), loss(loss), wrt(wrt) {}
  FailureOr<SmallVector<Value>> run();

private:
  void findActive();
  bool passesTermsOn(Operation *op) const;
  LogicalResult visit(Operation *op);
  LogicalResult visit(Operation *op, ArrayRef<Value> gradients);
  Value getGradient(Value value);
  bool isActive(Value value) const {
    return active.contains(value) &&
           isa<FloatType>(getElementTypeOrSelf(value.getType()));
  }
  InFlightDiagnostic &explain(InFlightDiagnostic &diagnostic, Operation *op);

  OpBuilder &builder;
  Value loss;
  ValueRange wrt;
  llvm::DenseSet<Value> active; // depend on `wrt`
  llvm::DenseMap<Value, SmallVector<Value>> terms;
};
} // namespace

FailureOr<SmallVector<Value>>
autodiff::differentiate(OpBuilder &builder, Value loss, ValueRange wrt) {
  return Reverse(builder, loss, wrt).run();
}

void Reverse::findActive() {
  active.insert(wrt.begin(), wrt.end());
  SmallVector<Value> work(wrt.begin(), wrt.end());
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers())
      for (Value result : user->getResults())
        if (active.insert(result).second)
          work.push_back(result);
}

/// Slices of one tensor that together are all of it: zeros around each of their
/// gradients, added up, are the gradients side by side. Null if `pads`, whose
/// values are zeros, are not of that kind.
static Value joinPads(OpBuilder &builder, SmallVector<nn::PadOp> pads) {
  // The one dimension in which they differ from the whole.
  std::optional<int64_t> along;
  for (nn::PadOp pad : pads)
    for (int64_t dim = 0, rank = pad.getType().getRank(); dim < rank; ++dim)
      if (pad.getLow()[dim] != 0 || pad.getHigh()[dim] != 0) {
        if (along && *along != dim)
          return {};
        along = dim;
      }
  if (!along)
    return {};
  llvm::sort(pads, [&](nn::PadOp lhs, nn::PadOp rhs) {
    return lhs.getLow()[*along] < rhs.getLow()[*along];
  });
  int64_t end = 0;
  SmallVector<Value> inputs;
  SmallVector<Location> locations;
  for (nn::PadOp pad : pads) {
    if (pad.getLow()[*along] != end)
      return {};
    end += cast<RankedTensorType>(pad.getInput().getType()).getDimSize(*along);
    inputs.push_back(pad.getInput());
    locations.push_back(pad.getLoc());
  }
  if (end != pads.front().getType().getDimSize(*along))
    return {};
  Location location = builder.getFusedLoc(locations);
  return nn::joinInParts(inputs, [&](ArrayRef<Value> some) -> Value {
    return nn::ConcatOp::create(builder, location, some, *along);
  });
}

/// The sum of what has been found of a value's gradient; null if nothing.
Value Reverse::getGradient(Value value) {
  auto found = terms.find(value);
  if (found == terms.end())
    return {};
  SmallVector<Value> &list = found->second;
  if (list.size() > 1) {
    SmallVector<nn::PadOp> pads;
    SmallVector<Value> others;
    for (Value term : list) {
      auto pad = term.getDefiningOp<nn::PadOp>();
      if (pad && matchPattern(pad.getValue(), m_AnyZeroFloat()))
        pads.push_back(pad);
      else
        others.push_back(term);
    }
    if (Value joined = joinPads(builder, pads)) {
      others.push_back(joined);
      list = others;
    }
    // For the node that made the value. Where a gradient goes through to what
    // a node reads, as along a residual stream, the terms' own locations have
    // those of all layers behind it.
    Location location = autodiff::gradientLoc(value);
    Value sum = list.front();
    for (Value term : ArrayRef(list).drop_front())
      sum = nn::AddOp::create(builder, location, sum, term);
    list = {sum};
  }
  return list.front();
}

/// Names a parameter that the op leads to.
InFlightDiagnostic &Reverse::explain(InFlightDiagnostic &diagnostic,
                                     Operation *op) {
  llvm::SetVector<Value> work(op->operand_begin(), op->operand_end());
  for (size_t next = 0; next < work.size(); ++next) {
    auto argument = dyn_cast<BlockArgument>(work[next]);
    if (argument && llvm::is_contained(wrt, work[next])) {
      auto function =
          dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
      if (auto state = function ? function.getArgAttrOfType<FlatSymbolRefAttr>(
                                      argument.getArgNumber(), nn::kStateAttr)
                                : nullptr)
        return diagnostic << ", on the way from the loss to parameter '"
                          << state.getValue() << "'";
    }
    if (Operation *definition = work[next].getDefiningOp())
      work.insert(definition->operand_begin(), definition->operand_end());
  }
  return diagnostic;
}

/// Whether each term of a value's gradient goes on by itself: of a transpose
/// that several convolutions read, since their sum would have channels first
/// where all else has them last (nn-put-channels-last).
bool Reverse::passesTermsOn(Operation *op) const {
  if (!isa<nn::TransposeOp>(op))
    return false;
  auto found = terms.find(op->getResult(0));
  return found != terms.end() && found->second.size() > 1 &&
         llvm::all_of(found->second, [](Value term) {
           return term.getDefiningOp<nn::ConvInputGradOp>();
         });
}

LogicalResult Reverse::visit(Operation *op) {
  if (passesTermsOn(op)) {
    SmallVector<Value> list = terms.find(op->getResult(0))->second;
    return failure(llvm::any_of(
        list, [&](Value term) { return failed(visit(op, {term})); }));
  }
  SmallVector<Value> gradients;
  for (Value result : op->getResults())
    gradients.push_back(isActive(result) ? getGradient(result) : Value());
  return visit(op, gradients);
}

/// Of an op whose results have these gradients, null for those without.
LogicalResult Reverse::visit(Operation *op, ArrayRef<Value> gradients) {
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(isActive(operand));
  if (llvm::none_of(gradients, [](Value value) { return bool(value); }) ||
      !llvm::is_contained(wanted, true))
    return success();
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable) {
    InFlightDiagnostic diagnostic = op->emitOpError();
    diagnostic << "has no gradient";
    return explain(diagnostic, op);
  }
  SmallVector<Value> operandGradients(op->getNumOperands());
  if (failed(differentiable.buildVjp(builder, gradients, wanted,
                                     operandGradients)))
    return failure();
  for (auto [operand, gradient, asked] :
       llvm::zip_equal(op->getOperands(), operandGradients, wanted)) {
    assert((!gradient || !asked || gradient.getType() == operand.getType()) &&
           "a gradient has its operand's type");
    if (asked && gradient)
      terms[operand].push_back(gradient);
  }
  return success();
}

FailureOr<SmallVector<Value>> Reverse::run() {
  auto type = cast<RankedTensorType>(loss.getType());
  assert(type.getNumElements() == 1 && isa<FloatType>(type.getElementType()) &&
         "the gradient of a scalar");
  findActive();
  if (isActive(loss)) {
    Value one = nn::ConstantOp::create(
        builder, loss.getLoc(),
        DenseElementsAttr::get(type,
                               builder.getFloatAttr(type.getElementType(), 1)));
    terms[loss].push_back(one);
  }
  if (Operation *last = loss.getDefiningOp()) {
    SmallVector<Operation *> ops;
    for (Operation &op : *last->getBlock()) {
      ops.push_back(&op);
      if (&op == last)
        break;
    }
    for (Operation *op : llvm::reverse(ops))
      if (failed(visit(op)))
        return failure();
  }
  SmallVector<Value> result;
  for (Value value : wrt)
    result.push_back(getGradient(value));
  return result;
}
