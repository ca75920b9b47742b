// The contract of phase `dist`: every type has a sharding that its mesh can do,
// and every op's types agree with its rule.

#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/FactorAxes.h"
#include "lib/Parallel/Propagation/PartialSums.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_VERIFYPASS
#include "lib/Parallel/Passes.h.inc"

static LogicalResult verifyType(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return op->emitError() << "expected a tensor, found " << type;
  auto sharding = dist::ShardingAttr::of(type);
  if (!sharding)
    return op->emitError() << "expected a sharding on every type, found "
                           << type;
  return dist::verifySharding(op, sharding, tensor.getShape());
}

/// That each factor has the same axes wherever it stands, and that nothing else
/// is split. Returns the factors' axes.
static FailureOr<AxisLists> verifyFactors(dist::MeshOp mesh, Operation *op,
                                          const ShardingRule &rule) {
  AxisLists factorAxes(rule.factors.size());
  SmallVector<bool> seen(rule.factors.size());
  auto check = [&](Type type, const ShardingRule::Tensor &tensor,
                   StringRef what, unsigned number) -> LogicalResult {
    AxisLists dims = getAxisLists(dist::ShardingAttr::of(type));
    AxisLists found(rule.factors.size());
    for (auto [dim, axes] : llvm::enumerate(dims)) {
      size_t placed = splitOverFactors(mesh, rule, tensor[dim], axes,
                                       [&](unsigned factor, StringAttr axis) {
                                         found[factor].push_back(axis);
                                       });
      if (placed != axes.size())
        return op->emitOpError()
               << "cannot have dimension " << dim << " of " << what << " "
               << number << " split over " << axes[placed];
    }
    for (const ShardingRule::Dim &factors : tensor)
      for (unsigned factor : factors) {
        if (seen[factor] && factorAxes[factor] != found[factor])
          return op->emitOpError()
                 << "expected " << what << " " << number
                 << " to be split like the operands before it, found " << type;
        seen[factor] = true;
        factorAxes[factor] = found[factor];
      }
    return success();
  };
  for (auto [index, tensor] : llvm::enumerate(rule.operands))
    if (failed(
            check(op->getOperand(index).getType(), tensor, "operand", index)))
      return failure();
  for (auto [index, tensor] : llvm::enumerate(rule.results))
    if (failed(check(op->getResult(index).getType(), tensor, "result", index)))
      return failure();
  return factorAxes;
}

static LogicalResult verifyOp(dist::MeshOp mesh, ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  FailureOr<AxisLists> factorAxes = verifyFactors(mesh, op, rule);
  if (failed(factorAxes))
    return failure();
  FailureOr<PartialAxes> reduced = getReducedAxes(rule, *factorAxes);
  if (failed(reduced))
    return op->emitOpError() << "combines over sharded dimensions in different "
                                "ways, which no partial result can express";
  SmallVector<dist::ShardingAttr> operands;
  for (Value operand : op->getOperands())
    operands.push_back(dist::ShardingAttr::of(operand.getType()));
  llvm::SmallDenseSet<StringAttr> passed;
  for (auto [index, sharding] : llvm::enumerate(operands))
    for (StringAttr axis : sharding.getPartial().getNames()) {
      if (!passesPartial(rule, *factorAxes, *reduced, operands, axis))
        return op->emitOpError() << "is not linear in operand " << index
                                 << " alone, which is partial over " << axis;
      passed.insert(axis);
    }
  for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results)) {
    llvm::SmallDenseSet<StringAttr> expected = passed;
    expected.insert_range(getPartialAxes(*reduced, *factorAxes, tensor));
    auto sharding = dist::ShardingAttr::of(result.getType());
    ArrayRef<StringAttr> partial = sharding.getPartial().getNames();
    if (expected !=
            llvm::SmallDenseSet<StringAttr>(partial.begin(), partial.end()) ||
        (!partial.empty() && sharding.getReduction() != reduced->reduction))
      return op->emitOpError()
             << "expected a result partial over exactly the axes that it "
                "reduces over or that its operands are partial over, found "
             << result.getType();
  }
  return success();
}

