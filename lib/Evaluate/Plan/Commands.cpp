// The meaning of each command kind. Products and attention mean what the nn ops
// of the same name mean; kernels are evaluated by their function of nn ops.

#include "lib/Evaluate/Plan/Commands.h"

#include "dialects/NN/NN.h"
#include "lib/Evaluate/Collectives.h"
#include "lib/Evaluate/RankOp.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
/// One command on one rank.
class CommandEvaluator {
public:
  CommandEvaluator(Operation *op, const plan::RunTurn &run, RankMemory &memory,
                   PlanWorld &world)
      : op(op), run(run), memory(memory), world(world) {}

  LogicalResult execute() {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<plan::ConvOp, plan::DealRowsOp, plan::GemmOp, plan::GroupedGemmOp,
              plan::GroupedGemmGradOp, plan::AttentionOp, plan::AttentionGradOp,
              plan::KernelOp, plan::CopyOp, plan::FillOp, plan::PackOp,
              plan::CoordinateOp, plan::ReadOp, plan::WriteOp>(
            [&](auto command) { return evaluate(command); })
        .Default([](Operation *op) {
          return op->emitOpError() << "has no meaning to the evaluator";
        });
  }

private:
  LogicalResult evaluate(plan::GemmOp gemm);
  LogicalResult evaluate(plan::ConvOp conv);
  LogicalResult evaluate(plan::DealRowsOp deal);
  LogicalResult evaluate(plan::GroupedGemmOp gemm);
  LogicalResult evaluate(plan::GroupedGemmGradOp grad);
  LogicalResult evaluate(plan::AttentionOp attention);
  LogicalResult evaluate(plan::AttentionGradOp grad);
  LogicalResult evaluate(plan::KernelOp kernel) {
    return executeKernel(kernel, run, memory, world);
  }
  LogicalResult evaluate(plan::CopyOp copy);
  LogicalResult evaluate(plan::FillOp fill);
  LogicalResult evaluate(plan::PackOp pack);
  LogicalResult evaluate(plan::CoordinateOp coordinate);
  LogicalResult evaluate(plan::ReadOp read);
  LogicalResult evaluate(plan::WriteOp write);

  FailureOr<Tensor> read(plan::ViewAttr view) {
    return memory.read(op, view, run);
  }
  LogicalResult write(plan::ViewAttr view, const Tensor &tensor) {
    return memory.write(op, view, run, tensor);
  }
  /// The first bytes of an opaque range, as elements in row-major order.
  static plan::ViewAttr viewPacked(plan::ViewAttr packed, plan::ViewAttr as);

  FailureOr<SmallVector<Tensor>> read(ArrayRef<plan::ViewAttr> views) {
    SmallVector<Tensor> tensors;
    for (plan::ViewAttr view : views) {
      FailureOr<Tensor> tensor = read(view);
      if (failed(tensor))
        return failure();
      tensors.push_back(*tensor);
    }
    return tensors;
  }
  /// Evaluates an nn op that `build` makes from operands of the tensors' types.
  FailureOr<SmallVector<Tensor>>
  evaluateOn(ArrayRef<Tensor> tensors,
             llvm::function_ref<Operation *(OpBuilder &, ValueRange)> build);

  Operation *op;
  plan::RunTurn run;
  RankMemory &memory;
  PlanWorld &world;
};
} // namespace

FailureOr<SmallVector<Tensor>> CommandEvaluator::evaluateOn(
    ArrayRef<Tensor> tensors,
    llvm::function_ref<Operation *(OpBuilder &, ValueRange)> build) {
  Block block;
  for (const Tensor &tensor : tensors)
    block.addArgument(tensor.getType(), op->getLoc());
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  Operation *meaning = build(builder, block.getArguments());
  SmallVector<Tensor> results;
  FailureOr<RankOp> here = RankOp::get(meaning, memory.pointOf(run));
  LogicalResult evaluated = failure();
  if (succeeded(here))
    evaluated = evaluateOp(here->get(), tensors, world.getMode(), results);
  block.clear();
  if (failed(evaluated))
    return failure();
  return results;
}

plan::ViewAttr CommandEvaluator::viewPacked(plan::ViewAttr packed,
                                            plan::ViewAttr as) {
  return plan::ViewAttr::get(packed.getContext(), packed.getBuffer(),
                             packed.getOffset(), packed.getAxes(),
                             as.getElement(), as.getShape(),
                             getRowMajorStrides(as.getShape()));
}

