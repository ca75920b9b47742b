// The table: what moves elements is an index map, what computes element by
// element knows no shape, a product is one of a few forms, and everything else
// is itself: the same op of the same operands.

#include "Meaning.h"

#include "dialects/NN/TensorTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

static Type elementOf(Value value) { return typeOf(value).getElementType(); }

static int64_t countOf(Value value) { return typeOf(value).getNumElements(); }

/// The attributes that an op's meaning depends on: not those that say where it
/// came from.
Attribute Meaning::getAttributes(Operation *op) {
  auto [at, isNew] = attributes.try_emplace(op);
  if (isNew)
    at->second = op->getPropertiesAsAttribute();
  return at->second;
}

TermId Meaning::compute(ValueKey key, int64_t count, Type element,
                        Operation *op) {
  key.add(count).add(element.getAsOpaquePointer());
  return terms.whole(terms.getValue(
      key, {ValueKind::Computed, count, element, /*operand=*/0, op}));
}

//===----------------------------------------------------------------------===//
// What is computed
//===----------------------------------------------------------------------===//

static ValueKey startKey(OperationName name) {
  ValueKey key;
  key.add(int64_t(ValueKind::Computed)).add(name.getAsOpaquePointer());
  return key;
}

TermId Meaning::splat(Attribute element, Type type, int64_t count,
                      Operation *op) {
  ValueKey key;
  key.add(int64_t(ValueKind::Given)).add(int64_t(0));
  key.add(element.getAsOpaquePointer()).add(type.getAsOpaquePointer());
  IndexMap map;
  map.steps.push_back({count, 0});
  return terms.strided(terms.getValue(key, {ValueKind::Given, 1, type, 0, op}),
                       map);
}

TermId Meaning::constant(ElementsAttr value, Operation *op) {
  Type element = value.getElementType();
  if (auto splatted = dyn_cast<SplatElementsAttr>(value))
    return splat(splatted.getSplatValue<Attribute>(), element,
                 value.getNumElements(), op);
  ValueKey key;
  key.add(int64_t(ValueKind::Given)).add(int64_t(1));
  key.add(value.getAsOpaquePointer());
  return terms.whole(terms.getValue(
      key, {ValueKind::Given, value.getNumElements(), element, 0, op}));
}

TermId Meaning::add(TermId lhs, TermId rhs, Operation *op) {
  const Term &one = terms.get(lhs);
  ValueKey key =
      startKey(OperationName(nn::AddOp::getOperationName(), op->getContext()));
  // x + y is y + x.
  key.addPair(lhs, rhs);
  return compute(key, one.count, one.element, op);
}

TermId Meaning::cast(TermId operand, Type type, Operation *op, bool saturates) {
  const Term &term = terms.get(operand);
  if (term.element == type)
    return operand;
  // A product that is rounded only to be widened again is the sum itself.
  if (term.isOfValue() && type.isF32()) {
    const Computation &rounded = terms.at(term.value);
    if (rounded.kind == ValueKind::Cast && rounded.element.isBF16()) {
      std::optional<ValueId> product = terms.getWhole(rounded.operand);
      if (product && terms.at(*product).kind == ValueKind::Product &&
          terms.at(*product).element == type)
        return terms.strided(*product, term.map);
    }
  }
  ValueKey key;
  key.add(int64_t(ValueKind::Cast)).addTerm(operand);
  key.add(type.getAsOpaquePointer()).add(int64_t(saturates));
  return terms.whole(
      terms.getValue(key, {ValueKind::Cast, term.count, type, operand, op}));
}

TermId Meaning::byElement(Operation *op, ArrayRef<TermId> operands,
                          int64_t count) {
  if (isa<nn::AddOp>(op))
    return add(operands[0], operands[1], op);
  Type element = elementOf(op->getResult(0));
  if (auto of = dyn_cast<nn::CastOp>(op))
    return cast(operands[0], element, op, of.getSaturate());
  // Shapes do not matter.
  ValueKey key = startKey(op->getName());
  key.add(getAttributes(op).getAsOpaquePointer());
  key.add(int64_t(operands.size()));
  for (TermId operand : operands)
    key.addTerm(operand);
  return compute(key, count, element, op);
}