/// An accumulator is of one sum, has its sharding, and begins with what changes
/// nothing.
static LogicalResult
verifyAccumulator(dist::AccumulateOp op,
                  llvm::StringMap<dist::AccumulateOp> &known,
                  const SymbolTable &symbols) {
  auto state = symbols.lookup<nn::StateOp>(op.getState());
  if (!state || state.getRole() != nn::StateRole::accumulator)
    return op.emitOpError()
           << "expected an accumulator, found @" << op.getState();
  if (!known.try_emplace(op.getState(), op).second)
    return op.emitOpError() << "is a second sum in @" << op.getState();
  if (state.getType() != op.getType())
    return op.emitOpError() << "expected @" << op.getState() << " of type "
                            << op.getType() << ", found " << state.getType();
  Type element = op.getType().getElementType();
  auto init = dyn_cast<SplatElementsAttr>(state.getInit());
  if (!init || init.getSplatValue<Attribute>() !=
                   dist::getIdentity(op.getKind(), element))
    return op.emitOpError() << "expected @" << op.getState()
                            << " to begin with what changes nothing, "
                            << dist::getIdentity(op.getKind(), element)
                            << ", found " << state.getInit();
  return success();
}

namespace {
struct VerifyPass : impl::VerifyPassBase<VerifyPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    symbols.emplace(getOperation());
    accumulators.clear();
    WalkResult result = getOperation().walk([&](Operation *op) {
      return failed(verify(op)) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  LogicalResult verify(Operation *op) {
    if (isa<ModuleOp, dist::MeshOp>(op))
      return success();
    if (auto state = dyn_cast<nn::StateOp>(op))
      return verifyType(op, state.getType());
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      for (Type type : function.getArgumentTypes())
        if (failed(verifyType(op, type)))
          return failure();
      return success();
    }
    for (Type type : op->getResultTypes())
      if (failed(verifyType(op, type)))
        return failure();
    if (isa<dist::ReshardOp>(op))
      return success();
    if (auto sum = dyn_cast<dist::AccumulateOp>(op))
      return verifyAccumulator(sum, accumulators, *symbols);
    if (isa<func::ReturnOp>(op)) {
      auto function = cast<func::FuncOp>(op->getParentOp());
      for (OpOperand &operand : op->getOpOperands()) {
        Type type = operand.get().getType();
        auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(
            operand.getOperandNumber(), nn::kStateAttr);
        auto state =
            name ? symbols->lookup<nn::StateOp>(name.getAttr()) : nn::StateOp();
        // Terms of a residual stay terms.
        if (dist::ShardingAttr::of(type).isPartial() &&
            !(state && state.getRole() == nn::StateRole::residual &&
              state.getType() == type))
          return op->emitOpError()
                 << "returns a partial value of type " << type;
      }
      return success();
    }
    auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
    if (!shardable)
      return op->emitOpError() << "is not legal in phase dist: it has no "
                                  "sharding rule";
    for (StringRef name : {"row_steps", "column_steps"})
      if (op->hasAttr(name))
        return op->emitOpError()
               << "is not legal in phase dist: its rows are whole, and '"
               << name << "' are those of ranks";
    FlatSymbolRefAttr mesh =
        dist::ShardingAttr::of(op->getResult(0).getType()).getMesh();
    for (Value operand : op->getOperands())
      if (auto other = dist::ShardingAttr::of(operand.getType()).getMesh();
          other != mesh)
        return op->emitOpError()
               << "expected one mesh, found " << mesh << " and " << other;
    return verifyOp(dist::MeshOp::lookup(op, mesh), shardable);
  }

  std::optional<SymbolTable> symbols;
  llvm::StringMap<dist::AccumulateOp> accumulators; ///< by their state
};
} // namespace
} // namespace accel::parallel
