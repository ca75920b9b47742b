// Lockstep execution: nn ops rank by rank, dist ops group by group.

#include "lib/Evaluate/Lockstep.h"

#include "lib/Evaluate/RankOp.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

LogicalResult Lockstep::call(func::FuncOp function,
                             ArrayRef<GroupTensors> arguments,
                             SmallVectorImpl<GroupTensors> &results) {
  if (function.isExternal() || !llvm::hasSingleElement(function.getBody()))
    return function.emitOpError() << "expected a function of one block";
  if (arguments.size() != function.getNumArguments())
    return function.emitOpError() << "expected " << function.getNumArguments()
                                  << " arguments, found " << arguments.size();
  Values values;
  DenseMap<Value, unsigned> usesLeft; // values are freed after their last use
  auto define = [&](Value value, GroupTensors tensors) {
    if (value.use_empty())
      return;
    usesLeft[value] = std::distance(value.use_begin(), value.use_end());
    values[value] = std::move(tensors);
  };
  for (auto [argument, tensors] : llvm::zip(function.getArguments(), arguments))
    define(argument, tensors);

  for (Operation &op : function.front()) {
    SmallVector<GroupTensors> operands, opResults;
    for (Value operand : op.getOperands())
      operands.push_back(values[operand]);
    for (Value operand : op.getOperands())
      if (--usesLeft[operand] == 0)
        values.erase(operand);
    if (isa<func::ReturnOp>(op)) {
      llvm::append_range(results, operands);
      return success();
    }
    if (failed(execute(&op, operands, opResults)))
      return failure();
    for (auto [result, tensors] : llvm::zip(op.getResults(), opResults))
      define(result, std::move(tensors));
  }
  llvm_unreachable("a function ends with a return");
}

LogicalResult Lockstep::execute(Operation *op, ArrayRef<GroupTensors> operands,
                                SmallVectorImpl<GroupTensors> &results) {
  if (auto called = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        op, called.getCalleeAttr());
    if (!callee)
      return op->emitOpError()
             << "names no function " << called.getCalleeAttr();
    return call(callee, operands, results);
  }
  // Whole tensors mean the same wherever they are.
  if (isa<dist::ConstraintOp, dist::ReshardOp, dist::AccumulateOp>(op)) {
    results.push_back(operands[0]);
    return success();
  }
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    return executeCollective(collective, operands, results.emplace_back());

  results.resize(op->getNumResults());
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<Tensor> rankOperands, rankResults;
    for (const GroupTensors &operand : operands)
      rankOperands.push_back(operand[rank]);
    FailureOr<RankOp> here = RankOp::get(op, MeshPoint{mesh, rank, microBatch});
    if (failed(here) ||
        failed(evaluateOp(here->get(), rankOperands, mode, rankResults)))
      return failure();
    for (auto [result, tensor] : llvm::zip(results, rankResults))
      result.push_back(std::move(tensor));
  }
  return success();
}

/// The collective on one group, by kind.
static GroupTensors executeOnGroup(Operation *op, const GroupTensors &group) {
  return llvm::TypeSwitch<Operation *, GroupTensors>(op)
      .Case(
          [&](dist::AllReduceOp op) { return allReduce(op.getKind(), group); })
      .Case([&](dist::ReduceScatterOp op) {
        return reduceScatter(op.getKind(), group, op.getDim());
      })
      .Case([&](dist::AllGatherOp op) { return allGather(group, op.getDim()); })
      .Case([&](dist::AllToAllOp op) {
        return allToAll(group, op.getSplitDim(), op.getConcatDim());
      })
      .Case([&](dist::PermuteOp op) { return permute(group, op.getSources()); })
      .Case(
          [&](dist::BroadcastOp op) { return broadcast(group, op.getRoot()); })
      .Default([](Operation *) { return GroupTensors(); });
}

LogicalResult Lockstep::executeCollective(dist::CollectiveOpInterface op,
                                          ArrayRef<GroupTensors> operands,
                                          GroupTensors &result) {
  dist::MeshOp named = dist::MeshOp::lookup(op, op.getMeshAttr());
  if (!mesh || named != mesh || ranks != mesh.getRankCount())
    return op->emitOpError()
           << "expected a program of the ranks of " << op.getMeshAttr()
           << ", found one of " << ranks << (ranks == 1 ? " rank" : " ranks");
  result.resize(ranks);
  Type type = op->getResult(0).getType();
  // These two need no other rank, so that `mb` may be among their axes.
  SmallVector<StringAttr> axes(op.getAxes().getNames());
  auto indexOf = [&](int64_t rank) {
    return MeshPoint{mesh, rank, microBatch}.getIndex(axes);
  };
  if (isa<dist::AxisIndexOp>(op)) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      result[rank] = Tensor(cast<RankedTensorType>(type));
      result[rank].mutableInts()[0] = indexOf(rank);
    }
    return success();
  }
  if (auto slice = dyn_cast<dist::AllSliceOp>(op.getOperation())) {
    int64_t count = 1;
    for (StringAttr axis : axes)
      count *= *mesh.findAxisSize(axis);
    for (int64_t rank = 0; rank < ranks; ++rank)
      result[rank] =
          takeChunk(operands[0][rank], slice.getDim(), indexOf(rank), count);
    return success();
  }
  // What comes in has that type, and what goes out.
  auto roundToWire = [&](Tensor &tensor) {
    if (std::optional<Type> wire = op.getWireType();
        wire && mode == EvaluationMode::OwnTypes)
      for (double &value : tensor.mutableFloats())
        value = roundToType(value, *wire);
  };
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<int64_t> members = mesh.getGroup(rank, op.getAxes());
    if (members.front() != rank)
      continue; // the group of another rank, done once
    GroupTensors group;
    for (int64_t member : members) {
      Tensor tensor = operands[0][member];
      roundToWire(tensor);
      group.push_back(std::move(tensor));
    }
    GroupTensors outcome = executeOnGroup(op, group);
    if (isa<dist::FetchRowsOp>(op)) {
      GroupTensors indices;
      for (int64_t member : members)
        indices.push_back(operands[1][member]);
      FailureOr<GroupTensors> fetched = fetchRows(op, group, indices);
      if (failed(fetched))
        return failure();
      outcome = std::move(*fetched);
    }
    if (outcome.empty())
      return op->emitOpError() << "has no meaning to the evaluator";
    for (auto [member, tensor] : llvm::zip(members, outcome)) {
      roundToWire(tensor);
      if (mode == EvaluationMode::OwnTypes)
        tensor.roundToElementType();
      result[member] = std::move(tensor);
    }
  }
  for (const Tensor &tensor : result)
    if (!tensor.hasType(cast<RankedTensorType>(type)))
      return op->emitOpError() << "expected a result of type " << type
                               << ", found " << tensor.getType();
  return success();
}
