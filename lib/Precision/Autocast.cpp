// Computes each op in the type that torch.autocast gives it.

#include "AutocastLists.h"
#include "Casts.h"
#include "Passes.h"
#include "dialects/Interfaces/Castable.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/Calls.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_AUTOCASTPASS
#include "lib/Precision/Passes.h.inc"

namespace {

/// How much a value says of the type of what reads it: a tensor with
/// dimensions all, one without them less, a number in the code least.
enum class Say { Number, Scalar, Tensor };

/// Ops that PyTorch runs as one.
struct Call {
  StringRef name;      ///< its operator; empty where nothing says it
  bool rounds = false; ///< computes in f32, and rounds what it returns
  unsigned size = 0;   ///< ops that compute
  FloatType type = {}; ///< that of what it returns, from its first op on
};

/// One function.
class Autocast {
public:
  Autocast(func::FuncOp function, DictionaryAttr calls, AutocastList list,
           StringRef name, FloatType low)
      : function(function), traced(calls), list(list), name(name), low(low),
        wide(Float32Type::get(low.getContext())) {}

  void run();

private:
  void findCalls();
  void findMeans();
  void rewrite(Operation *op);
  void rewriteInCall(Operation *op, Call &call, CastPolicy policy);
  void rewriteReturn(func::ReturnOp op);
  CastPolicy getPolicy(Operation *op) const;
  FloatType followed(Operation *op) const;
  bool keepsNumbers(Operation *op, FloatType type) const;
  void setOperands(Operation *op, FloatType type, const Twine &why);
  void inferResults(Operation *op);
  void round(Operation *op, FloatType type, const Twine &why);
  StringAttr reason(Operation *op, const Twine &why) const;

  Call *callOf(Operation *op) const { return ofOp.lookup(op); }

