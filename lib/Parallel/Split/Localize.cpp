// Rewrites the program on whole tensors into one rank's.

#include "DropUnits.h"
#include "ReshardPlanner.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/FactorAxes.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using accel::cost::Exchange;

namespace accel::parallel {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One function. Local ops are built in front of the global ones, which are
/// erased at the end.
class Localizer {
public:
  Localizer(func::FuncOp function, dist::MeshOp mesh,
            const llvm::DenseSet<Attribute> &residuals)
      : function(function), mesh(mesh), residuals(residuals), planner(mesh) {}
  LogicalResult run();

private:
  LogicalResult checkType(Operation *op, Type type);
  RankedTensorType localType(Type type);
  dist::LayoutAttr layoutOf(Type type, dist::InterleavedAttr interleaved = {});
  Value applyStep(OpBuilder &builder, dist::ReshardOp reshard, Value value,
                  const ReshardStep &step);
  void localize(dist::ReshardOp reshard);
  LogicalResult localize(ShardingRuleOpInterface op);

  func::FuncOp function;
  dist::MeshOp mesh;
  const llvm::DenseSet<Attribute> &residuals; ///< names of states
  ReshardPlanner planner;
  IRMapping mapping;
};
} // namespace

/// `dist-verify` guarantees it; a pass that is run alone asks.
LogicalResult Localizer::checkType(Operation *op, Type type) {
  auto sharding = dist::ShardingAttr::of(type);
  if (!sharding)
    return op->emitError() << "expected a sharding on every type, found "
                           << type;
  if (sharding.getMesh().getAttr() != mesh.getSymNameAttr())
    return op->emitError() << "expected shardings over mesh @"
                           << mesh.getSymName() << ", found " << type;
  return dist::verifySharding(op, sharding,
                              cast<RankedTensorType>(type).getShape());
}

RankedTensorType Localizer::localType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, axes] :
       llvm::zip(shape, dist::ShardingAttr::of(type).getDims()))
    size /= mesh.getGroupSize(axes);
  return RankedTensorType::get(shape, tensor.getElementType());
}

dist::LayoutAttr Localizer::layoutOf(Type type,
                                     dist::InterleavedAttr interleaved) {
  auto sharding = dist::ShardingAttr::of(type);
  auto dropUnits = [&](dist::AxesAttr axes) {
    AxisList kept;
    for (StringAttr axis : axes.getNames())
      if (*mesh.findAxisSize(axis) > 1)
        kept.push_back(axis);
    return dist::AxesAttr::get(type.getContext(), kept, /*open=*/false);
  };
  SmallVector<dist::AxesAttr> dims =
      llvm::map_to_vector(sharding.getDims(), dropUnits);
  return dist::LayoutAttr::get(type.getContext(), sharding.getMesh(),
                               cast<RankedTensorType>(type).getShape(), dims,
                               dropUnits(sharding.getPartial()), interleaved);
}

/// Terms of a residual, which outlive a step, lie one after another in the
/// first dimension, which is 1: of all ranks' terms a rank has its own.
static dist::LayoutAttr stackTerms(dist::MeshOp mesh, dist::LayoutAttr layout) {
  SmallVector<int64_t> shape(layout.getShape());
  SmallVector<dist::AxesAttr> dims(layout.getDims());
  for (StringAttr axis : layout.getPartial().getNames())
    shape.front() *= *mesh.findAxisSize(axis);
  dims.front() = layout.getPartial();
  return dist::LayoutAttr::get(
      layout.getContext(), layout.getMesh(), shape, dims,
      dist::AxesAttr::get(layout.getContext(), ArrayRef<StringAttr>(),
                          /*open=*/false),
      layout.getInterleaved());
}

LogicalResult Localizer::run() {
  Block &block = function.front();
  for (BlockArgument argument : block.getArguments())
    if (failed(checkType(function, argument.getType())))
      return failure();
  SmallVector<Operation *> global;
  for (Operation &op : block) {
    global.push_back(&op);
    for (Type type : op.getResultTypes())
      if (failed(checkType(&op, type)))
        return failure();
  }

  unsigned arguments = block.getNumArguments();
  // All at once: each set attribute makes the list of all of them anew.
  SmallVector<DictionaryAttr> attributes;
  auto withLayout = [&](DictionaryAttr given, Type type) {
    NamedAttrList attrs(given);
    auto interleaved = dyn_cast_or_null<dist::InterleavedAttr>(
        attrs.erase(dist::kInterleavedAttr));
    dist::LayoutAttr layout = layoutOf(type, interleaved);
    if (residuals.contains(attrs.get(nn::kStateAttr)))
      layout = stackTerms(mesh, layout);
    attrs.set(dist::kLayoutAttr, layout);
    attributes.push_back(attrs.getDictionary(function.getContext()));
  };
  for (unsigned index = 0; index < arguments; ++index) {
    BlockArgument argument = block.getArgument(index);
    withLayout(function.getArgAttrDict(index), argument.getType());
    mapping.map(argument, block.addArgument(localType(argument.getType()),
                                            argument.getLoc()));
  }
  function.setAllArgAttrs(attributes);
  for (Operation *op : global) {
    if (auto reshard = dyn_cast<dist::ReshardOp>(op)) {
      localize(reshard);
    } else if (auto sum = dyn_cast<dist::AccumulateOp>(op)) {
      OpBuilder builder(sum);
      mapping.map(sum.getResult(),
                  dist::AccumulateOp::create(
                      builder, sum.getLoc(), localType(sum.getType()),
                      sum.getKind(), mapping.lookup(sum.getInput()),
                      sum.getState(), layoutOf(sum.getType()))
                      .getResult());
    } else if (auto shardable = dyn_cast<ShardingRuleOpInterface>(op)) {
      if (failed(localize(shardable)))
        return failure();
    } else if (auto exit = dyn_cast<func::ReturnOp>(op)) {
      attributes.clear();
      for (OpOperand &operand : exit->getOpOperands()) {
        withLayout(function.getResultAttrDict(operand.getOperandNumber()),
                   operand.get().getType());
        operand.set(mapping.lookup(operand.get()));
      }
      function.setAllResultAttrs(attributes);
    } else {
      return op->emitOpError() << "has no local form: it has no sharding rule";
    }
  }
  for (Operation *op : llvm::reverse(global))
    if (!isa<func::ReturnOp>(op))
      op->erase();
  block.eraseArguments(0, arguments);
  function.setFunctionType(
      FunctionType::get(function.getContext(), block.getArgumentTypes(),
                        block.getTerminator()->getOperandTypes()));
  dropUnits(function);
  return success();
}

