// Writes the propagated shardings into types, and puts reshards where what an
// op gets is not what it needs.

#include "FactorAxes.h"
#include "PartialSums.h"
#include "Propagation.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_MATERIALIZEPASS
#include "lib/Parallel/Passes.h.inc"

/// Whether none of the ops is of numbers that are still sums.
static bool areWholeNumbers(const Makers &makers) {
  return llvm::none_of(makers.ops, [](Operation *op) {
    return llvm::any_of(op->getOperandTypes(), [](Type type) {
      return dist::ShardingAttr::of(type).isPartial();
    });
  });
}

/// Whether a value is made of nothing, and of no number that is still a sum.
static bool canRemake(Value value) {
  std::optional<Makers> makers = findMakers(value);
  return makers && areWholeNumbers(*makers);
}

/// Whether one micro-batch gets what another one has.
static bool joinsMicroBatches(dist::ShardingAttr source,
                              dist::ShardingAttr target) {
  auto isSplit = [](dist::ShardingAttr sharding) {
    return llvm::any_of(sharding.getDims(), [](dist::AxesAttr axes) {
      return axes.contains(dist::MeshOp::kMicroBatchAxis);
    });
  };
  return isSplit(source) && !isSplit(target);
}

namespace {
/// One function.
class Materializer {
public:
  Materializer(func::FuncOp function, const Propagation &table,
               dist::MeshOp mesh, const llvm::DenseSet<Attribute> &residuals)
      : function(function), table(table), mesh(mesh), residuals(residuals),
        symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  LogicalResult run();

private:
  TensorAxes wishOf(Value value) {
    TensorAxes axes;
    const Propagation::Entry &entry = table.lookup(value);
    axes.fixed = entry.fixed;
    axes.wishes = table.getWishes(value);
    for (const Propagation::Dim &dim : entry.dims)
      axes.dims.push_back(dim.axes);
    return axes;
  }
  /// The value under another sharding, as of right before `user`.
  Value reshard(Value value, dist::ShardingAttr target, Operation *user) {
    auto source = dist::ShardingAttr::of(value.getType());
    if (source == target)
      return value;
    Value known = findMoved(value, target, user);
    if (!known && (canRemake(value) ||
                   (joinsMicroBatches(source, target) && holdInputs(value))))
      return remake(value, target);
    if (!known)
      known = countHeld(value, target, user);
    if (!known)
      known = createReshard(value, target, user);
    resharded[{value, target}] = known;
    return known;
  }
  Value createReshard(Value value, dist::ShardingAttr target, Operation *user) {
    OpBuilder builder(user);
    auto op = dist::ReshardOp::create(
        builder, user->getLoc(), withSharding(value.getType(), target), value);
    op->setAttr(dist::kInsertedByAttr,
                builder.getStringAttr("dist-materialize"));
    return op;
  }
  llvm::SetVector<BlockArgument> findInputs(Value value);
  bool holdInputs(Value value);
  Value countHeld(Value value, dist::ShardingAttr target, Operation *user);
  Value remake(Value value, dist::ShardingAttr target);
  Value findMoved(Value value, dist::ShardingAttr target, Operation *user);
  AxisList findTerms(BlockArgument argument);
  LogicalResult rewriteOp(ShardingRuleOpInterface op);
  void sumWhereItBranches(Value value);
  bool costsMoreIfCarried(Value value, StringAttr axis);
  LogicalResult rewriteReturn(func::ReturnOp op);

  func::FuncOp function;
  const Propagation &table;
  dist::MeshOp mesh;
  const llvm::DenseSet<Attribute> &residuals; ///< names of states
  FlatSymbolRefAttr symbol;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> resharded;
  llvm::DenseSet<Value> fixed;               ///< what constraints became
  llvm::SmallDenseSet<StringAttr> batchAxes; ///< that split inputs
};
} // namespace