/// C = A B (+ bias) (+ C). A packed B is read where `plan.pack` wrote it.
LogicalResult CommandEvaluator::evaluate(plan::GemmOp gemm) {
  FailureOr<Tensor> a = read(gemm.getA());
  FailureOr<Tensor> b =
      read(gemm.getPacked() ? viewPacked(*gemm.getPacked(), gemm.getB())
                            : gemm.getB());
  if (failed(a) || failed(b))
    return failure();
  FailureOr<SmallVector<Tensor>> product =
      evaluateOn({*a, *b}, [&](OpBuilder &builder, ValueRange operands) {
        return nn::MatmulOp::create(builder, gemm.getLoc(),
                                    gemm.getC().getTensorType(), operands[0],
                                    operands[1]);
      });
  if (failed(product))
    return failure();
  Tensor &c = product->front();
  if (gemm.getBias()) {
    FailureOr<Tensor> bias = read(*gemm.getBias());
    if (failed(bias))
      return failure();
    size_t columns = bias->getNumElements();
    for (auto [index, value] : llvm::enumerate(c.mutableFloats()))
      value += bias->floats()[index % columns];
  }
  if (gemm.getAccumulate()) {
    FailureOr<Tensor> old = read(gemm.getC());
    if (failed(old))
      return failure();
    for (auto [value, before] : llvm::zip(c.mutableFloats(), old->floats()))
      value += before;
  }
  return write(gemm.getC(), c);
}

LogicalResult CommandEvaluator::evaluate(plan::ConvOp conv) {
  FailureOr<SmallVector<Tensor>> tensors = read({conv.getA(), conv.getB()});
  if (failed(tensors))
    return failure();
  RankedTensorType type = conv.getC().getTensorType();
  ArrayRef<int64_t> sizes =
      conv.getC().getShape().take_back(conv.getStrides().size());
  auto build = [&](auto tag, OpBuilder &builder,
                   ValueRange operands) -> Operation * {
    return decltype(tag)::type::create(
        builder, conv.getLoc(), type, operands[0], operands[1], sizes,
        conv.getStrides(), conv.getDilations(), conv.getLow());
  };
  FailureOr<SmallVector<Tensor>> result =
      evaluateOn(*tensors, [&](OpBuilder &builder, ValueRange operands) {
        switch (conv.getConvolution()) {
        case plan::Convolution::forward:
          return build(nn::OpTag<nn::ConvOp>(), builder, operands);
        case plan::Convolution::input_grad:
          return build(nn::OpTag<nn::ConvInputGradOp>(), builder, operands);
        case plan::Convolution::weight_grad:
          return build(nn::OpTag<nn::ConvWeightGradOp>(), builder, operands);
        }
        llvm_unreachable("a kind of convolution");
      });
  return failure(failed(result) || failed(write(conv.getC(), result->front())));
}

LogicalResult CommandEvaluator::evaluate(plan::DealRowsOp deal) {
  FailureOr<SmallVector<Tensor>> tensors =
      read({deal.getGroups(), deal.getRank()});
  if (failed(tensors))
    return failure();
  FailureOr<SmallVector<Tensor>> dealt =
      evaluateOn(*tensors, [&](OpBuilder &builder, ValueRange operands) {
        return nn::DealRowsOp::create(
            builder, deal.getLoc(), operands[0], operands[1],
            deal.getNumGroups(), deal.getRanks(), deal.getRows().getShape()[0]);
      });
  return failure(failed(dealt) || failed(write(deal.getRows(), (*dealt)[0])) ||
                 failed(write(deal.getOwn(), (*dealt)[1])) ||
                 failed(write(deal.getPlaces(), (*dealt)[2])));
}

LogicalResult CommandEvaluator::evaluate(plan::GroupedGemmOp gemm) {
  FailureOr<SmallVector<Tensor>> tensors =
      read({gemm.getA(), gemm.getB(), gemm.getGroups()});
  if (failed(tensors))
    return failure();
  FailureOr<SmallVector<Tensor>> product =
      evaluateOn(*tensors, [&](OpBuilder &builder, ValueRange operands) {
        return nn::GroupedMatmulOp::create(
            builder, gemm.getLoc(), gemm.getC().getTensorType(), operands[0],
            operands[1], operands[2], /*transpose_rhs=*/false);
      });
  return failure(failed(product) ||
                 failed(write(gemm.getC(), product->front())));
}