  func::FuncOp function;
  DictionaryAttr traced;
  AutocastList list;
  StringRef name; ///< what the list is called
  FloatType low, wide;
  Casts casts;
  llvm::StringMap<Call> known;
  SmallVector<std::unique_ptr<Call>> means;
  llvm::DenseMap<Operation *, Call *> ofOp;
};

/// Whether autocast casts it: no integers, and no f64.
bool isCast(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  return element.isF32() || element.isF16() || element.isBF16();
}

FloatType elementOf(Value value) {
  return cast<FloatType>(getElementTypeOrSelf(value.getType()));
}

/// The one number that a constant, or what views it, consists of.
std::optional<APFloat> getNumber(Value value) {
  for (Operation *op = value.getDefiningOp(); op && isView(op);
       op = value.getDefiningOp())
    value = op->getOperand(0);
  SplatElementsAttr equal;
  if (matchPattern(value, m_Constant(&equal)) &&
      isa<FloatType>(equal.getElementType()))
    return equal.getSplatValue<APFloat>();
  return std::nullopt;
}

Say getSay(Value value) {
  if (getNumber(value))
    return Say::Number;
  for (Operation *op = value.getDefiningOp(); op && isView(op);
       op = value.getDefiningOp()) {
    if (cast<RankedTensorType>(value.getType()).getRank() == 0)
      return Say::Scalar;
    // What repeats a tensor of rank 0 is one; a reshape to a dimension is not.
    if (!isa<nn::BroadcastOp>(op))
      return Say::Tensor;
    value = op->getOperand(0);
  }
  return cast<RankedTensorType>(value.getType()).getRank() == 0 ? Say::Scalar
                                                                : Say::Tensor;
}

/// Whether an op computes, so that a type counts for it.
bool computes(Operation *op) {
  return !isView(op) && !isa<nn::CastOp>(op) &&
         llvm::any_of(op->getOperands(), isCast);
}

bool addsUp(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return isa<nn::CumsumOp>(op) ||
         (reduce && (reduce.getKind() == nn::ReductionKind::sum ||
                     reduce.getKind() == nn::ReductionKind::prod));
}

/// A product and what is added to all of its rows: a linear layer that came as
/// two nodes.
bool isBias(Operation *op) {
  auto add = dyn_cast<nn::AddOp>(op);
  if (!add)
    return false;
  auto isSum = [](Value product, Value bias) {
    auto broadcast = bias.getDefiningOp<nn::BroadcastOp>();
    return product.getDefiningOp<nn::MatmulOp>() && product.hasOneUse() &&
           broadcast &&
           cast<RankedTensorType>(broadcast.getInput().getType()).getRank() ==
               1;
  };
  return isSum(add.getLhs(), add.getRhs()) || isSum(add.getRhs(), add.getLhs());
}

void Autocast::run() {
  findCalls();
  findMeans();
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (auto end = dyn_cast<func::ReturnOp>(op))
      rewriteReturn(end);
    else if (op != function)
      rewrite(op);
}

/// An op is of a call if all nodes that its location names are.
void Autocast::findCalls() {
  if (!traced)
    return;
  function.walk([&](Operation *op) {
    StringAttr found;
    bool isOne = true;
    op->getLoc()->walk([&](Location loc) {
      if (auto name = dyn_cast<NameLoc>(loc))
        if (auto call = traced.getAs<StringAttr>(name.getName())) {
          isOne &= !found || found == call;
          found = call;
        }
      return WalkResult::advance();
    });
    if (!isOne || !found || found.empty())
      return;
    Call &call = known[found];
    call.name = found.getValue().split(" = ").second;
    call.size += computes(op);
    call.rounds |= addsUp(op);
    ofOp[op] = &call;
  });
  for (auto &entry : known)
    entry.second.rounds &= entry.second.size > 1;
}

/// Where no call says so, a sum times one over the number of its terms.
void Autocast::findMeans() {
  function.walk([&](nn::ReduceOp sum) {
    if (callOf(sum) || sum.getKind() != nn::ReductionKind::sum ||
        !isCast(sum.getInput()))
      return;
    SmallVector<Operation *> ops{sum};
    Value value = sum.getResult();
    while (value.hasOneUse() && isa<nn::ReshapeOp>(*value.user_begin())) {
      ops.push_back(*value.user_begin());
      value = ops.back()->getResult(0);
    }
    if (!value.hasOneUse() || !isa<nn::MulOp>(*value.user_begin()))
      return;
    auto product = cast<nn::MulOp>(*value.user_begin());
    auto number = getNumber(product.getLhs() == value ? product.getRhs()
                                                      : product.getLhs());
    int64_t terms = 1;
    for (int64_t dim : sum.getDims())
      terms *= sum.getInput().getType().getDimSize(dim);
    if (!number || number->convertToDouble() != double(float(1.0 / terms)))
      return;
    ops.push_back(product);
    means.push_back(std::make_unique<Call>());
    means.back()->name = "mean";
    means.back()->rounds = true;
    for (Operation *op : ops)
      ofOp[op] = means.back().get();
  });
}

CastPolicy Autocast::getPolicy(Operation *op) const {
  Call *call = callOf(op);
  if (!call)
    return isBias(op) ? CastPolicy::Low : getPolicyOfOp(list, op);
  CastPolicy policy = getPolicyOfCall(list, call->name);
  // What multiplies in a call of no list does so by one that is.
  return policy == CastPolicy::Follows && isa<CastableOpInterface>(op)
             ? CastPolicy::Low
             : policy;
}

StringAttr Autocast::reason(Operation *op, const Twine &why) const {
  Call *call = callOf(op);
  StringRef name = call ? call->name : op->getName().stripDialect();
  return StringAttr::get(op->getContext(), name + ": " + why);
}

/// The widest type of those operands that say most.
FloatType Autocast::followed(Operation *op) const {
  Say most = Say::Number;
  for (Value operand : op->getOperands())
    if (isCast(operand))
      most = std::max(most, getSay(operand));
  FloatType type;
  for (Value operand : op->getOperands()) {
    if (!isCast(operand) || getSay(operand) != most)
      continue;
    FloatType own = elementOf(operand);
    type = !type || type == own ? own : wide;
  }
  return type;
}

/// Whether no number that it reads is rounded in the type.
bool Autocast::keepsNumbers(Operation *op, FloatType type) const {
  // What is compared, or chosen, is rounded to the other's type anyway.
  if (isa<nn::CompareOp, nn::SelectOp>(op))
    return true;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (!isCast(operand) || elementOf(operand) == type)
      return true;
    std::optional<APFloat> number = getNumber(operand);
    bool losesInfo = true;
    if (number)
      number->convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                      &losesInfo);
    return !losesInfo;
  });
}

void Autocast::setOperands(Operation *op, FloatType type, const Twine &why) {
  StringAttr said = reason(op, why);
  for (OpOperand &operand : op->getOpOperands())
    if (isCast(operand.get()))
      operand.set(casts.get(operand.get(), type, said, op->getLoc()));
}

void Autocast::inferResults(Operation *op) {
  if (auto inference = dyn_cast<InferTypeOpInterface>(op)) {
    SmallVector<Type> types;
    LogicalResult inferred = inference.inferReturnTypes(
        op->getContext(), op->getLoc(), op->getOperands(),
        op->getRawDictionaryAttrs(), op->getPropertiesStorage(),
        op->getRegions(), types);
    assert(succeeded(inferred) && "operands of one type for another");
    (void)inferred;
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return;
  }
  op->getResult(0).setType(
      withElement(op->getResult(0), elementOf(op->getOperand(0))));
}