LogicalResult Materializer::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "expected a function of one block, found "
                                << function.getBody().getBlocks().size();
  Block &block = function.front();
  for (BlockArgument argument : block.getArguments())
    argument.setType(withSharding(
        argument.getType(),
        getSharding(symbol, wishOf(argument).dims, findTerms(argument))));

  for (BlockArgument argument : block.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), nn::kInputAttr))
      for (dist::AxesAttr axes :
           dist::ShardingAttr::of(argument.getType()).getDims())
        batchAxes.insert_range(axes.getNames());

  // They stay until the end: an op made in the memory of one that the tables
  // know would be taken for it.
  SmallVector<dist::ConstraintOp> replaced;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto constraint = dyn_cast<dist::ConstraintOp>(op)) {
      Value placed = reshard(
          constraint.getInput(),
          getSharding(symbol, wishOf(constraint.getResult()).dims), constraint);
      if (table.lookup(constraint.getResult()).fixed)
        fixed.insert(placed);
      constraint.replaceAllUsesWith(placed);
      replaced.push_back(constraint);
    } else if (auto exit = dyn_cast<func::ReturnOp>(op)) {
      if (failed(rewriteReturn(exit)))
        return failure();
    } else if (auto shardable = dyn_cast<ShardingRuleOpInterface>(op)) {
      if (failed(rewriteOp(shardable)))
        return failure();
    } else {
      return op.emitOpError() << "has no sharding rule";
    }
  }
  for (dist::ConstraintOp constraint : replaced)
    constraint.erase();
  function.setFunctionType(
      FunctionType::get(function.getContext(), block.getArgumentTypes(),
                        block.getTerminator()->getOperandTypes()));
  return success();
}

/// The inputs that a value is made of element by element; none if it is made of
/// anything else.
llvm::SetVector<BlockArgument> Materializer::findInputs(Value value) {
  std::optional<Makers> makers = findMakers(value, /*ofArguments=*/true);
  if (!makers || !areWholeNumbers(*makers) ||
      !llvm::all_of(makers->arguments, [&](BlockArgument argument) {
        return function.getArgAttr(argument.getArgNumber(), nn::kInputAttr);
      }))
    return {};
  return makers->arguments;
}

/// Integers that are made of inputs alone, and need all samples: places that
/// are counted in the order in which a mask chooses them. Ranks then hold these
/// inputs whole in each micro-batch, and their parts are parts of that; no
/// micro-batch has to wait for another one. False if a value is not that.
bool Materializer::holdInputs(Value value) {
  llvm::SetVector<BlockArgument> inputs = findInputs(value);
  if (inputs.empty() || !isa<IntegerType>(getElementTypeOrSelf(value)))
    return false;
  for (BlockArgument argument : inputs) {
    if (isWhole(argument.getType()))
      continue;
    auto parts = dist::ShardingAttr::of(argument.getType());
    argument.setType(withSharding(
        argument.getType(),
        dist::ShardingAttr::getReplicated(symbol, parts.getDims().size())));
    Value part = createReshard(argument, parts, &function.front().front());
    argument.replaceAllUsesExcept(part, part.getDefiningOp());
    resharded[{argument, parts}] = part;
    if (fixed.erase(argument))
      fixed.insert(part);
  }
  return true;
}

/// A sum over micro-batches, of inputs that each of them holds whole: it is
/// there without them. Null if a value is not that.
Value Materializer::countHeld(Value value, dist::ShardingAttr target,
                              Operation *user) {
  auto count = value.getDefiningOp<nn::ReduceOp>();
  auto source = dist::ShardingAttr::of(value.getType());
  if (!count || target.isPartial() ||
      !source.getPartial().contains(dist::MeshOp::kMicroBatchAxis))
    return {};
  llvm::SetVector<BlockArgument> inputs = findInputs(count.getInput());
  if (inputs.empty() || !llvm::all_of(inputs, [](BlockArgument input) {
        return isWhole(input.getType());
      }))
    return {};
  OpBuilder builder(user);
  IRMapping mapping;
  Value all = count.getInput();
  auto whole = [&](Value of) {
    return dist::ShardingAttr::getReplicated(
        symbol, cast<RankedTensorType>(of.getType()).getRank());
  };
  mapping.map(all, remake(all, whole(all)));
  Value made = builder.clone(*count, mapping)->getResult(0);
  made.setType(withSharding(value.getType(), whole(value)));
  return whole(value) == target ? made : createReshard(made, target, user);
}

