// The builders and readers that all operators' importers share.

#include "NodeImporter.h"

#include "Tensors.h"
#include "dialects/NN/Concat.h"
#include "lib/Onnx/NodeInfo.h"
#include "lib/Transforms/FoldConstants.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::import;

InFlightDiagnostic NodeImporter::error() {
  failed = true;
  StringRef domain =
      node.domain().empty() ? StringRef("ai.onnx") : StringRef(node.domain());
  return emitError(loc) << "operator '" << node.op_type() << "' (node '"
                        << onnxio::nodeLocationName(node) << "', domain '"
                        << domain << "', opset " << version << "): ";
}

Value NodeImporter::repeat(const onnxio::ParameterStep &step, Value value) {
  using Step = onnxio::ParameterStep;
  switch (step.kind) {
  case Step::Permute:
    return transpose(value, step.values);
  case Step::Slice:
    return slice(value, step.values[0], step.values[1], step.values[2]);
  case Step::Rows:
    return create<nn::GatherOp>(
        {value, ints(step.values, int64_t(step.values.size()))},
        {named("dim", int64_t(0))});
  case Step::Reshape:
    return reshape(value, step.values);
  case Step::Expand:
    return broadcast(value, step.values);
  case Step::Scale:
    return create<nn::MulOp>({value, splatLike(value, step.number)});
  case Step::Offset:
    return create<nn::AddOp>({value, splatLike(value, step.number)});
  case Step::Widen:
    return cast(value, Float64Type::get(value.getContext()));
  case Step::Square:
    return create<nn::MulOp>({value, value});
  }
  llvm_unreachable("no such step");
}

LogicalResult NodeImporter::resolveOperands(bool takesSequences) {
  for (auto [index, name] : llvm::enumerate(node.input())) {
    unsigned number = index;
    if (const onnxio::ParameterUse *use = graph.table.useAt(node, number)) {
      auto state = graph.states.find(use->parameter);
      if (state != graph.states.end()) {
        Value value = use->permutation.empty()
                          ? state->second
                          : transpose(state->second, use->permutation);
        for (const onnxio::ParameterStep &step : use->steps)
          value = repeat(step, value);
        operands.push_back(ImportedValue::of(value));
        continue;
      }
    }
    if (name.empty()) {
      operands.emplace_back();
      continue;
    }
    const ImportedValue *value = graph.lookup(name, loc);
    if (!value)
      return failure();
    if (value->isSequence && !takesSequences)
      return error() << "operand #" << number
                     << " is a sequence, expected a tensor";
    operands.push_back(*value);
  }
  for (const onnxio::RestoredOperand *bias : graph.restored.lookup(&node)) {
    if (bias->operand < 0)
      continue;
    if (operands.size() <= static_cast<size_t>(bias->operand))
      operands.resize(bias->operand + 1);
    operands[bias->operand] =
        ImportedValue::of(graph.states.lookup(bias->parameter));
  }
  return success(!failed);
}

LogicalResult NodeImporter::restoreAdditions() {
  for (const onnxio::RestoredOperand *bias : graph.restored.lookup(&node)) {
    if (bias->operand >= 0)
      continue;
    const ImportedValue *result = graph.lookup(node.output(0), loc);
    if (!result)
      return failure();
    setResult(0, binary<nn::AddOp>(result->tensor,
                                   graph.states.lookup(bias->parameter)));
  }
  return success(!failed);
}

const onnx::NodeProto *NodeImporter::findProducer(StringRef name) const {
  for (const onnx::NodeProto &other : graph.file.graph().node())
    if (llvm::is_contained(other.output(), name))
      return &other;
  return nullptr;
}

bool NodeImporter::hasAttribute(StringRef name) const {
  return onnxio::findAttribute(node, name) != nullptr;
}

