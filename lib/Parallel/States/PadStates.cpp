// Pads the states of a step that the ranks which share them cannot split
// evenly.

#include "GradientOps.h"
#include "SharingAxes.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/Casts.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Strategy/TensorAxes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PADSTATESPASS
#include "lib/Parallel/Passes.h.inc"

static bool keepsPadding(Operation *op, RankedTensorType from);

namespace {
/// One step. What is padded is dimension 0, at its end, with zeros.
class StatePadder {
public:
  StatePadder(func::FuncOp step, int64_t ranks, int64_t tensorRanks)
      : step(step), ranks(ranks), tensorRanks(tensorRanks), ops(step) {}
  LogicalResult run();

private:
  /// Whether it is padded: not where each rank would hold as many rows, with
  /// the padding, as there are.
  bool isUneven(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() > 0 && !findShardDim(tensor.getShape(), ranks) &&
           padType(type).getDimSize(0) / ranks < tensor.getDimSize(0);
  }
  RankedTensorType padType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape[0] = llvm::alignTo(shape[0], ranks * tensorRanks);
    return RankedTensorType::get(shape, tensor.getElementType());
  }
  LogicalResult padState(BlockArgument argument, nn::StateOp state);
  void padGradient(nn::GradientOp gradient);
  void rewriteUpdate(Operation *op);
  RankedTensorType getUnpadded(Value value) {
    RankedTensorType type = unpadded.lookup(value);
    return type ? type : cast<RankedTensorType>(value.getType());
  }
  bool keepsPaddingOf(Operation *op);
  Value pad(Value value, Operation *reader);
  Value padClone(Operation *op, Operation *reader);

  func::FuncOp step;
  int64_t ranks;
  int64_t tensorRanks; ///< over which dimension 0 may be split before
  GradientOps ops;
  /// Values of the update and their padded forms, null until something needs
  /// one.
  llvm::MapVector<Value, Value> padded;
  /// The types of states' values before they were padded.
  llvm::DenseMap<Value, RankedTensorType> unpadded;
  llvm::DenseSet<Attribute> paddedStates;
};
} // namespace

/// The value without its padding.
static Value cut(OpBuilder &builder, Location loc, Value value,
                 RankedTensorType type) {
  SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
  return nn::SliceOp::create(builder, loc, type, value, starts, type.getShape(),
                             steps);
}

/// The factor of the padded dimension, 0, of an op of one operand that adds
/// elements of it up, and in which zeros count for nothing; none of others.
static const ShardingRule::Factor *
findPaddedFactor(Operation *op, const ShardingRule &rule, unsigned &index) {
  if (rule.operands.size() != 1 || rule.results.size() != 1 ||
      !rule.indexFree || rule.operands[0].empty() ||
      rule.operands[0][0].size() != 1 ||
      !llvm::is_contained(rule.linearGroups, ArrayRef<unsigned>{0}))
    return nullptr;
  index = rule.operands[0][0][0];
  return &rule.factors[index];
}

/// Whether padding of the operand, which is of type `from` without it, is
/// padding of the result.
static bool keepsPadding(Operation *op, RankedTensorType from) {
  // Rows that each stay by themselves, whatever becomes of their elements; any
  // other reshape may cut the dimension.
  if (isa<nn::ReshapeOp>(op)) {
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    return from.getRank() > 0 && to.getRank() > 0 &&
           from.getDimSize(0) == to.getDimSize(0);
  }
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return !llvm::is_contained(reduce.getDims(), 0);
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable)
    return false;
  ShardingRule rule = shardable.getShardingRule();
  unsigned index;
  auto *factor = findPaddedFactor(op, rule, index);
  return factor && factor->kind == FactorKind::PassThrough &&
         !rule.results[0].empty() &&
         rule.results[0][0] == ShardingRule::Dim{index};
}

static bool sumsPadding(Operation *op) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable)
    return false;
  ShardingRule rule = shardable.getShardingRule();
  unsigned index;
  auto *factor = findPaddedFactor(op, rule, index);
  return factor && factor->kind == FactorKind::Sum;
}

/// Whether a padded value is known to be 0 there: a gradient, or made of one.
static bool isZeroBehind(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<nn::GradientOp>(op))
    return true;
  if (auto cast = dyn_cast_or_null<nn::CastOp>(op); cast && !keepsZero(cast))
    return false;
  return isa_and_nonnull<nn::MulOp, nn::CastOp, nn::ReduceOp>(op) &&
         llvm::all_of(op->getOperands(), isZeroBehind);
}