/// What is made of nothing, or of inputs that ranks hold whole, by ops of its
/// own under another sharding.
Value Materializer::remake(Value value, dist::ShardingAttr target) {
  if (dist::ShardingAttr::of(value.getType()) == target)
    return value;
  if (Value known = resharded.lookup({value, target}))
    return known;
  Operation *op = value.getDefiningOp();
  if (auto part = dyn_cast_if_present<dist::ReshardOp>(op))
    return remake(part.getInput(), target); // an input's
  if (!op)
    return resharded[{value, target}] =
               createReshard(value, target, &function.front().front());
  OpBuilder builder(op);
  auto operands =
      findOperandAxes(mesh, cast<ShardingRuleOpInterface>(op).getShardingRule(),
                      getAxisLists(target));
  Value made;
  if (operands) {
    IRMapping mapping;
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), *operands))
      mapping.map(operand, remake(operand, getSharding(symbol, dims)));
    made = builder.clone(*op, mapping)->getResult(0);
    made.setType(withSharding(value.getType(), target));
  } else { // a view that is not split so: a part of it
    auto whole =
        dist::ShardingAttr::getReplicated(symbol, target.getDims().size());
    made = createReshard(remake(value, whole), target, op->getNextNode());
  }
  return resharded[{value, target}] = made;
}

/// The value under a sharding that it, or what it is a view of, has been given
/// already; null if there is none.
Value Materializer::findMoved(Value value, dist::ShardingAttr target,
                              Operation *user) {
  if (Value known = resharded.lookup({value, target}))
    return known;
  Operation *view = value.getDefiningOp();
  if (!isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp>(view))
    return {};
  auto operands = findOperandAxes(
      mesh, cast<ShardingRuleOpInterface>(view).getShardingRule(),
      getAxisLists(target));
  if (!operands)
    return {};
  auto before =
      getSharding(symbol, operands->front(), target.getPartial().getNames(),
                  target.getReduction());
  Value operand = view->getOperand(0);
  if (dist::ShardingAttr::of(operand.getType()) == before)
    return {};
  Value moved = findMoved(operand, before, user);
  if (!moved)
    return {};
  OpBuilder builder(user);
  IRMapping mapping;
  mapping.map(operand, moved);
  Value copy = builder.clone(*view, mapping)->getResult(0);
  copy.setType(withSharding(value.getType(), target));
  return resharded[{value, target}] = copy;
}

/// The axes over which an op adds terms up that operands hold: what it makes of
/// them is summed over ranks once, and not each of them.
static AxisList findJoinedTerms(Operation *op, const ShardingRule &rule) {
  llvm::SmallMapVector<StringAttr, SmallVector<unsigned, 2>, 2> terms;
  if (op->hasTrait<nn::Elementwise>())
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      auto sharding = dist::ShardingAttr::of(operand.getType());
      if (sharding.getReduction() == dist::Reduction::sum)
        for (StringAttr axis : sharding.getPartial().getNames())
          terms[axis].push_back(index);
    }
  AxisList joined;
  for (auto &[axis, operands] : terms)
    if (operands.size() > 1 && llvm::is_contained(rule.linearGroups, operands))
      joined.push_back(axis);
  return joined;
}