LogicalResult CommandEvaluator::evaluate(plan::GroupedGemmGradOp grad) {
  FailureOr<SmallVector<Tensor>> tensors =
      read({grad.getA(), grad.getB(), grad.getGroups()});
  if (failed(tensors))
    return failure();
  FailureOr<SmallVector<Tensor>> sums =
      evaluateOn(*tensors, [&](OpBuilder &builder, ValueRange operands) {
        return nn::GroupedMatmulGradOp::create(
            builder, grad.getLoc(), grad.getC().getTensorType(), operands[0],
            operands[1], operands[2], grad.getC().getShape()[0]);
      });
  if (failed(sums))
    return failure();
  Tensor &c = sums->front();
  if (grad.getAccumulate()) {
    FailureOr<Tensor> old = read(grad.getC());
    if (failed(old))
      return failure();
    for (auto [value, before] : llvm::zip(c.mutableFloats(), old->floats()))
      value += before;
  }
  return write(grad.getC(), c);
}

LogicalResult CommandEvaluator::evaluate(plan::AttentionOp attention) {
  SmallVector<plan::ViewAttr> views = {attention.getQuery(), attention.getKey(),
                                       attention.getValue()};
  if (attention.getMask())
    views.push_back(*attention.getMask());
  FailureOr<SmallVector<Tensor>> tensors = read(views);
  if (failed(tensors))
    return failure();
  FailureOr<SmallVector<Tensor>> result =
      evaluateOn(*tensors, [&](OpBuilder &builder, ValueRange operands) {
        return nn::AttentionOp::create(
            builder, attention.getLoc(), operands[0], operands[1], operands[2],
            operands.size() > 3 ? operands[3] : Value(),
            attention.getScaleAttr(), attention.getCausalAttr(),
            attention.getZeroMaskedRowsAttr(), attention.getRowOffsetAttr(),
            attention.getColumnOffsetAttr(), attention.getRowStepsAttr(),
            attention.getColumnStepsAttr(), attention.getTurnAttr(),
            attention.getStrideAttr());
      });
  if (failed(result) || failed(write(attention.getOutput(), result->front())))
    return failure();
  return attention.getLogSumExp()
             ? write(*attention.getLogSumExp(), result->back())
             : success();
}

LogicalResult CommandEvaluator::evaluate(plan::AttentionGradOp grad) {
  SmallVector<plan::ViewAttr> views = {grad.getQuery(),     grad.getKey(),
                                       grad.getValue(),     grad.getOutput(),
                                       grad.getLogSumExp(), grad.getGradient()};
  if (grad.getLogSumExpGradient())
    views.push_back(*grad.getLogSumExpGradient());
  if (grad.getMask())
    views.push_back(*grad.getMask());
  FailureOr<SmallVector<Tensor>> tensors = read(views);
  if (failed(tensors))
    return failure();
  FailureOr<SmallVector<Tensor>> results =
      evaluateOn(*tensors, [&](OpBuilder &builder, ValueRange operands) {
        return nn::AttentionGradOp::create(
            builder, grad.getLoc(), operands[0], operands[1], operands[2],
            operands[3], operands[4], operands[5],
            grad.getLogSumExpGradient() ? operands[6] : Value(),
            grad.getMask() ? operands.back() : Value(), grad.getScaleAttr(),
            grad.getCausalAttr(), grad.getZeroMaskedRowsAttr(),
            grad.getRowOffsetAttr(), grad.getColumnOffsetAttr(),
            grad.getRowStepsAttr(), grad.getColumnStepsAttr(),
            grad.getTurnAttr(), grad.getStrideAttr());
      });
  if (failed(results))
    return failure();
  for (auto [view, tensor] :
       llvm::zip_equal(ArrayRef{grad.getQueryGradient(), grad.getKeyGradient(),
                                grad.getValueGradient()},
                       *results))
    if (failed(write(view, tensor)))
      return failure();
  return success();
}

LogicalResult CommandEvaluator::evaluate(plan::CopyOp copy) {
  FailureOr<Tensor> tensor = read(copy.getSource());
  if (failed(tensor))
    return failure();
  return write(copy.getTarget(), *tensor);
}