/// Of reshapes those of whole states, as into blocks that have scales: what is
/// kept of rows or columns is small, and stays whole.
bool StatePadder::keepsPaddingOf(Operation *op) {
  if (op->getNumOperands() == 0)
    return false;
  RankedTensorType from = getUnpadded(op->getOperand(0));
  bool isWhole = llvm::any_of(unpadded, [&](auto &state) {
    return state.second.getNumElements() == from.getNumElements();
  });
  return (isWhole || !isa<nn::ReshapeOp>(op)) && keepsPadding(op, from);
}

LogicalResult StatePadder::run() {
  SymbolTable symbols(step->getParentOfType<ModuleOp>());
  llvm::DenseSet<Attribute> trained;
  for (auto gradient : step.getOps<nn::GradientOp>())
    trained.insert(gradient.getStateAttr());
  for (BlockArgument argument : step.getArguments()) {
    auto name = step.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (!name || !isUneven(argument.getType()))
      continue;
    auto state = symbols.lookup<nn::StateOp>(name.getAttr());
    // What an optimizer keeps of rows, of columns or of all elements is small,
    // and stays whole; codes are of other types than the parameter.
    bool isMoment = state.getRole() == nn::StateRole::moment;
    auto parameter =
        isMoment
            ? symbols.lookup<nn::StateOp>(name.getValue().split('/').second)
            : state;
    bool isPadded =
        isMoment ? !parameter || state.getType().getShape() ==
                                     parameter.getLogicalType().getShape()
                 : trained.contains(name);
    if (!isPadded)
      continue;
    if (failed(padState(argument, state)))
      return failure();
    paddedStates.insert(name);
  }
  if (padded.empty())
    return success();
  for (auto gradient : llvm::to_vector(step.getOps<nn::GradientOp>()))
    if (isUneven(gradient.getType()))
      padGradient(gradient);
  SmallVector<Operation *> update;
  for (Operation &op : step.front())
    if (!ops.contains(&op) && !isa<nn::GradientOp, dist::ConstraintOp>(op))
      update.push_back(&op);
  for (Operation *op : update)
    rewriteUpdate(op);
  for (Operation *op : llvm::reverse(update))
    if (isOpTriviallyDead(op))
      op->erase();
  step.setFunctionType(
      FunctionType::get(step.getContext(), step.front().getArgumentTypes(),
                        step.front().getTerminator()->getOperandTypes()));
  return success();
}

/// Forward and backward read the value itself, each where it is needed.
LogicalResult StatePadder::padState(BlockArgument argument, nn::StateOp state) {
  auto constraint = argument.hasOneUse()
                        ? dyn_cast<dist::ConstraintOp>(*argument.user_begin())
                        : nullptr;
  if (!constraint)
    return state.emitOpError() << "expected one constraint on its argument";
  auto type = cast<RankedTensorType>(argument.getType());
  state.setLogicalAttr(
      DenseI64ArrayAttr::get(step.getContext(), type.getShape()));
  state.setType(padType(type));
  argument.setType(padType(type));
  constraint.getResult().setType(padType(type));
  for (OpOperand *use : llvm::map_to_vector(
           constraint->getUses(), [](OpOperand &use) { return &use; })) {
    Operation *user = use->getOwner();
    if (!ops.contains(user))
      continue;
    OpBuilder builder(user);
    Value value = cut(builder, user->getLoc(), constraint.getResult(), type);
    ops.forward.insert(value.getDefiningOp());
    use->set(value);
  }
  padded[constraint.getResult()] = constraint.getResult();
  unpadded[constraint.getResult()] = type;
  return success();
}

static Value appendZeros(OpBuilder &builder, Location loc, Value value,
                         RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = nn::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(scalar,
                             builder.getZeroAttr(type.getElementType())));
  SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
  high[0] = type.getDimSize(0) -
            cast<RankedTensorType>(value.getType()).getDimSize(0);
  return nn::PadOp::create(builder, loc, type, value, zero, low, high);
}

void StatePadder::padGradient(nn::GradientOp gradient) {
  RankedTensorType type = padType(gradient.getType());
  OpBuilder builder(gradient);
  Location loc = gradient.getLoc();
  Value input = appendZeros(builder, loc, gradient.getInput(), type);
  // The unpadded one stays until its readers have been seen.
  padded[gradient.getResult()] =
      nn::GradientOp::create(builder, loc, type, input, gradient.getState());
}