/// Whether pieces by `wanted` are pieces of those by `given`.
static bool extendsAll(const AxisLists &given, const AxisLists &wanted) {
  return llvm::all_of(llvm::zip(given, wanted), [](auto pair) {
    auto &[own, more] = pair;
    return own.size() <= more.size() &&
           ArrayRef(more).take_front(own.size()) == ArrayRef(own);
  });
}

LogicalResult Materializer::rewriteOp(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  // Operands count with what they have become, results with what is wished.
  SmallVector<TensorAxes> tensors;
  for (Value operand : op->getOperands()) {
    TensorAxes &axes = tensors.emplace_back();
    axes.fixed = fixed.contains(operand);
    axes.wishes = table.getWishes(operand);
    if (isSilent(op, operand))
      axes.dims.resize(cast<RankedTensorType>(operand.getType()).getRank());
    else
      axes.dims = getAxisLists(dist::ShardingAttr::of(operand.getType()));
  }
  for (Value result : op->getResults())
    tensors.push_back(wishOf(result));
  for (StringAttr axis : findJoinedTerms(op, rule))
    for (TensorAxes &tensor : tensors)
      for (AxisList &axes : tensor.dims)
        axes.erase(llvm::find(axes, axis), axes.end());
  auto dimsOf = [&](const ShardingRule::Tensor &tensor,
                    ArrayRef<AxisList> factorAxes) {
    AxisLists dims;
    for (const ShardingRule::Dim &dim : tensor)
      dims.push_back(joinFactors(dim, factorAxes));
    return dims;
  };
  AxisLists factorAxes = chooseFactorAxes(mesh, op, rule, tensors);
  // A view is taken of what is there: who wants less of it cuts the view, and
  // not in the middle of a row of views, which then are one.
  if (isa<nn::ReshapeOp, nn::TransposeOp>(op) &&
      dist::ShardingAttr::of(op->getOperand(0).getType())
          .getPartial()
          .empty() &&
      extendsAll(tensors.front().dims, dimsOf(rule.operands[0], factorAxes))) {
    for (AxisList &axes : tensors.back().dims)
      axes.clear();
    factorAxes = chooseFactorAxes(mesh, op, rule, tensors);
  }
  FailureOr<PartialAxes> partial = getReducedAxes(rule, factorAxes);
  if (failed(partial))
    return op->emitOpError() << "combines over sharded dimensions in different "
                                "ways, which no partial result can express";
  PartialAxes reduced = *partial;

  SmallVector<dist::ShardingAttr> operands;
  llvm::SmallSetVector<StringAttr, 4> incoming;
  for (Value operand : op->getOperands()) {
    auto sharding = dist::ShardingAttr::of(operand.getType());
    operands.push_back(sharding);
    incoming.insert_range(sharding.getPartial().getNames());
  }
  AxisList passed;
  for (StringAttr axis : incoming)
    if (passesPartial(rule, factorAxes, reduced, operands, axis))
      passed.push_back(axis);

  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    AxisList kept;
    for (StringAttr axis : operands[index].getPartial().getNames())
      if (llvm::is_contained(passed, axis))
        kept.push_back(axis);
    op->setOperand(
        index,
        reshard(op->getOperand(index),
                getSharding(symbol, dimsOf(tensor, factorAxes), kept), op));
  }
  for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results)) {
    AxisList axes = getPartialAxes(reduced, factorAxes, tensor);
    llvm::append_range(axes, passed);
    // One sum has one type, whichever way its axes came.
    llvm::sort(axes, [&](StringAttr a, StringAttr b) {
      return mesh.getAxisNumber(a) < mesh.getAxisNumber(b);
    });
    result.setType(withSharding(result.getType(),
                                getSharding(symbol, dimsOf(tensor, factorAxes),
                                            axes, reduced.reduction)));
  }
  for (Value result : op->getResults())
    sumWhereItBranches(result);
  return success();
}