LogicalResult CommandEvaluator::evaluate(plan::FillOp fill) {
  Tensor tensor(fill.getTarget().getTensorType());
  if (auto value = dyn_cast<FloatAttr>(fill.getValue());
      value && tensor.isFloat())
    llvm::fill(tensor.mutableFloats(), value.getValueAsDouble());
  else if (auto value = dyn_cast<IntegerAttr>(fill.getValue());
           value && !tensor.isFloat())
    llvm::fill(tensor.mutableInts(),
               wrapToType(value.getValue().zextOrTrunc(64).getSExtValue(),
                          tensor.getElementType()));
  else
    return fill.emitOpError()
           << "expected a value of type " << tensor.getElementType()
           << ", found " << fill.getValue();
  return write(fill.getTarget(), tensor);
}

/// What a library packs is its own affair: here, the elements one after another
/// from the start, as gemm reads them back.
LogicalResult CommandEvaluator::evaluate(plan::PackOp pack) {
  FailureOr<Tensor> tensor = read(pack.getSource());
  if (failed(tensor))
    return failure();
  return write(viewPacked(pack.getTarget(), pack.getSource()), *tensor);
}

LogicalResult CommandEvaluator::evaluate(plan::CoordinateOp coordinate) {
  SmallVector<StringAttr> axes;
  MeshPoint point = memory.pointOf(run);
  for (Attribute axis : coordinate.getAxes()) {
    axes.push_back(cast<StringAttr>(axis));
    if (!point.getAxisSize(axes.back()))
      return coordinate.emitOpError() << "names no axis " << axis;
  }
  Tensor tensor(coordinate.getTarget().getTensorType());
  if (tensor.isFloat() || tensor.getNumElements() != 1)
    return coordinate.emitOpError() << "expected a scalar i64 to write to";
  tensor.mutableInts()[0] = point.getIndex(axes);
  return write(coordinate.getTarget(), tensor);
}

/// Of a view of all micro-batches' tensors that of one.
static plan::ViewAttr getOf(plan::ViewAttr each, int64_t microBatch) {
  return plan::ViewAttr::get(
      each.getContext(), each.getBuffer(),
      each.getOffset() +
          microBatch * each.getStrides().front() * each.getElementBytes(),
      each.getAxes(), each.getElement(), each.getShape().drop_front(),
      each.getStrides().drop_front());
}

LogicalResult CommandEvaluator::evaluate(plan::ReadOp command) {
  FailureOr<Tensor> source = world.getSource(command);
  MeshPoint point = memory.pointOf(run);
  Placement placement = getPlacement(command.getPart());
  if (failed(source) || failed(placement.verify(point, command.getLoc())))
    return failure();
  plan::ViewAttr target = command.getTarget();
  if (!command.getEachMicroBatch())
    return write(target, placement.cut(*source, point));
  for (int64_t each = 0; each < target.getShape().front(); ++each) {
    point.microBatch = each;
    if (failed(write(getOf(target, each), placement.cut(*source, point))))
      return failure();
  }
  return success();
}

LogicalResult CommandEvaluator::evaluate(plan::WriteOp command) {
  MeshPoint point = memory.pointOf(run);
  auto add = [&](plan::ViewAttr view) {
    FailureOr<Tensor> tensor = read(view);
    return failed(tensor) ? failure()
                          : world.addOutput(command, point, *tensor);
  };
  plan::ViewAttr view = command.getView();
  if (!command.getEachMicroBatch())
    return add(view);
  for (int64_t each = 0; each < view.getShape().front(); ++each) {
    point.microBatch = each;
    if (failed(add(getOf(view, each))))
      return failure();
  }
  return success();
}

