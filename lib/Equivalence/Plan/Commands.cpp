// What each kind of command computes, and where it may write.

#include "InPlace.h"
#include "Replay.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

static constexpr StringLiteral kRowsOfPack = "m";

static SmallVector<plan::ViewAttr> listViews(ArrayAttr views) {
  return SmallVector<plan::ViewAttr>(views.getAsRange<plan::ViewAttr>());
}

//===----------------------------------------------------------------------===//
// Products and attention
//===----------------------------------------------------------------------===//

ValueId PlanReplay::getPacked(Attribute form, ArrayRef<int64_t> shape,
                              TermId elements, int64_t bytes, Operation *op) {
  ValueKey key;
  key.add(int64_t(ValueKind::Packed)).add(form.getAsOpaquePointer());
  key.add(shape).addTerm(elements).add(bytes);
  return terms.getValue(key,
                        {ValueKind::Packed, bytes,
                         IntegerType::get(op->getContext(), 8), elements, op});
}

LogicalResult PlanReplay::execute(plan::PackOp pack) {
  FailureOr<TermId> elements = read(pack.getSource());
  if (failed(elements) ||
      failed(checkApart(pack.getSource(), pack.getTarget())))
    return failure();
  ValueId packed =
      getPacked(pack.getForm(), pack.getSource().getShape(), *elements,
                pack.getTarget().getNumElements(), pack);
  return write(pack.getTarget(), terms.whole(packed));
}

/// The elements that were packed where a product reads them, in the form and
/// for the rows that it has.
FailureOr<TermId> PlanReplay::readPacked(plan::GemmOp gemm,
                                         plan::ViewAttr packed) {
  FailureOr<TermId> term = read(packed);
  if (failed(term))
    return failure();
  std::optional<ValueId> value = terms.getWhole(*term);
  ArrayRef<int64_t> rows = gemm.getA().getShape();
  NamedAttrList form(gemm.getFormAttr());
  form.set(kRowsOfPack,
           IntegerAttr::get(IntegerType::get(gemm.getContext(), 64),
                            rows[rows.size() - 2]));
  if (value && terms.at(*value).kind == ValueKind::Packed) {
    TermId elements = terms.at(*value).operand;
    if (*value == getPacked(form.getDictionary(gemm.getContext()),
                            gemm.getB().getShape(), elements,
                            packed.getNumElements(), gemm))
      return elements;
  }
  return refuse(gemm) << "expected in " << packed.getBuffer()
                      << " what was packed for its form, rows and shape of b";
}

LogicalResult PlanReplay::execute(plan::GemmOp gemm) {
  plan::ViewAttr b = gemm.getPacked() ? *gemm.getPacked() : gemm.getB(),
                 c = gemm.getC();
  SmallVector<plan::ViewAttr> reads{gemm.getA(), b}, writes{c};
  if (gemm.getBias())
    reads.push_back(*gemm.getBias());
  if (gemm.getScratch())
    writes.push_back(*gemm.getScratch());
  FailureOr<TermId> lhs = read(gemm.getA());
  FailureOr<TermId> rhs = gemm.getPacked() ? readPacked(gemm, b) : read(b);
  if (failed(lhs) || failed(rhs) || failed(checkApart(reads, writes)))
    return failure();
  ProductShape shape =
      ProductShape::of(gemm.getA().getShape(), gemm.getB().getShape());
  TermId result = meaning.product(shape, *lhs, *rhs, c.getElement(), gemm);
  if (gemm.getBias()) {
    FailureOr<TermId> bias = read(*gemm.getBias());
    if (failed(bias))
      return failure();
    int64_t rows = shape.batch * shape.m;
    result = meaning.add(
        result,
        terms.select(*bias, IndexMap::strided(0, {rows, shape.n}, {0, 1})),
        gemm);
  }
  if (gemm.getAccumulate()) {
    FailureOr<TermId> old = read(c);
    if (failed(old))
      return failure();
    result = meaning.add(*old, result, gemm);
  }
  return failure(failed(write(c, result)) ||
                 failed(overwrite(gemm.getScratch())));
}

static StringRef getOpName(plan::Convolution kind) {
  switch (kind) {
  case plan::Convolution::forward:
    return nn::ConvOp::getOperationName();
  case plan::Convolution::input_grad:
    return nn::ConvInputGradOp::getOperationName();
  case plan::Convolution::weight_grad:
    return nn::ConvWeightGradOp::getOperationName();
  }
  llvm_unreachable("a kind of convolution");
}