/// Whether more will be summed over an axis if a value goes on as terms than
/// the value itself: all that is then needed as a sum. Looks ahead as far as
/// ops are linear in it, and no farther than it takes: a chain would be read to
/// its end for each of its values.
bool Materializer::costsMoreIfCarried(Value value, StringAttr axis) {
  int64_t bytes = 0, most = getTensorBytes(value.getType());
  llvm::SmallSetVector<Value, 8> carried;
  llvm::SmallDenseSet<Value> needed;
  carried.insert(value);
  for (size_t next = 0; next < carried.size(); ++next)
    for (Operation *user : carried[next].getUsers()) {
      auto shardable = dyn_cast<ShardingRuleOpInterface>(user);
      SmallVector<unsigned, 2> terms;
      for (auto [index, operand] : llvm::enumerate(user->getOperands())) {
        auto sharding = dist::ShardingAttr::of(operand.getType());
        if (carried.contains(operand) ||
            (sharding && sharding.getPartial().contains(axis)))
          terms.push_back(index);
      }
      if (shardable &&
          llvm::is_contained(shardable.getShardingRule().linearGroups, terms)) {
        carried.insert_range(user->getResults());
      } else if (needed.insert(carried[next]).second) {
        bytes += getTensorBytes(carried[next].getType());
        if (bytes > most)
          return true;
      }
    }
  return false;
}

/// A sum may wait, for it may be one with others; but where terms would go
/// several ways and be summed at the end of each, it is made before. Sums over
/// axes of the batch are those of gradients, and later passes place them.
void Materializer::sumWhereItBranches(Value value) {
  auto sharding = dist::ShardingAttr::of(value.getType());
  if (value.use_empty() || value.hasOneUse() ||
      sharding.getReduction() != dist::Reduction::sum)
    return;
  AxisList waiting;
  for (StringAttr axis : sharding.getPartial().getNames())
    if (batchAxes.contains(axis) || !costsMoreIfCarried(value, axis))
      waiting.push_back(axis);
  if (waiting.size() == sharding.getPartial().getNames().size())
    return;
  // In the pieces that are wished for, where these are pieces of what is there.
  AxisLists dims = getAxisLists(sharding), wished = wishOf(value).dims;
  bool extends = extendsAll(dims, wished);
  for (const AxisList &axes : wished)
    extends &= llvm::none_of(axes, [&](StringAttr axis) {
      return llvm::is_contained(waiting, axis);
    });
  Operation *definition = value.getDefiningOp();
  OpBuilder builder(definition->getContext());
  builder.setInsertionPointAfter(definition);
  auto sum = dist::ReshardOp::create(
      builder, value.getLoc(),
      withSharding(value.getType(),
                   getSharding(symbol, extends ? wished : dims, waiting)),
      value);
  sum->setAttr(dist::kInsertedByAttr,
               builder.getStringAttr("dist-materialize"));
  value.replaceAllUsesExcept(sum.getResult(), sum);
}

/// The axes over which an argument is partial: of what compression has left out
/// each rank keeps its term.
AxisList Materializer::findTerms(BlockArgument argument) {
  AxisList axes;
  if (residuals.contains(
          function.getArgAttr(argument.getArgNumber(), nn::kStateAttr)))
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
      if (axis.getSize() > 1 && axis.getName() != dist::MeshOp::kMicroBatchAxis)
        axes.push_back(StringAttr::get(mesh.getContext(), axis.getName()));
  return axes;
}