const onnx::AttributeProto *
NodeImporter::attribute(StringRef name,
                        onnx::AttributeProto::AttributeType type) {
  asked.insert(name);
  const onnx::AttributeProto *found = onnxio::findAttribute(node, name);
  if (!found || found->type() == type)
    return found;
  if (!failed)
    error() << "expected attribute '" << name << "' of type "
            << onnx::AttributeProto::AttributeType_Name(type) << ", found "
            << onnx::AttributeProto::AttributeType_Name(found->type());
  return nullptr;
}

int64_t NodeImporter::intAttr(StringRef name, int64_t fallback) {
  const auto *found = attribute(name, onnx::AttributeProto::INT);
  return found ? found->i() : fallback;
}

double NodeImporter::floatAttr(StringRef name, double fallback) {
  const auto *found = attribute(name, onnx::AttributeProto::FLOAT);
  return found ? found->f() : fallback;
}

std::string NodeImporter::stringAttr(StringRef name, StringRef fallback) {
  const auto *found = attribute(name, onnx::AttributeProto::STRING);
  return found ? found->s() : fallback.str();
}

std::optional<SmallVector<int64_t>> NodeImporter::intsAttr(StringRef name) {
  const auto *found = attribute(name, onnx::AttributeProto::INTS);
  if (!found)
    return std::nullopt;
  return SmallVector<int64_t>(found->ints().begin(), found->ints().end());
}

bool NodeImporter::wantsResult(unsigned index) const {
  return index < static_cast<unsigned>(node.output_size()) &&
         !node.output(index).empty();
}

void NodeImporter::setResult(unsigned index, Value value) {
  if (!value)
    failed = true;
  setResult(index, ImportedValue::of(value));
}

void NodeImporter::setResult(unsigned index, ImportedValue value) {
  if (!failed && wantsResult(index))
    graph.define(node.output(index), std::move(value));
}

LogicalResult NodeImporter::finish(Value result) {
  setResult(0, result);
  return finish();
}

LogicalResult NodeImporter::finish() {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (!failed && !asked.contains(attribute.name()))
      error() << "attribute '" << attribute.name() << "' is not supported";
  return success(!failed);
}

ArrayRef<int64_t> NodeImporter::shape(Value value) {
  return value ? ::mlir::cast<RankedTensorType>(value.getType()).getShape()
               : ArrayRef<int64_t>();
}

Type NodeImporter::element(Value value) {
  return value
             ? ::mlir::cast<RankedTensorType>(value.getType()).getElementType()
             : Type();
}

bool NodeImporter::isFloat(Value value) {
  return isa_and_nonnull<FloatType>(element(value));
}

DenseElementsAttr NodeImporter::constantOf(Value value) {
  return transforms::getConstantValue(value);
}