ProductShape ProductShape::of(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  size_t rank = lhs.size();
  ProductShape shape{1, lhs[rank - 2], rhs.back(), lhs.back()};
  int64_t &batch = rhs.size() == 2 ? shape.m : shape.batch;
  for (int64_t size : lhs.drop_back(2))
    batch *= size;
  return shape;
}

TermId Meaning::product(const ProductShape &shape, TermId lhs, TermId rhs,
                        Type type, Operation *op) {
  Type operandType = terms.get(lhs).element;
  // Sums are at least as wide as f32.
  Type sum =
      operandType.isF64() ? operandType : Float32Type::get(op->getContext());
  ValueKey key;
  key.add(int64_t(ValueKind::Product)).add(shape.batch).add(shape.m);
  key.add(shape.n).add(shape.k).addTerm(lhs).addTerm(rhs);
  int64_t count = shape.batch * shape.m * shape.n;
  TermId result =
      terms.whole(terms.getValue(key, {ValueKind::Product, count, sum, 0, op}));
  return cast(result, type, op);
}

TermId Meaning::grouped(OperationName name, ArrayRef<int64_t> sizes, TermId lhs,
                        TermId rhs, TermId groups, Type type, int64_t count,
                        Operation *op) {
  ValueKey key = startKey(name);
  key.add(sizes).addTerm(lhs).addTerm(rhs).addTerm(groups);
  return compute(key, count, type, op);
}

TermId Meaning::convolution(OperationName name,
                            ArrayRef<ArrayRef<int64_t>> numbers, TermId lhs,
                            TermId rhs, Type type, int64_t count,
                            Operation *op) {
  ValueKey key = startKey(name);
  for (ArrayRef<int64_t> list : numbers)
    key.add(list);
  key.addTerm(lhs).addTerm(rhs);
  return compute(key, count, type, op);
}

void Meaning::deal(int64_t numGroups, int64_t ranks, TermId groups, TermId rank,
                   ArrayRef<int64_t> counts, Operation *op,
                   SmallVectorImpl<TermId> &results) {
  ValueKey key = startKey(
      OperationName(nn::DealRowsOp::getOperationName(), op->getContext()));
  key.add(numGroups).add(ranks).addTerm(groups).addTerm(rank).add(counts);
  Type index = IntegerType::get(op->getContext(), 64);
  for (auto [number, count] : llvm::enumerate(counts))
    results.push_back(
        compute(ValueKey(key).add(int64_t(number)), count, index, op));
}

TermId Meaning::broadcast(TermId operand, ArrayRef<int64_t> from,
                          ArrayRef<int64_t> to) {
  SmallVector<int64_t> strides = denseStrides(from), repeated(to.size(), 0);
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (from[dim] != 1)
      repeated[to.size() - from.size() + dim] = strides[dim];
  return terms.select(operand, IndexMap::strided(0, to, repeated));
}

void Meaning::attention(OperationName name, Attribute attributes,
                        ArrayRef<ArrayRef<int64_t>> shapes,
                        ArrayRef<TermId> operands, unsigned unmasked,
                        ArrayRef<Type> types, ArrayRef<int64_t> counts,
                        Operation *op, SmallVectorImpl<TermId> &results) {
  ValueKey key = startKey(name);
  key.add(attributes.getAsOpaquePointer());
  key.add(int64_t(unmasked));
  for (unsigned number = 0; number < unmasked; ++number)
    key.add(shapes[number]).addTerm(operands[number]);
  if (operands.size() > unmasked) {
    // What repeats a mask may be said in its shape or be left to the op.
    int64_t full[] = {shapes[0][0], shapes[0][1], shapes[0][2],
                      shapes[unmasked][3]};
    key.addTerm(broadcast(operands[unmasked], shapes[unmasked], full));
  }
  for (auto [number, type] : llvm::enumerate(types))
    results.push_back(
        compute(ValueKey(key).add(int64_t(number)), counts[number], type, op));
}