LogicalResult PlanReplay::execute(plan::ConvOp conv) {
  plan::ViewAttr c = conv.getC();
  SmallVector<plan::ViewAttr> writes{c};
  if (conv.getScratch())
    writes.push_back(*conv.getScratch());
  FailureOr<TermId> a = read(conv.getA()), b = read(conv.getB());
  if (failed(a) || failed(b) ||
      failed(checkApart({conv.getA(), conv.getB()}, writes)))
    return failure();
  TermId result = meaning.convolution(
      OperationName(getOpName(conv.getConvolution()), module.getContext()),
      {conv.getA().getShape(), conv.getB().getShape(), c.getShape(),
       conv.getStrides(), conv.getDilations(), conv.getLow()},
      *a, *b, c.getElement(), c.getNumElements(), conv);
  return failure(failed(write(c, result)) ||
                 failed(overwrite(conv.getScratch())));
}

LogicalResult PlanReplay::execute(plan::DealRowsOp deal) {
  FailureOr<TermId> groups = read(deal.getGroups()),
                    rank = read(deal.getRank());
  plan::ViewAttr writes[] = {deal.getRows(), deal.getOwn(), deal.getPlaces()};
  if (failed(groups) || failed(rank) ||
      failed(checkApart({deal.getGroups(), deal.getRank()}, writes)))
    return failure();
  SmallVector<int64_t> counts;
  for (plan::ViewAttr view : writes)
    counts.push_back(view.getNumElements());
  SmallVector<TermId> results;
  meaning.deal(deal.getNumGroups(), deal.getRanks(), *groups, *rank, counts,
               deal, results);
  for (auto [view, result] : llvm::zip_equal(writes, results))
    if (failed(write(view, result)))
      return failure();
  return success();
}

LogicalResult PlanReplay::execute(plan::GroupedGemmOp gemm) {
  SmallVector<plan::ViewAttr> writes{gemm.getC()};
  for (std::optional<plan::ViewAttr> view :
       {gemm.getOrder(), gemm.getScratch()})
    if (view)
      writes.push_back(*view);
  FailureOr<TermId> a = read(gemm.getA()), b = read(gemm.getB()),
                    groups = read(gemm.getGroups());
  if (failed(a) || failed(b) || failed(groups) ||
      failed(checkApart({gemm.getA(), gemm.getB(), gemm.getGroups()}, writes)))
    return failure();
  ArrayRef<int64_t> matrices = gemm.getB().getShape();
  TermId result = meaning.grouped(
      OperationName(nn::GroupedMatmulOp::getOperationName(),
                    module.getContext()),
      {gemm.getA().getShape()[0], matrices[0], matrices[1], matrices[2]}, *a,
      *b, *groups, gemm.getC().getElement(), gemm.getC().getNumElements(),
      gemm);
  return failure(failed(write(gemm.getC(), result)) ||
                 failed(overwrite(gemm.getOrder())) ||
                 failed(overwrite(gemm.getScratch())));
}

LogicalResult PlanReplay::execute(plan::GroupedGemmGradOp grad) {
  plan::ViewAttr c = grad.getC();
  SmallVector<plan::ViewAttr> writes{c};
  for (std::optional<plan::ViewAttr> view :
       {grad.getOrder(), grad.getScratch()})
    if (view)
      writes.push_back(*view);
  FailureOr<TermId> a = read(grad.getA()), b = read(grad.getB()),
                    groups = read(grad.getGroups());
  if (failed(a) || failed(b) || failed(groups) ||
      failed(checkApart({grad.getA(), grad.getB(), grad.getGroups()}, writes)))
    return failure();
  TermId result = meaning.grouped(
      OperationName(nn::GroupedMatmulGradOp::getOperationName(),
                    module.getContext()),
      {grad.getA().getShape()[0], c.getShape()[0], c.getShape()[1],
       c.getShape()[2]},
      *a, *b, *groups, c.getElement(), c.getNumElements(), grad);
  if (grad.getAccumulate()) {
    FailureOr<TermId> old = read(c);
    if (failed(old))
      return failure();
    result = meaning.add(*old, result, grad);
  }
  return failure(failed(write(c, result)) ||
                 failed(overwrite(grad.getOrder())) ||
                 failed(overwrite(grad.getScratch())));
}