/// Gives what reads the results elsewhere the type.
void Autocast::round(Operation *op, FloatType type, const Twine &why) {
  Call *call = callOf(op);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (!isCast(result) || elementOf(result) == type)
      continue;
    auto isOutside = [&](OpOperand &use) {
      return !call || !call->rounds || callOf(use.getOwner()) != call;
    };
    if (llvm::none_of(result.getUses(), isOutside))
      continue;
    auto cast = nn::CastOp::create(builder, op->getLoc(),
                                   withElement(result, type), result);
    cast->setAttr(nn::kReasonAttr, reason(op, why));
    result.replaceUsesWithIf(cast, [&](OpOperand &use) {
      return use.getOwner() != cast && isOutside(use);
    });
  }
}

/// Of several ops that PyTorch runs as one, which sum.
void Autocast::rewriteInCall(Operation *op, Call &call, CastPolicy policy) {
  if (policy == CastPolicy::Low)
    for (OpOperand &operand : op->getOpOperands())
      if (isCast(operand.get()) &&
          callOf(operand.get().getDefiningOp()) != &call)
        operand.set(
            casts.get(operand.get(), low, reason(op, "16 bits"), op->getLoc()));
  // A kernel returns the type of what it is given first.
  if (!call.type)
    call.type = followed(op);
  setOperands(op, wide, "f32 sums");
  inferResults(op);
  round(op, call.type, "f32 sums, rounded once");
}

void Autocast::rewrite(Operation *op) {
  if (llvm::none_of(op->getOperands(), isCast) || isa<nn::CastOp>(op))
    return; // a type that the model says stays
  Call *call = callOf(op);
  if (isView(op)) {
    inferResults(op);
    if (call && call->rounds && call->type)
      round(op, call->type, "f32 sums, rounded once");
    return;
  }
  CastPolicy policy = getPolicy(op);
  std::string byList = (" by the " + name + " list").str();
  if (call && call->rounds && policy != CastPolicy::Wide)
    return rewriteInCall(op, *call, policy);
  if (policy == CastPolicy::Low || policy == CastPolicy::Wide) {
    bool isLow = policy == CastPolicy::Low;
    FloatType type = isLow ? low : wide;
    setOperands(op, type,
                (isLow ? low.isBF16() ? "bf16" : "f16" : "f32") + byList);
    inferResults(op);
    return;
  }
  FloatType type = followed(op);
  // The kernel of a normalisation takes parameters of f32 beside an input of 16
  // bits.
  bool ofFirst = isa<nn::LayerNormOp>(op);
  if (ofFirst)
    type = elementOf(op->getOperand(0));
  bool inside = type != wide && (ofFirst || !keepsNumbers(op, type));
  setOperands(op, inside ? wide : type,
              ofFirst  ? "f32 parameters, f32 inside"
              : inside ? "a number is not rounded"
                       : "the widest of its operands");
  inferResults(op);
  if (inside)
    round(op, type, "of its operand's type");
}

/// Whoever calls the function gets the types that it was imported with.
void Autocast::rewriteReturn(func::ReturnOp op) {
  for (auto [operand, type] : llvm::zip_equal(
           op->getOpOperands(), function.getFunctionType().getResults()))
    if (isCast(operand.get()) && operand.get().getType() != type)
      operand.set(casts.get(
          operand.get(), cast<FloatType>(getElementTypeOrSelf(type)),
          StringAttr::get(op->getContext(), "return: the model's type"),
          op.getLoc()));
}

struct AutocastPass : impl::AutocastPassBase<AutocastPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FloatType low;
    if (type == "bf16")
      low = BFloat16Type::get(&getContext());
    else if (type == "f16")
      low = Float16Type::get(&getContext());
    std::optional<AutocastList> list = parseAutocastList(lists);
    if (!low || (!list && lists != "none")) {
      module.emitError() << "expected none, cuda or cpu as lists and bf16 or "
                            "f16 as the type, found '"
                         << lists << "' and '" << type << "'";
      return signalPassFailure();
    }
    auto calls = module->getAttrOfType<DictionaryAttr>(nn::kCallsAttr);
    module->removeAttr(nn::kCallsAttr);
    if (!list)
      return;
    for (auto function : module.getOps<func::FuncOp>())
      Autocast(function, calls, *list, lists, low).run();
    module->setAttr(nn::kAutocastAttr, StringAttr::get(&getContext(), lists));
  }
};
} // namespace
} // namespace accel::precision