TermId Meaning::given(Source source, StringAttr name, const PieceKey &piece,
                      int64_t count, Type element, Operation *op) {
  ValueKey key;
  key.add(int64_t(ValueKind::Given)).add(int64_t(2)).add(int64_t(source));
  key.add(piece.key);
  key.add(name.getAsOpaquePointer()).add(element.getAsOpaquePointer());
  if (piece.varies)
    key.addMicroBatch(microBatch);
  // Of another turn, or of a turn of another loop, it is another value, which
  // what is kept for a micro-batch may have been made of.
  if (source == Source::TurnState)
    key.addMicroBatch({turn, 0}).add(loops);
  key.add(count);
  return terms.whole(
      terms.getValue(key, {ValueKind::Given, count, element, 0, op}));
}

TermId Meaning::givenOfEach(StringAttr name, const PieceKey &piece,
                            int64_t count, Type element, Operation *op) {
  ValueKey key;
  key.add(int64_t(ValueKind::Given)).add(int64_t(4)).add(piece.key);
  key.add(name.getAsOpaquePointer()).add(element.getAsOpaquePointer());
  key.add(count);
  return terms.whole(
      terms.getValue(key, {ValueKind::Given, count, element, 0, op}));
}

//===----------------------------------------------------------------------===//
// Micro-batches and ranks
//===----------------------------------------------------------------------===//

void Meaning::beginLoop() {
  turn = StringAttr::get(mesh.getContext(),
                         "turn of loop " + llvm::Twine(++loops));
}

int64_t Meaning::countMicroBatches() const {
  return mesh ? dist::MeshOp(mesh)
                    .findAxisSize(dist::MeshOp::kMicroBatchAxis)
                    .value_or(1)
              : 1;
}

void Meaning::setMicroBatch(int64_t number, bool inLoop) {
  microBatch = {inLoop ? turn : StringAttr(), number};
}

LogicalResult Meaning::addCoordinate(IndexMap &map, StringAttr axis,
                                     int64_t stride, Operation *op) {
  if (axis.getValue() == dist::MeshOp::kMicroBatchAxis) {
    map.add({microBatch.turn ? microBatch.turn : axis, countMicroBatches(),
             stride, microBatch.number});
    return success();
  }
  std::optional<int64_t> size =
      mesh ? mesh.findAxisSize(axis.getValue()) : std::nullopt;
  if (!size)
    return op->emitOpError()
           << "names no axis of the mesh: '" << axis.getValue() << "'";
  map.add({axis, *size, stride});
  return success();
}

TermId Meaning::coordinate(ArrayRef<StringAttr> axes, Type type,
                           Operation *op) {
  ValueKey key = startKey(
      OperationName(dist::AxisIndexOp::getOperationName(), op->getContext()));
  bool varies = false;
  for (StringAttr axis : axes) {
    key.add(axis.getAsOpaquePointer());
    varies |= axis.getValue() == dist::MeshOp::kMicroBatchAxis;
  }
  if (varies)
    key.addMicroBatch(microBatch);
  return compute(key, 1, type, op);
}

FailureOr<TermId> Meaning::collective(const CollectiveKey &collective,
                                      ArrayRef<int64_t> shape, TermId operand,
                                      Operation *op) {
  int64_t ranks = 1;
  ValueKey key;
  key.add(int64_t(ValueKind::Computed));
  key.add(
      StringAttr::get(op->getContext(), collective.kind).getAsOpaquePointer());
  key.add(StringAttr::get(op->getContext(), collective.combine)
              .getAsOpaquePointer());
  key.add(int64_t(collective.axes.size()));
  for (StringAttr axis : collective.axes) {
    std::optional<int64_t> size =
        mesh && axis.getValue() != dist::MeshOp::kMicroBatchAxis
            ? mesh.findAxisSize(axis.getValue())
            : std::nullopt;
    if (!size)
      return op->emitOpError()
             << "expected axes of ranks, found '" << axis.getValue() << "'";
    ranks *= *size;
    key.add(axis.getAsOpaquePointer());
  }
  key.add(collective.wire.getAsOpaquePointer()).add(collective.sources);
  const Term &term = terms.get(operand);
  int64_t count = term.count, rank = shape.size();
  bool scatters = collective.kind == "reduce_scatter",
       exchanges = collective.kind == "all_to_all";
  bool cuts = scatters || exchanges;
  int64_t cutDim = scatters ? collective.dim : collective.splitDim;
  if ((cuts && (cutDim >= rank || shape[cutDim] % ranks != 0)) ||
      ((exchanges || collective.kind == "all_gather") &&
       collective.dim >= rank))
    return op->emitOpError() << "expected dimensions of its views that "
                             << ranks << " ranks can share";
  // Only where the group's tensors are cut and joined does a shape matter.
  auto addDim = [&](int64_t dim) {
    key.add(ShapedType::getNumElements(shape.take_front(dim)));
    key.add(ShapedType::getNumElements(shape.drop_front(dim)));
  };
  if (collective.kind == "all_gather") {
    addDim(collective.dim);
    count *= ranks;
  } else if (scatters) {
    addDim(collective.dim);
    count /= ranks;
  } else if (exchanges) {
    key.add(shape).add(collective.dim).add(collective.splitDim);
  } else if (collective.index) {
    if (rank == 0 || shape[0] == 0)
      return op->emitOpError() << "expected rows to fetch";
    addDim(0);
    key.add(shape[0]).addTerm(*collective.index);
    count = count / shape[0] * terms.get(*collective.index).count;
  }
  return compute(key.addTerm(operand), count, term.element, op);
}