Value NodeImporter::finishCreate(OperationState &state, Type type) {
  MLIRContext *context = loc.getContext();
  if (type) {
    state.addTypes(type);
  } else {
    // Inference reads properties, so they are set before the op exists; the
    // generated builders would do so too but abort where inference fails.
    auto name = state.name;
    OpaqueProperties properties = nullptr;
    std::unique_ptr<char[]> storage;
    if (unsigned bytes = name.getOpPropertyByteSize()) {
      storage.reset(new char[bytes + 64]);
      auto address =
          llvm::alignTo(reinterpret_cast<uintptr_t>(storage.get()), 64);
      properties = OpaqueProperties(reinterpret_cast<void *>(address));
      name.initOpProperties(properties, nullptr);
      auto report = [&] { return error(); };
      if (::mlir::failed(name.setOpPropertiesFromAttribute(
              name, properties, state.attributes.getDictionary(context),
              report)))
        return nullptr;
    }
    auto *inference = name.getInterface<InferTypeOpInterface>();
    SmallVector<Type> types;
    LogicalResult inferred = inference->inferReturnTypes(
        context, loc, state.operands, state.attributes.getDictionary(context),
        properties, {}, types);
    if (properties)
      name.destroyOpProperties(properties);
    if (::mlir::failed(inferred)) {
      failed = true;
      return nullptr;
    }
    state.addTypes(types);
  }
  for (Type result : state.types)
    if (auto tensor = dyn_cast<RankedTensorType>(result);
        tensor && !isAddressable(tensor.getShape())) {
      error() << "expected a result whose elements can be addressed, found "
              << tensor;
      return nullptr;
    }
  Operation *op = graph.builder.create(state);
  if (::mlir::failed(verify(op))) {
    failed = true;
    op->erase();
    return nullptr;
  }
  if (llvm::any_of(op->getOperands(), [&](Value operand) {
        return graph.choices.isSize(operand);
      }))
    return finishSize(op);
  FailureOr<Choices::Followed> followed = graph.choices.follow(*this, op);
  if (::mlir::failed(followed)) {
    failed = true;
    op->erase();
    return nullptr;
  }
  Value result = transforms::foldOrKeep(graph.builder, op, &graph.room);
  failed |= !result;
  if (!result)
    return nullptr;
  for (auto [index, chosen] : llvm::enumerate(followed->results)) {
    if (!chosen)
      continue;
    // Of several results none folds. What folding finds may be of no choice, or
    // have it elsewhere.
    std::optional<Choices::Chosen> before = graph.choices.find(result);
    DenseElementsAttr known = constantOf(result);
    bool isOther =
        before ? before->number != chosen->number || before->dim != chosen->dim
               : !known && result.getDefiningOp() != op;
    if (index == 0 && isOther)
      result = known ? constant(known) : copy(result);
    Value value = index == 0 ? result : op->getResult(index);
    if (followed->isEntrance)
      graph.choices.enter(value, *chosen);
    else
      graph.choices.mark(value, *chosen);
  }
  return result;
}

Value NodeImporter::constant(ElementsAttr value) {
  if (failed)
    return nullptr;
  return nn::ConstantOp::create(graph.builder, loc, value);
}

/// Whether an integer type has the number: a fraction would be cut off.
static bool hasNumber(Type element, double value) {
  if (isa<FloatType>(element))
    return true;
  double half = std::ldexp(1.0, element.getIntOrFloatBitWidth() - 1);
  return value == std::trunc(value) && value >= -half && value < 2 * half &&
         value < 0x1p63;
}

Value NodeImporter::splat(ArrayRef<int64_t> shape, Type element, double value) {
  if (failed)
    return nullptr;
  if (!hasNumber(element, value)) {
    error() << "expected elements that can be " << value
            << ", which it computes with, found " << element;
    return nullptr;
  }
  return constant(splatValue(shape, element, value));
}

Value NodeImporter::splatLike(Value like, double value) {
  return like ? splat(shape(like), element(like), value) : Value();
}

Value NodeImporter::ints(ArrayRef<int64_t> values, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, graph.builder.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value NodeImporter::iota(int64_t count) {
  return create<nn::IotaOp>(
      {}, named("dim", int64_t(0)),
      RankedTensorType::get(count, graph.builder.getI64Type()));
}

Value NodeImporter::broadcast(Value value, ArrayRef<int64_t> shape) {
  if (!value || NodeImporter::shape(value) == shape)
    return value;
  return create<nn::BroadcastOp>(value, {},
                                 RankedTensorType::get(shape, element(value)));
}

Value NodeImporter::copy(Value value) {
  return value
             ? nn::ReshapeOp::create(graph.builder, loc, value.getType(), value)
                   .getResult()
             : Value();
}

Value NodeImporter::reshape(Value value, ArrayRef<int64_t> shape) {
  if (!value || NodeImporter::shape(value) == shape)
    return value;
  return create<nn::ReshapeOp>(value, {},
                               RankedTensorType::get(shape, element(value)));
}

Value NodeImporter::transpose(Value value, ArrayRef<int64_t> permutation) {
  return create<nn::TransposeOp>(value, named("permutation", permutation));
}

Value NodeImporter::swapLastTwo(Value value) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(rank(value)));
  if (permutation.size() < 2)
    return value;
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return transpose(value, permutation);
}