LogicalResult evaluate::executeCommand(Operation *op, const plan::RunTurn &run,
                                       RankMemory &memory, PlanWorld &world) {
  return CommandEvaluator(op, run, memory, world).execute();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Whether the tensors of a group have what is cut into its ranks' parts, and
/// joined.
static LogicalResult checkDims(plan::CollectiveOp op,
                               const GroupTensors &group) {
  ArrayRef<int64_t> shape = group.front().getShape();
  int64_t ranks = group.size(), rank = shape.size();
  auto check = [&](int64_t dim, int64_t parts) -> LogicalResult {
    if (dim >= 0 && dim < rank && shape[dim] % parts == 0)
      return success();
    return op.emitOpError() << "expected a dimension of [" << shape << "] in "
                            << parts << " equal parts, found " << dim;
  };
  switch (op.getCollective()) {
  case plan::Collective::reduce_scatter:
    return check(op.getDim(), ranks);
  case plan::Collective::all_gather:
    return check(op.getDim(), 1);
  case plan::Collective::all_to_all:
    return failure(failed(check(op.getSplitDim(), ranks)) ||
                   failed(check(op.getDim(), 1)));
  default:
    return success();
  }
}

/// The collective on one tensor per member.
static FailureOr<GroupTensors> executeOn(plan::CollectiveOp op,
                                         const GroupTensors &group) {
  if (failed(checkDims(op, group)))
    return failure();
  // plan's combinations are dist's, name for name.
  dist::Reduction kind = dist::Reduction::sum;
  if (op.getCombine())
    kind = *dist::symbolizeReduction(plan::stringifyCombine(*op.getCombine()));
  switch (op.getCollective()) {
  case plan::Collective::all_reduce:
    return allReduce(kind, group);
  case plan::Collective::reduce_scatter:
    return reduceScatter(kind, group, op.getDim());
  case plan::Collective::all_gather:
    return allGather(group, op.getDim());
  case plan::Collective::all_to_all:
    return allToAll(group, op.getSplitDim(), op.getDim());
  case plan::Collective::broadcast:
    return broadcast(group, /*root=*/0);
  case plan::Collective::fetch_rows:
    return op.emitOpError() << "expected an index";
  case plan::Collective::permute:
    if (!op.getPermutation() || op.getPermutation()->size() != group.size())
      return op.emitOpError()
             << "expected a permutation of " << group.size() << " ranks";
    return permute(group, *op.getPermutation());
  }
  llvm_unreachable("a collective without meaning");
}

LogicalResult evaluate::executeCollective(ArrayRef<Member> members) {
  plan::CollectiveOp first = members.front().op;
  for (size_t index = 0; index < first.getInputs().size(); ++index) {
    GroupTensors group;
    for (const Member &member : members) {
      auto view = cast<plan::ViewAttr>(
          plan::CollectiveOp(member.op).getInputs()[index]);
      FailureOr<Tensor> tensor =
          member.memory->read(member.op, view, member.run);
      if (failed(tensor))
        return failure();
      if (std::optional<Type> wire = first.getWire(); wire && tensor->isFloat())
        for (double &value : tensor->mutableFloats())
          value = roundToType(value, *wire);
      if (!group.empty() && group.front().getShape() != tensor->getShape())
        return plan::CollectiveOp(member.op).emitOpError()
               << "expected the same shape on all ranks of the group";
      group.push_back(*tensor);
    }
    GroupTensors indices;
    for (const Member &member : members)
      if (auto view = plan::CollectiveOp(member.op).getIndex()) {
        FailureOr<Tensor> tensor =
            member.memory->read(member.op, *view, member.run);
        if (failed(tensor))
          return failure();
        indices.push_back(*tensor);
      }
    FailureOr<GroupTensors> results = indices.empty()
                                          ? executeOn(first, group)
                                          : fetchRows(first, group, indices);
    if (failed(results))
      return failure();
    for (auto [member, tensor] : llvm::zip(members, *results)) {
      auto view = cast<plan::ViewAttr>(
          plan::CollectiveOp(member.op).getOutputs()[index]);
      if (failed(member.memory->write(member.op, view, member.run, tensor)))
        return failure();
    }
  }
  return success();
}

LogicalResult evaluate::poisonAfter(Operation *op, const plan::RunTurn &run,
                                    RankMemory &memory) {
  SmallVector<plan::ViewAttr> views;
  if (auto releases = op->getAttrOfType<ArrayAttr>("plan.releases"))
    llvm::append_range(views, releases.getAsRange<plan::ViewAttr>());
  auto add = [&](std::optional<plan::ViewAttr> view) {
    if (view)
      views.push_back(*view);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<plan::GroupedGemmOp, plan::GroupedGemmGradOp>([&](auto grouped) {
        add(grouped.getOrder());
        add(grouped.getScratch());
      })
      .Case<plan::GemmOp, plan::AttentionOp, plan::AttentionGradOp,
            plan::KernelOp>([&](auto command) { add(command.getScratch()); });
  for (plan::ViewAttr view : views)
    if (failed(memory.poison(op, view, run)))
      return failure();
  return success();
}