LogicalResult Meaning::evaluateCollective(dist::CollectiveOpInterface op,
                                          ArrayRef<TermId> operands,
                                          SmallVectorImpl<TermId> &results) {
  SmallVector<StringAttr> axes(op.getAxes().getNames());
  if (isa<dist::AxisIndexOp>(op)) {
    results.push_back(coordinate(axes, elementOf(op->getResult(0)), op));
    return success();
  }
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  if (auto slice = dyn_cast<dist::AllSliceOp>(op.getOperation())) {
    ArrayRef<int64_t> own = shapeOf(slice.getResult());
    SmallVector<int64_t> strides = denseStrides(shape);
    IndexMap map = IndexMap::strided(0, own, strides);
    int64_t stride = own[slice.getDim()] * strides[slice.getDim()];
    for (StringAttr axis : llvm::reverse(axes)) {
      if (failed(addCoordinate(map, axis, stride, op)))
        return failure();
      stride *= mesh.findAxisSize(axis.getValue()).value_or(1);
    }
    results.push_back(terms.select(operands[0], map));
    return success();
  }
  CollectiveKey key;
  key.kind = op->getName().stripDialect();
  key.axes.assign(axes.begin(), axes.end());
  llvm::TypeSwitch<Operation *>(op.getOperation())
      .Case<dist::AllReduceOp>([&](auto reduce) {
        key.combine = dist::stringifyReduction(reduce.getKind());
      })
      .Case<dist::ReduceScatterOp>([&](auto reduce) {
        key.combine = dist::stringifyReduction(reduce.getKind());
        key.dim = reduce.getDim();
      })
      .Case<dist::AllGatherOp>([&](auto gather) { key.dim = gather.getDim(); })
      .Case<dist::AllToAllOp>([&](auto all) {
        key.dim = all.getConcatDim();
        key.splitDim = all.getSplitDim();
      })
      .Case<dist::PermuteOp>([&](auto permute) {
        key.sources.assign(permute.getSources().begin(),
                           permute.getSources().end());
      })
      .Case<dist::FetchRowsOp>([&](auto) { key.index = operands[1]; })
      .Case<dist::BroadcastOp>(
          [&](auto cast) { key.sources.push_back(cast.getRoot()); });
  // What is sent in another type is what was cast to it.
  Type own = elementOf(op->getResult(0)), sent = op.getWireType().value_or(own);
  FailureOr<TermId> result =
      collective(key, shape, cast(operands[0], sent, op), op);
  if (failed(result))
    return failure();
  results.push_back(cast(*result, own, op));
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The shape of an operand, and its elements in the order of that: the last two
/// dimensions are swapped where it is transposed.
static SmallVector<int64_t> orient(Meaning &meaning, Value value,
                                   bool transposed, TermId &term) {
  SmallVector<int64_t> shape(shapeOf(value));
  if (!transposed)
    return shape;
  SmallVector<int64_t> strides = denseStrides(shape);
  size_t rank = shape.size();
  std::swap(shape[rank - 2], shape[rank - 1]);
  std::swap(strides[rank - 2], strides[rank - 1]);
  term = meaning.terms.select(term, IndexMap::strided(0, shape, strides));
  return shape;
}

static TermId evaluateProduct(Meaning &meaning, nn::MatmulOp op, TermId lhs,
                              TermId rhs) {
  SmallVector<int64_t> left =
      orient(meaning, op.getLhs(), op.getTransposeLhs(), lhs);
  SmallVector<int64_t> right =
      orient(meaning, op.getRhs(), op.getTransposeRhs(), rhs);
  return meaning.product(ProductShape::of(left, right), lhs, rhs,
                         elementOf(op.getResult()), op);
}

static TermId evaluateGrouped(Meaning &meaning, nn::GroupedMatmulOp op,
                              ArrayRef<TermId> operands) {
  TermId rhs = operands[1];
  SmallVector<int64_t> matrices =
      orient(meaning, op.getRhs(), op.getTransposeRhs(), rhs);
  return meaning.grouped(
      op->getName(),
      {shapeOf(op.getLhs())[0], matrices[0], matrices[1], matrices[2]},
      operands[0], rhs, operands[2], elementOf(op.getResult()),
      countOf(op.getResult()), op);
}

static TermId evaluateGrouped(Meaning &meaning, nn::GroupedMatmulGradOp op,
                              ArrayRef<TermId> operands) {
  ArrayRef<int64_t> sums = shapeOf(op.getResult());
  return meaning.grouped(
      op->getName(), {shapeOf(op.getLhs())[0], sums[0], sums[1], sums[2]},
      operands[0], operands[1], operands[2], elementOf(op.getResult()),
      countOf(op.getResult()), op);
}

/// The shape with one group before its channels where it has none; `lead`
/// dimensions stand before those.
static SmallVector<int64_t> withGroups(Value value, size_t space, size_t lead) {
  SmallVector<int64_t> shape(shapeOf(value));
  if (shape.size() == space + 2)
    shape.insert(shape.begin() + lead, 1);
  return shape;
}

template <typename Op>
static TermId evaluateConvolution(Meaning &meaning, Op op,
                                  ArrayRef<TermId> operands) {
  constexpr bool makesWeight = std::is_same_v<Op, nn::ConvWeightGradOp>;
  size_t space = op.getSizes().size();
  return meaning.convolution(
      op->getName(),
      {withGroups(op.getLhs(), space, 1),
       withGroups(op.getRhs(), space, makesWeight ? 1 : 0),
       withGroups(op.getResult(), space, makesWeight ? 0 : 1), op.getStrides(),
       op.getDilations(), op.getLow()},
      operands[0], operands[1], elementOf(op.getResult()),
      countOf(op.getResult()), op);
}

LogicalResult Meaning::evaluate(Operation *op, ArrayRef<TermId> operands,
                                SmallVectorImpl<TermId> &results) {
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    return evaluateCollective(collective, operands, results);
  auto select = [&](int64_t offset, ArrayRef<int64_t> shape,
                    ArrayRef<int64_t> strides) {
    results.push_back(
        terms.select(operands[0], IndexMap::strided(offset, shape, strides)));
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::ConstantOp op) {
        results.push_back(constant(op.getValue(), op));
        return success();
      })
      .Case([&](nn::ReshapeOp) {
        results.push_back(operands[0]);
        return success();
      })
      .Case([&](nn::TransposeOp op) {
        SmallVector<int64_t> strides = denseStrides(shapeOf(op.getInput()));
        SmallVector<int64_t> permuted;
        for (int64_t dim : op.getPermutation())
          permuted.push_back(strides[dim]);
        return select(0, shapeOf(op.getResult()), permuted);
      })
      .Case([&](nn::SliceOp op) {
        SmallVector<int64_t> strides = denseStrides(shapeOf(op.getInput()));
        int64_t offset = 0;
        for (size_t dim = 0; dim < strides.size(); ++dim) {
          offset += op.getStarts()[dim] * strides[dim];
          strides[dim] *= op.getSteps()[dim];
        }
        return select(offset, op.getSizes(), strides);
      })
      .Case([&](nn::BroadcastOp op) {
        results.push_back(broadcast(operands[0], shapeOf(op.getInput()),
                                    shapeOf(op.getResult())));
        return success();
      })
      .Case([&](nn::ConcatOp op) {
        int64_t dim = op.getDim();
        SmallVector<Term::Part> parts;
        int64_t rows =
            ShapedType::getNumElements(shapeOf(op.getResult()).take_front(dim));
        for (auto [operand, term] : llvm::zip_equal(op.getInputs(), operands))
          parts.push_back(
              {ShapedType::getNumElements(shapeOf(operand).drop_front(dim)),
               term});
        results.push_back(terms.join(rows, parts));
        return success();
      })
      .Case([&](nn::MatmulOp op) {
        results.push_back(evaluateProduct(*this, op, operands[0], operands[1]));
        return success();
      })
      .Case<nn::GroupedMatmulOp, nn::GroupedMatmulGradOp>([&](auto op) {
        results.push_back(evaluateGrouped(*this, op, operands));
        return success();
      })
      .Case<nn::ConvOp, nn::ConvInputGradOp, nn::ConvWeightGradOp>(
          [&](auto op) {
            results.push_back(evaluateConvolution(*this, op, operands));
            return success();
          })
      .Case([&](nn::DealRowsOp op) {
        SmallVector<int64_t> counts;
        for (Value result : op->getResults())
          counts.push_back(countOf(result));
        deal(op.getNumGroups(), op.getRanks(), operands[0], operands[1], counts,
             op, results);
        return success();
      })
      .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto op) {
        SmallVector<ArrayRef<int64_t>> shapes;
        for (Value operand : op->getOperands())
          shapes.push_back(shapeOf(operand));
        SmallVector<Type> types;
        SmallVector<int64_t> counts;
        for (Value result : op->getResults()) {
          types.push_back(elementOf(result));
          counts.push_back(countOf(result));
        }
        unsigned unmasked = operands.size() - (op.getMask() ? 1 : 0);
        attention(op->getName(), getAttentionAttributes(op), shapes, operands,
                  unmasked, types, counts, op, results);
        return success();
      })
      .Default([&](Operation *op) -> LogicalResult {
        if (!isa_and_nonnull<nn::NNDialect>(op->getDialect()) ||
            op->getNumRegions() != 0 || op->getNumResults() == 0 ||
            !isMemoryEffectFree(op))
          return op->emitOpError()
                 << "has no meaning to the proof: expected an op of nn that "
                    "computes, or a collective";
        if (op->hasTrait<nn::Elementwise>()) {
          results.push_back(byElement(op, operands, countOf(op->getResult(0))));
          return success();
        }
        ValueKey key = startKey(op->getName());
        key.add(getAttributes(op).getAsOpaquePointer());
        key.add(int64_t(operands.size()));
        for (auto [operand, term] :
             llvm::zip_equal(op->getOperands(), operands))
          key.addTerm(term).add(shapeOf(operand));
        for (OpResult result : op->getResults()) {
          ValueKey own = key;
          own.add(int64_t(result.getResultNumber())).add(shapeOf(result));
          results.push_back(
              compute(own, countOf(result), elementOf(result), op));
        }
        return success();
      });
}

LogicalResult Meaning::evaluate(Region &body, ArrayRef<TermId> arguments,
                                SmallVectorImpl<TermId> &results) {
  llvm::DenseMap<Value, TermId> known;
  for (auto [argument, term] : llvm::zip_equal(body.getArguments(), arguments))
    known[argument] = term;
  auto termsOf = [&](OperandRange values) {
    SmallVector<TermId> list;
    for (Value value : values)
      list.push_back(known.lookup(value));
    return list;
  };
  for (Operation &op : body.front().without_terminator()) {
    SmallVector<TermId> given;
    if (failed(evaluate(&op, termsOf(op.getOperands()), given)))
      return failure();
    for (auto [result, term] : llvm::zip_equal(op.getResults(), given))
      known[result] = term;
  }
  results = termsOf(body.front().getTerminator()->getOperands());
  return success();
}