LogicalResult PlanReplay::execute(plan::AttentionOp attention) {
  SmallVector<plan::ViewAttr> reads{attention.getQuery(), attention.getKey(),
                                    attention.getValue()},
      writes{attention.getOutput()};
  if (attention.getLogSumExp())
    writes.push_back(*attention.getLogSumExp());
  if (attention.getMask())
    reads.push_back(*attention.getMask());
  return executeAttention(
      OperationName(nn::AttentionOp::getOperationName(), module.getContext()),
      getAttentionAttributes(attention), reads, /*unmasked=*/3, writes,
      attention.getScratch());
}

LogicalResult PlanReplay::execute(plan::AttentionGradOp grad) {
  SmallVector<plan::ViewAttr> reads{grad.getQuery(),     grad.getKey(),
                                    grad.getValue(),     grad.getOutput(),
                                    grad.getLogSumExp(), grad.getGradient()},
      writes{grad.getQueryGradient(), grad.getKeyGradient(),
             grad.getValueGradient()};
  if (grad.getLogSumExpGradient())
    reads.push_back(*grad.getLogSumExpGradient());
  unsigned unmasked = reads.size();
  if (grad.getMask())
    reads.push_back(*grad.getMask());
  return executeAttention(OperationName(nn::AttentionGradOp::getOperationName(),
                                        module.getContext()),
                          getAttentionAttributes(grad), reads, unmasked, writes,
                          grad.getScratch());
}

LogicalResult
PlanReplay::executeAttention(OperationName name, Attribute attributes,
                             ArrayRef<plan::ViewAttr> reads, unsigned unmasked,
                             ArrayRef<plan::ViewAttr> writes,
                             std::optional<plan::ViewAttr> scratch) {
  SmallVector<ArrayRef<int64_t>> shapes;
  SmallVector<TermId> operands, results;
  for (plan::ViewAttr view : reads) {
    FailureOr<TermId> operand = read(view);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
    shapes.push_back(view.getShape());
  }
  SmallVector<Type> types;
  SmallVector<int64_t> counts;
  SmallVector<plan::ViewAttr> touched(writes);
  for (plan::ViewAttr view : writes) {
    types.push_back(view.getElement());
    counts.push_back(view.getNumElements());
  }
  if (scratch)
    touched.push_back(*scratch);
  if (failed(checkApart(reads, touched)))
    return failure();
  meaning.attention(name, attributes, shapes, operands, unmasked, types, counts,
                    command, results);
  for (auto [view, result] : llvm::zip_equal(writes, results))
    if (failed(write(view, result)))
      return failure();
  return overwrite(scratch);
}

//===----------------------------------------------------------------------===//
// Kernels and collectives
//===----------------------------------------------------------------------===//

LogicalResult PlanReplay::execute(plan::KernelOp kernel) {
  func::FuncOp function = functions.lookup(kernel.getFunctionAttr().getAttr());
  SmallVector<plan::ViewAttr> inputs = listViews(kernel.getInputs()),
                              outputs = listViews(kernel.getOutputs());
  if (!function || function.isExternal() || !function.getBody().hasOneBlock() ||
      function.getNumArguments() != inputs.size() ||
      function.getNumResults() != outputs.size())
    return kernel.emitOpError() << "expected a function of as many arguments "
                                   "and results as there are views: "
                                << kernel.getFunctionAttr();
  auto rows = function->getAttrOfType<IntegerAttr>(plan::kRowsAttr);
  if (!rows || rows.getInt() != int64_t(kernel.getRows()))
    return kernel.emitOpError()
           << "expected all rows of " << kernel.getFunctionAttr();
  SmallVector<TermId> arguments, results;
  for (auto [view, type] :
       llvm::zip_equal(inputs, function.getArgumentTypes())) {
    FailureOr<TermId> argument = read(view);
    if (failed(argument))
      return failure();
    auto expected = cast<RankedTensorType>(type);
    if (expected.getNumElements() != view.getNumElements() ||
        expected.getElementType() != view.getElement())
      return refuse(kernel)
             << "expected an input of type " << type << ", found " << view;
    arguments.push_back(*argument);
  }
  SmallVector<plan::ViewAttr> touched(outputs);
  if (kernel.getScratch())
    touched.push_back(*kernel.getScratch());
  auto mayShare = [&](unsigned input, unsigned output) {
    if (output >= outputs.size())
      return false; // nothing is read in scratch but what was kept there
    auto [at, isNew] = inPlace.try_emplace({function, input});
    if (isNew)
      at->second = mayWriteInPlace(function, input, rows.getInt());
    return at->second;
  };
  if (failed(checkApart(inputs, touched, mayShare)))
    return failure();
  if (!evaluateTile(function, inputs, arguments, results) &&
      failed(meaning.evaluate(function.getBody(), arguments, results)))
    return failure();
  for (auto [view, result] : llvm::zip_equal(outputs, results))
    if (failed(write(view, result)))
      return failure();
  return overwrite(kernel.getScratch());
}