LogicalResult Localizer::localize(ShardingRuleOpInterface op) {
  OpBuilder builder(op);
  SmallVector<Value> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(mapping.lookup(operand));
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(localType(type));
  Operation *before = op->getPrevNode();
  if (failed(op.localize(builder, operands, types, results)))
    return failure();
  // Collectives that are the op's own doing.
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *made = first; made != op; made = made->getNextNode())
    if (isa<dist::CollectiveOpInterface>(made))
      made->setAttr(dist::kInsertedByAttr,
                    builder.getStringAttr("dist-localize"));
  mapping.map(op->getResults(), results);
  return success();
}

Value Localizer::applyStep(OpBuilder &builder, dist::ReshardOp reshard,
                           Value value, const ReshardStep &step) {
  Location loc = reshard.getLoc();
  StringRef symbol = step.sharding.getMesh().getValue();
  RankedTensorType global = reshard.getType();
  RankedTensorType type = localType(RankedTensorType::get(
      global.getShape(), global.getElementType(), step.sharding));
  auto kind =
      dist::ShardingAttr::of(reshard.getInput().getType()).getReduction();
  switch (step.kind) {
  case Exchange::AllGather:
    return dist::AllGatherOp::create(builder, loc, type, value, symbol,
                                     step.axes, step.dim, TypeAttr())
        .getResult();
  case Exchange::AllSlice:
    return dist::AllSliceOp::create(builder, loc, type, value, symbol,
                                    step.axes, step.dim)
        .getResult();
  case Exchange::AllToAll:
    return dist::AllToAllOp::create(builder, loc, type, value, symbol,
                                    step.axes, step.dim, step.concatDim,
                                    TypeAttr())
        .getResult();
  case Exchange::AllReduce:
    return dist::AllReduceOp::create(builder, loc, type, kind, value, symbol,
                                     step.axes, TypeAttr())
        .getResult();
  case Exchange::ReduceScatter:
    return dist::ReduceScatterOp::create(builder, loc, type, kind, value,
                                         symbol, step.axes, step.dim,
                                         TypeAttr())
        .getResult();
  case Exchange::Permute:
    return dist::PermuteOp::create(builder, loc, type, value, symbol, step.axes,
                                   step.sources, TypeAttr())
        .getResult();
  }
  llvm_unreachable("all kinds are listed");
}

void Localizer::localize(dist::ReshardOp reshard) {
  OpBuilder builder(reshard);
  RankedTensorType type = reshard.getType();
  Value value = mapping.lookup(reshard.getInput());
  const ReshardPlan &plan = planner.plan(
      type.getShape(), llvm::divideCeil(type.getElementTypeBitWidth(), 8),
      dist::ShardingAttr::of(reshard.getInput().getType()),
      dist::ShardingAttr::of(type));
  for (const ReshardStep &step : plan.steps) {
    value = applyStep(builder, reshard, value, step);
    value.getDefiningOp()->setDiscardableAttrs(
        reshard->getDiscardableAttrDictionary());
  }
  mapping.map(reshard.getResult(), value);
}

namespace {
struct LocalizePass : impl::LocalizePassBase<LocalizePass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    FailureOr<dist::MeshOp> mesh = dist::MeshOp::require(module);
    if (failed(mesh))
      return signalPassFailure();
    llvm::DenseSet<Attribute> residuals = nn::getResiduals(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() &&
          failed(Localizer(function, *mesh, residuals).run()))
        return signalPassFailure();
    for (auto state : module.getOps<nn::StateOp>()) {
      auto type = cast<RankedTensorType>(state.getType());
      SmallVector<int64_t> shape(type.getShape());
      // Of all ranks' terms, which are zeros, as of one's.
      if (state.getRole() == nn::StateRole::residual)
        if (auto terms = cast<SplatElementsAttr>(state.getInit())) {
          shape.front() *=
              mesh->getGroupSize(dist::ShardingAttr::of(type).getPartial());
          state.setInitAttr(terms.resizeSplat(
              RankedTensorType::get(shape, type.getElementType())));
        }
      state.setType(RankedTensorType::get(shape, type.getElementType()));
    }
  }
};
} // namespace
} // namespace accel::parallel