Value NodeImporter::cast(Value value, Type element) {
  if (!value || NodeImporter::element(value) == element)
    return value;
  return create<nn::CastOp>(value, {},
                            RankedTensorType::get(shape(value), element));
}

Value NodeImporter::slice(Value value, int64_t dim, int64_t start,
                          int64_t size) {
  if (failed || !value)
    return nullptr;
  SmallVector<int64_t> starts(rank(value), 0), steps(rank(value), 1);
  SmallVector<int64_t> sizes(shape(value));
  starts[dim] = start;
  sizes[dim] = size;
  return create<nn::SliceOp>(
      value,
      {named("starts", starts), named("sizes", sizes), named("steps", steps)});
}

Value NodeImporter::concat(ArrayRef<Value> values, int64_t dim) {
  return nn::joinInParts(values, [&](ArrayRef<Value> some) {
    return create<nn::ConcatOp>(some, named("dim", dim));
  });
}

Value NodeImporter::compare(nn::ComparePredicate predicate, Value lhs,
                            Value rhs) {
  SmallVector<Value> both{lhs, rhs};
  if (!broadcastTogether(both))
    return nullptr;
  return create<nn::CompareOp>(
      both, named("predicate",
                  nn::ComparePredicateAttr::get(loc.getContext(), predicate)));
}

Value NodeImporter::select(Value condition, Value onTrue, Value onFalse) {
  SmallVector<Value> all{condition, onTrue, onFalse};
  return broadcastTogether(all) ? create<nn::SelectOp>(all) : Value();
}

Value NodeImporter::reduce(nn::ReductionKind kind, Value value,
                           ArrayRef<int64_t> dims, bool keepDims, bool first) {
  SmallVector<NamedAttribute> attributes{
      named("kind", nn::ReductionKindAttr::get(loc.getContext(), kind)),
      named("dims", dims)};
  if (first)
    attributes.push_back(unit("first"));
  Value result = value;
  if (!dims.empty())
    result = create<nn::ReduceOp>(value, attributes);
  if (!result || !keepDims)
    return result;
  SmallVector<int64_t> kept(shape(value));
  for (int64_t dim : dims)
    kept[dim] = 1;
  return reshape(result, kept);
}

Value NodeImporter::getNeutral(nn::ReductionKind kind, Type element) {
  if (kind == nn::ReductionKind::prod)
    return splat({}, element, 1);
  bool least = kind == nn::ReductionKind::max;
  auto type = RankedTensorType::get({}, element);
  if (auto number = ::mlir::dyn_cast<FloatType>(element))
    return constant(DenseElementsAttr::get(
        type, APFloat::getInf(number.getFloatSemantics(), least)));
  unsigned width = element.getIntOrFloatBitWidth();
  if (element.isUnsignedInteger())
    return constant(DenseElementsAttr::get(
        type, least ? APInt::getMinValue(width) : APInt::getMaxValue(width)));
  return constant(
      DenseElementsAttr::get(type, least ? APInt::getSignedMinValue(width)
                                         : APInt::getSignedMaxValue(width)));
}