LogicalResult PlanReplay::execute(plan::CollectiveOp collective) {
  SmallVector<plan::ViewAttr> inputs = listViews(collective.getInputs()),
                              outputs = listViews(collective.getOutputs());
  CollectiveKey key;
  key.kind = plan::stringifyCollective(collective.getCollective());
  if (collective.getCombine())
    key.combine = plan::stringifyCombine(*collective.getCombine());
  for (auto axis : collective.getAxes().getAsRange<StringAttr>())
    key.axes.push_back(axis);
  key.dim = collective.getDim();
  key.splitDim = collective.getSplitDim();
  key.wire = collective.getWire().value_or(Type());
  if (collective.getCollective() == plan::Collective::broadcast)
    key.sources.push_back(0); // the root is the first of the group
  else if (collective.getPermutation())
    key.sources.assign(collective.getPermutation()->begin(),
                       collective.getPermutation()->end());
  if (collective.getIndex()) {
    FailureOr<TermId> index = read(*collective.getIndex());
    if (failed(index) || failed(checkApart({*collective.getIndex()}, outputs)))
      return failure();
    key.index = *index;
  }
  SmallVector<TermId> results;
  for (plan::ViewAttr view : inputs) {
    FailureOr<TermId> operand = read(view);
    if (failed(operand))
      return failure();
    FailureOr<TermId> result =
        meaning.collective(key, view.getShape(), *operand, collective);
    if (failed(result))
      return failure();
    results.push_back(*result);
  }
  // Every rank combines its part into all results, element by element.
  bool reduces = collective.getCollective() == plan::Collective::all_reduce;
  if (failed(checkApart(inputs, outputs, [&](unsigned input, unsigned output) {
        return reduces && input == output;
      })))
    return failure();
  for (auto [view, result] : llvm::zip_equal(outputs, results))
    if (failed(write(view, result)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

LogicalResult PlanReplay::execute(plan::CopyOp copy) {
  FailureOr<TermId> term = read(copy.getSource());
  if (failed(term) || failed(checkApart(copy.getSource(), copy.getTarget())))
    return failure();
  return write(copy.getTarget(), *term);
}

LogicalResult PlanReplay::execute(plan::FillOp fill) {
  plan::ViewAttr target = fill.getTarget();
  if (fill.getValue().getType() != target.getElement())
    return fill.emitOpError()
           << "expected a value of type " << target.getElement() << ", found "
           << fill.getValue();
  return write(target, meaning.splat(fill.getValue(), target.getElement(),
                                     target.getNumElements(), fill));
}

LogicalResult PlanReplay::execute(plan::CoordinateOp coordinate) {
  SmallVector<StringAttr> axes(coordinate.getAxes().getAsRange<StringAttr>());
  return write(coordinate.getTarget(),
               meaning.coordinate(axes, coordinate.getTarget().getElement(),
                                  coordinate));
}

LogicalResult PlanReplay::execute(plan::ReadOp read) {
  plan::ViewAttr target = read.getTarget();
  bool isState = read.getSource() == plan::Source::state;
  if (isState != loading)
    return refuse(read) << "expected states to be read at load, and inputs "
                           "after it";
  PieceKey piece = PieceKey::of(read.getPart());
  if (read.getEachMicroBatch()) {
    if (failed(checkEach(target, read)))
      return failure();
    TermId all =
        meaning.givenOfEach(read.getNameAttr(), piece, target.getNumElements(),
                            target.getElement(), read);
    if (std::optional<ValueId> value = terms.getWhole(all))
      readOfEach[*value] = read;
    return write(target, all);
  }
  TermId value = meaning.given(
      isState ? Source::FirstState : Source::Input, read.getNameAttr(), piece,
      target.getNumElements(), target.getElement(), read);
  if (failed(write(target, value)))
    return failure();
  plan::BufferOp buffer = buffers.lookup(target.getBuffer().getAttr());
  if (!isState || !buffer.getSource())
    return success();
  // Here the state is kept, and saved from.
  auto state = FlatSymbolRefAttr::get(read.getNameAttr());
  if (buffer.getSourceAttr() != state ||
      buffer.getPartAttr() != read.getPartAttr())
    return refuse(read)
           << "expected the state and the piece that the buffer is "
              "said to keep: "
           << buffer.getSourceAttr();
  FailureOr<Place> place = locate(target);
  if (failed(place) || !place->map.coordinates.empty())
    return refuse(read) << "expected a state to lie in the same bytes of every "
                           "rank";
  if (!homes.insert({read.getNameAttr(), {*place, piece, read}}).second)
    return refuse(read) << "expected one buffer that keeps the state";
  return success();
}

/// What has a tensor of each micro-batch has one of all that there are.
LogicalResult PlanReplay::checkEach(plan::ViewAttr view, Operation *op) {
  if (view.getShape().front() == meaning.countMicroBatches())
    return success();
  return refuse(op) << "expected a view of the parts of "
                    << meaning.countMicroBatches()
                    << " micro-batches, found one of "
                    << view.getShape().front();
}

LogicalResult PlanReplay::execute(plan::WriteOp write) {
  if (!write.getEachMicroBatch()) {
    FailureOr<TermId> term = read(write.getView());
    return failed(term) ? failure()
                        : takeOutput(write, meaning.getMicroBatch(), *term);
  }
  if (failed(checkEach(write.getView(), write)))
    return failure();
  EachMicroBatch::Pieces pieces =
      ofEach.find(write.getView(), meaning.countMicroBatches());
  if (pieces.empty())
    return refuse(write) << "expected in " << write.getView().getBuffer()
                         << " what each micro-batch, and nobody else, has put "
                            "in its place there";
  for (auto &[microBatch, piece] : pieces)
    if (failed(takeOutput(write, microBatch, piece.term)))
      return failure();
  return success();
}

LogicalResult PlanReplay::takeOutput(plan::WriteOp write, MicroBatch microBatch,
                                     TermId term) {
  auto found =
      local->outputs.find(LocalValues::getKey(write.getNameAttr(), microBatch));
  if (loading || write.getDestination() != plan::Source::output ||
      found == local->outputs.end())
    return refuse(write) << "no task gives output '" << write.getName()
                         << "' of micro-batch " << microBatch.number;
  LocalValues::Output &output = found->second;
  if (output.written)
    return refuse(write) << "writes output '" << write.getName()
                         << "' of micro-batch " << microBatch.number
                         << " a second time";
  output.written = true;
  if (output.piece.key.get() != PieceKey::of(write.getPart()).key.get())
    return refuse(write) << "expected the part of output '" << write.getName()
                         << "' that the task gives";
  if (term != output.term)
    return refuse(write)
           << "writes another value than the task gives as output '"
           << write.getName() << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// What a group sends is read while it receives.
LogicalResult PlanReplay::checkGroup(plan::GroupOp group) {
  SmallVector<plan::ViewAttr> reads, writes;
  for (Operation &op : group.getBody().front()) {
    if (auto send = dyn_cast<plan::SendOp>(op))
      reads.push_back(send.getView());
    if (auto recv = dyn_cast<plan::RecvOp>(op))
      writes.push_back(recv.getView());
  }
  return checkApart(reads, writes);
}

LogicalResult PlanReplay::execute(plan::SendOp send) {
  FailureOr<TermId> term = read(send.getView());
  if (failed(term) || loading)
    return refuse(send) << "expected no messages at load";
  FailureOr<TermId> message = local->getMessage(send.getTag(), /*sends=*/true,
                                                int64_t(send.getDelta()), send);
  if (failed(message))
    return failure();
  if (*term != *message)
    return refuse(send) << "sends another value than the task gives";
  return success();
}

LogicalResult PlanReplay::execute(plan::RecvOp recv) {
  if (loading)
    return refuse(recv) << "expected no messages at load";
  FailureOr<TermId> message = local->getMessage(recv.getTag(), /*sends=*/false,
                                                int64_t(recv.getDelta()), recv);
  if (failed(message))
    return failure();
  auto group = dyn_cast<plan::GroupOp>(recv->getParentOp());
  if (group && failed(checkGroup(group)))
    return failure();
  return write(recv.getView(), *message);
}