/// Results leave a function placed as they are, but never partial; a state in
/// the sharding in which it came.
LogicalResult Materializer::rewriteReturn(func::ReturnOp op) {
  llvm::DenseMap<Attribute, BlockArgument> states;
  for (BlockArgument argument : function.getArguments())
    if (Attribute state =
            function.getArgAttr(argument.getArgNumber(), nn::kStateAttr))
      states[state] = argument;
  for (OpOperand &operand : op->getOpOperands()) {
    auto sharding = dist::ShardingAttr::of(operand.get().getType());
    auto target = getSharding(symbol, getAxisLists(sharding));
    Attribute state =
        function.getResultAttr(operand.getOperandNumber(), nn::kStateAttr);
    if (BlockArgument argument = states.lookup(state))
      target = dist::ShardingAttr::of(argument.getType());
    // As any reader of a constant, a result makes its own: of no rank's part of
    // the batch, nor of a micro-batch's, whatever others need of it.
    else if (isMadeOfNothing(operand.get()))
      target =
          dist::ShardingAttr::getReplicated(symbol, sharding.getDims().size());
    if (target.isPartial() && sharding != target)
      return op.emitError() << "expected a term of the new value of " << state
                            << " from each data-parallel rank, which has one "
                               "of the gradient, found "
                            << operand.get().getType();
    operand.set(reshard(operand.get(), target, op));
  }
  return success();
}

/// States are sharded as the arguments that stand for them, in all functions
/// alike.
static LogicalResult placeStates(ModuleOp module) {
  llvm::DenseMap<Attribute, dist::ShardingAttr> placed;
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      Attribute name = function.getArgAttr(index, nn::kStateAttr);
      if (!name)
        continue;
      auto sharding =
          dist::ShardingAttr::of(function.getArgumentTypes()[index]);
      auto [known, isNew] = placed.try_emplace(name, sharding);
      if (!isNew && known->second != sharding)
        return function.emitError()
               << "state " << name << " is sharded as " << sharding
               << " here and as " << known->second << " in another function";
    }
  for (auto state : module.getOps<nn::StateOp>()) {
    auto sharding =
        placed.lookup(FlatSymbolRefAttr::get(state.getSymNameAttr()));
    if (!sharding) {
      dist::MeshOp mesh = dist::MeshOp::of(module);
      sharding = dist::ShardingAttr::getReplicated(
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
          cast<RankedTensorType>(state.getType()).getRank());
    }
    state.setType(withSharding(state.getType(), sharding));
  }
  return success();
}

/// An axis that splits nothing makes its ranks repeat each other's work: legal,
/// and hardly what was meant.
static LogicalResult reportIdleAxes(dist::MeshOp mesh, ModuleOp module,
                                    bool strict) {
  llvm::SmallDenseSet<StringRef> used;
  module.walk([&](Operation *op) {
    SmallVector<Type> types(op->getResultTypes());
    if (auto function = dyn_cast<func::FuncOp>(op))
      llvm::append_range(types, function.getArgumentTypes());
    for (Type type : types)
      if (auto sharding = dist::ShardingAttr::of(type))
        for (dist::AxesAttr axes : sharding.getDims())
          for (StringAttr axis : axes.getNames())
            used.insert(axis.getValue());
  });
  // Stages split the model, not its tensors.
  used.insert(dist::MeshOp::kPipelineAxis);
  bool isGood = true;
  for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
    if (axis.getSize() > 1 && !used.contains(axis.getName())) {
      (strict ? mesh.emitError() : mesh.emitWarning())
          << "mesh axis '" << axis.getName() << "' of size " << axis.getSize()
          << " splits nothing: its ranks repeat each other's work";
      isGood = !strict;
    }
  return success(isGood);
}

namespace {
struct MaterializePass : impl::MaterializePassBase<MaterializePass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    FailureOr<dist::MeshOp> mesh = dist::MeshOp::require(module);
    if (failed(mesh))
      return signalPassFailure();
    llvm::DenseSet<Attribute> residuals = nn::getResiduals(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() &&
          failed(Materializer(function, getChildAnalysis<Propagation>(function),
                              *mesh, residuals)
                     .run()))
        return signalPassFailure();
    if (failed(placeStates(module)))
      return signalPassFailure();
    if (failed(reportIdleAxes(*mesh, module, strict)))
      return signalPassFailure();
  }
};
} // namespace
} // namespace accel::parallel