/// Ops that work on padding as on anything else get padded forms when those are
/// asked for; all others are given what they had, but for states, and sums of
/// zeros: these take what is padded.
void StatePadder::rewriteUpdate(Operation *op) {
  auto isState = [&](OpOperand &operand) {
    return isa<func::ReturnOp>(op) &&
           paddedStates.contains(
               step.getResultAttr(operand.getOperandNumber(), nn::kStateAttr));
  };
  bool passes = op->hasTrait<nn::Elementwise>() || keepsPaddingOf(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!padded.contains(value) && !isState(operand))
      continue;
    if (passes) {
      padded[op->getResult(0)] = nullptr;
      return;
    }
    Value wide = pad(value, op);
    OpBuilder builder(op);
    // A sum takes zeros in. Whatever else adds elements up, or mixes them, is
    // given what there was, which is small: rows were added up before.
    operand.set(isState(operand) || (sumsPadding(op) && isZeroBehind(wide))
                    ? wide
                    : cut(builder, op->getLoc(), wide, getUnpadded(value)));
  }
}

/// The padded form of a value of the update that `reader` asks for.
Value StatePadder::pad(Value value, Operation *reader) {
  if (Value known = padded.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  RankedTensorType type = padType(value.getType());
  Value made;
  OpBuilder builder(step.getContext());
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat))) {
    builder.setInsertionPoint(op);
    made = nn::ConstantOp::create(builder, op->getLoc(), type,
                                  splat.resizeSplat(type));
  } else if (auto spread = dyn_cast_if_present<nn::BroadcastOp>(op)) {
    Value input = spread.getInput();
    auto from = cast<RankedTensorType>(input.getType());
    if (from.getRank() == type.getRank() && from.getDimSize(0) != 1)
      input = pad(input, reader);
    builder.setInsertionPoint(op);
    made = nn::BroadcastOp::create(builder, op->getLoc(), type, input);
  } else if (op && (op->hasTrait<nn::Elementwise>() || keepsPaddingOf(op))) {
    made = padClone(op, reader);
  } else {
    // What is made of whole matrices, or kept whole.
    builder.setInsertionPointAfterValue(value);
    made = appendZeros(builder, reader->getLoc(), value, type);
  }
  padded[value] = made;
  return made;
}

Value StatePadder::padClone(Operation *op, Operation *reader) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(pad(operand, reader));
  OpBuilder builder(op);
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  clone->getResult(0).setType(padType(op->getResult(0).getType()));
  return clone->getResult(0);
}

/// Another entry reads the value of what the step has padded.
static void cutPadding(func::FuncOp entry) {
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  for (BlockArgument argument : entry.getArguments()) {
    auto name = entry.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (!name)
      continue;
    Type type = symbols.lookup<nn::StateOp>(name.getAttr()).getType();
    auto value = cast<RankedTensorType>(argument.getType());
    if (type == value)
      continue;
    argument.setType(type);
    for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
      auto constraint = cast<dist::ConstraintOp>(user);
      constraint.getResult().setType(cast<RankedTensorType>(type));
      // Each where it is needed, so that what is gathered for it is, too.
      for (OpOperand &use : llvm::make_early_inc_range(constraint->getUses())) {
        OpBuilder builder(use.getOwner());
        use.set(cut(builder, use.getOwner()->getLoc(), constraint.getResult(),
                    value));
      }
    }
  }
  entry.setFunctionType(FunctionType::get(entry.getContext(),
                                          entry.front().getArgumentTypes(),
                                          entry.getResultTypes()));
}

namespace {
struct PadStatesPass : impl::PadStatesPassBase<PadStatesPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (!mesh)
      return;
    int64_t ranks = countSharers(mesh);
    int64_t tensorRanks = countTensorRanks(mesh);
    if (ranks == 1)
      return;
    auto entries = nn::requireEntries(module);
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp entry : *entries)
      if (nn::getEntryKind(entry) == nn::EntryKind::step &&
          failed(StatePadder(entry, ranks, tensorRanks).run()))
        return signalPassFailure();
    for (func::FuncOp entry : *entries)
      if (nn::getEntryKind(entry) != nn::EntryKind::step)
        cutPadding(entry);
  }
};
} // namespace
} // namespace accel::parallel