bool NodeImporter::broadcastTogether(MutableArrayRef<Value> values) {
  if (failed || llvm::is_contained(values, Value())) {
    failed = true;
    return false;
  }
  // What meets chosen elements may be theirs in turn.
  for (Value chooser : values)
    if (std::optional<Choices::Chosen> chosen = graph.choices.find(chooser)) {
      for (Value &value : values)
        value = graph.choices.meet(*this, value,
                                   chosen->dim - rank(chooser) + rank(value),
                                   chosen->number);
      break;
    }
  if (failed)
    return false;
  SmallVector<int64_t> common;
  for (Value value : values) {
    ArrayRef<int64_t> dims = shape(value);
    if (dims.size() > common.size())
      common.insert(common.begin(), dims.size() - common.size(), 1);
    for (auto [size, all] :
         llvm::zip(llvm::reverse(dims), llvm::reverse(common))) {
      if (all == 1)
        all = size;
      if (size == all || size == 1)
        continue;
      InFlightDiagnostic diagnostic =
          error() << "expected shapes that broadcast together, found ";
      llvm::interleaveComma(values, diagnostic,
                            [&](Value each) { diagnostic << each.getType(); });
      return false;
    }
  }
  for (Value &value : values)
    value = broadcast(value, common);
  return !failed;
}

Value NodeImporter::stopGradient(Value value) {
  if (!value || constantOf(value))
    return value;
  if (graph.options.forTraining)
    return create<nn::StopGradientOp>(value);
  graph.stopsGradients = true;
  return value;
}

Value NodeImporter::matmul(Value lhs, Value rhs, bool transposeLhs,
                           bool transposeRhs) {
  if (!lhs || !rhs)
    return nullptr;
  if (rank(lhs) == 0 || rank(rhs) == 0) {
    error() << "expected operands of rank 1 or more, found " << lhs.getType()
            << " and " << rhs.getType();
    return nullptr;
  }
  bool vectorLhs = rank(lhs) == 1, vectorRhs = rank(rhs) == 1;
  if (vectorLhs)
    lhs = reshape(lhs, {1, shape(lhs)[0]});
  if (vectorRhs)
    rhs = reshape(rhs, {shape(rhs)[0], 1});
  if (rank(rhs) > 2 || (rank(lhs) > 2 && rank(rhs) > 2)) {
    // Batch dimensions must agree; stand-ins of the batch shapes find them.
    SmallVector<int64_t> batch;
    int64_t batchRank = std::max(rank(lhs), rank(rhs)) - 2;
    for (int64_t dim = 0; dim < batchRank; ++dim) {
      auto size = [&](Value value) {
        int64_t own = dim - (batchRank - (rank(value) - 2));
        return own < 0 ? int64_t(1) : shape(value)[own];
      };
      int64_t left = size(lhs), right = size(rhs);
      if (left != right && left != 1 && right != 1) {
        error() << "expected batch dimensions that broadcast, found "
                << lhs.getType() << " and " << rhs.getType();
        return nullptr;
      }
      batch.push_back(left == 1 ? right : left);
    }
    auto widen = [&](Value value) {
      SmallVector<int64_t> wide(batch);
      llvm::append_range(wide, shape(value).take_back(2));
      return broadcast(value, wide);
    };
    lhs = widen(lhs);
    rhs = widen(rhs);
  }
  SmallVector<NamedAttribute> flags;
  if (transposeLhs)
    flags.push_back(unit("transpose_lhs"));
  if (transposeRhs)
    flags.push_back(unit("transpose_rhs"));
  Value product = create<nn::MatmulOp>({lhs, rhs}, flags);
  if (!product || (!vectorLhs && !vectorRhs))
    return product;
  SmallVector<int64_t> result(shape(product));
  if (vectorRhs)
    result.pop_back();
  if (vectorLhs)
    result.erase(result.end() - (vectorRhs ? 1 : 2));
  return reshape(product, result);
}

int64_t NodeImporter::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  if (!failed)
    error() << "expected an axis in [" << -rank << ", " << rank << "), found "
            << axis;
  return 0;
}

SmallVector<int64_t> NodeImporter::normalizeAxes(ArrayRef<int64_t> axes,
                                                 int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes)
    result.push_back(normalizeAxis(axis, rank));
  llvm::sort(result);
  if (!failed &&
      std::adjacent_find(result.begin(), result.end()) != result.end())
    error() << "expected each axis once, found [" << axes << "]";
  return failed ? SmallVector<int64_t>() : result;
}
