// Ops of nn as operators of ONNX, in the spelling of exporters: transposes
// stand by themselves, broadcasts are left out where operators broadcast,
// scatters go by tuples, attention and experts come in parts.

#include "OnnxForm.h"

#include "dialects/NN/NN.h"
#include "dialects/Tensor/Tensor.h"
#include "onnx-schema/onnx-ml.pb.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace accel;

namespace {
using Shape = SmallVector<int64_t>;

class Writer {
public:
  explicit Writer(ModuleOp program) : program(program) {}

  std::string write();

private:
  using Name = std::string;

  static Shape shapeOf(Value value) {
    return Shape(cast<RankedTensorType>(value.getType()).getShape());
  }
  static int32_t typeOf(Type element);

  Name nameOf(Value value) { return names.lookup(value); }
  Name fresh() { return "v" + std::to_string(numNames++); }
  onnx::NodeProto *node(StringRef op, ArrayRef<Name> operands, Name result);
  Name add(StringRef op, ArrayRef<Name> operands) {
    Name result = fresh();
    last = node(op, operands, result);
    return result;
  }
  void set(StringRef name, int64_t value);
  void set(StringRef name, float value);
  void set(StringRef name, StringRef value);
  void setList(StringRef name, ArrayRef<int64_t> values);
  Name constant(const Tensor &tensor);
  Name constant(ArrayRef<int64_t> numbers, bool isScalar = false);
  Name number(double value, Type element);
  static void fill(onnx::TensorProto &proto, const Tensor &tensor);
  static void describe(onnx::ValueInfoProto &info, StringRef name, Type type);

  Name transpose(Name value, ArrayRef<int64_t> permutation);
  Name swapLast(Name value, int64_t rank);
  Name reshape(Name value, ArrayRef<int64_t> shape) {
    return add("Reshape", {value, constant(shape)});
  }
  Name expand(Name value, ArrayRef<int64_t> shape) {
    return add("Expand", {value, constant(shape)});
  }
  SmallVector<Name> broadcastOperands(Operation *op);

  Name write(Operation &op);
  Name writeElementwise(Operation *op, StringRef name);
  Name writeCompare(nn::CompareOp op);
  Name writeSlice(nn::SliceOp op);
  Name writeScatter(nn::ScatterAddOp op);
  Name writeGrouped(nn::GroupedMatmulOp op);
  Name writeCrossEntropy(nn::CrossEntropyOp op);
  Name writeAttention(nn::AttentionOp op);
  Name writeReduce(nn::ReduceOp op);
  Name writeMatmul(nn::MatmulOp op);
  template <typename Op> Name writeConvolution(Op op, StringRef name);

  ModuleOp program;
  onnx::ModelProto model;
  onnx::GraphProto *graph = nullptr;
  onnx::NodeProto *last = nullptr;
  DenseMap<Value, Name> names;
  unsigned numNames = 0;
};
} // namespace

int32_t Writer::typeOf(Type element) {
  if (element.isF64())
    return onnx::TensorProto::DOUBLE;
  return element.isInteger(1) ? onnx::TensorProto::BOOL
                              : onnx::TensorProto::INT64;
}

onnx::NodeProto *Writer::node(StringRef op, ArrayRef<Name> operands,
                              Name result) {
  onnx::NodeProto *made = graph->add_node();
  made->set_op_type(op.str());
  made->set_name("node_" + result);
  for (const Name &operand : operands)
    made->add_input(operand);
  made->add_output(result);
  return made;
}

static onnx::AttributeProto *
addAttribute(onnx::NodeProto *node, StringRef name,
             onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto *attribute = node->add_attribute();
  attribute->set_name(name.str());
  attribute->set_type(type);
  return attribute;
}
void Writer::set(StringRef name, int64_t value) {
  addAttribute(last, name, onnx::AttributeProto::INT)->set_i(value);
}
void Writer::set(StringRef name, float value) {
  addAttribute(last, name, onnx::AttributeProto::FLOAT)->set_f(value);
}
void Writer::set(StringRef name, StringRef value) {
  addAttribute(last, name, onnx::AttributeProto::STRING)->set_s(value.str());
}
void Writer::setList(StringRef name, ArrayRef<int64_t> values) {
  auto *attribute = addAttribute(last, name, onnx::AttributeProto::INTS);
  for (int64_t value : values)
    attribute->add_ints(value);
}

void Writer::fill(onnx::TensorProto &proto, const Tensor &tensor) {
  proto.set_data_type(typeOf(tensor.getElementType()));
  for (int64_t size : tensor.getShape())
    proto.add_dims(size);
  std::vector<char> bytes(tensor.getNumElements() * tensor.getElementBytes());
  tensor.toBytes(bytes);
  proto.set_raw_data(std::string(bytes.data(), bytes.size()));
}

Writer::Name Writer::constant(const Tensor &tensor) {
  Name result = add("Constant", {});
  auto *attribute = addAttribute(last, "value", onnx::AttributeProto::TENSOR);
  fill(*attribute->mutable_t(), tensor);
  return result;
}
Writer::Name Writer::constant(ArrayRef<int64_t> numbers, bool isScalar) {
  Shape shape = isScalar ? Shape() : Shape{int64_t(numbers.size())};
  Tensor tensor(shape, IntegerType::get(program.getContext(), 64));
  llvm::copy(numbers, tensor.mutableInts().begin());
  return constant(tensor);
}
Writer::Name Writer::number(double value, Type element) {
  Tensor tensor(ArrayRef<int64_t>(), element);
  if (tensor.isFloat())
    tensor.mutableFloats()[0] = value;
  else
    tensor.mutableInts()[0] = static_cast<int64_t>(value);
  return constant(tensor);
}

void Writer::describe(onnx::ValueInfoProto &info, StringRef name, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  info.set_name(name.str());
  auto *proto = info.mutable_type()->mutable_tensor_type();
  proto->set_elem_type(typeOf(tensor.getElementType()));
  auto *shape = proto->mutable_shape();
  for (int64_t size : tensor.getShape())
    shape->add_dim()->set_dim_value(size);
}

Writer::Name Writer::transpose(Name value, ArrayRef<int64_t> permutation) {
  Name result = add("Transpose", {value});
  setList("perm", permutation);
  return result;
}
Writer::Name Writer::swapLast(Name value, int64_t rank) {
  Shape permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return transpose(value, permutation);
}

/// Operands before their broadcasts, where the operator does the same.
SmallVector<Writer::Name> Writer::broadcastOperands(Operation *op) {
  SmallVector<Value> sources;
  Shape joined;
  for (Value operand : op->getOperands()) {
    auto broadcast = operand.getDefiningOp<nn::BroadcastOp>();
    sources.push_back(broadcast ? broadcast.getInput() : operand);
    Shape shape = shapeOf(sources.back());
    if (joined.size() < shape.size())
      joined.insert(joined.begin(), shape.size() - joined.size(), 1);
    for (size_t at = 0; at < shape.size(); ++at) {
      int64_t &size = joined[joined.size() - shape.size() + at];
      size = std::max(size, shape[at]);
    }
  }
  bool isSame = joined == shapeOf(op->getResult(0));
  SmallVector<Name> operands;
  for (auto [source, operand] : llvm::zip(sources, op->getOperands()))
    operands.push_back(nameOf(isSame ? source : operand));
  return operands;
}

Writer::Name Writer::writeElementwise(Operation *op, StringRef name) {
  return add(name, broadcastOperands(op));
}

Writer::Name Writer::writeCompare(nn::CompareOp op) {
  switch (op.getPredicate()) {
  case nn::ComparePredicate::eq:
    return writeElementwise(op, "Equal");
  case nn::ComparePredicate::ne:
    return add("Not", {writeElementwise(op, "Equal")});
  case nn::ComparePredicate::lt:
    return writeElementwise(op, "Less");
  case nn::ComparePredicate::le:
    return writeElementwise(op, "LessOrEqual");
  case nn::ComparePredicate::gt:
    return writeElementwise(op, "Greater");
  case nn::ComparePredicate::ge:
    return writeElementwise(op, "GreaterOrEqual");
  }
  return "";
}

Writer::Name Writer::writeSlice(nn::SliceOp op) {
  Shape starts, ends, axes, steps, shape = shapeOf(op.getInput());
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t start = op.getStarts()[dim], step = op.getSteps()[dim];
    int64_t size = op.getSizes()[dim];
    if (start == 0 && size == shape[dim] && step == 1)
      continue;
    int64_t end = start + (size - 1) * step + (step > 0 ? 1 : -1);
    starts.push_back(start);
    ends.push_back(end < 0 ? std::numeric_limits<int64_t>::min() : end);
    axes.push_back(dim);
    steps.push_back(step);
  }
  if (axes.empty())
    return add("Identity", {nameOf(op.getInput())});
  return add("Slice", {nameOf(op.getInput()), constant(starts), constant(ends),
                       constant(axes), constant(steps)});
}

Writer::Name Writer::writeScatter(nn::ScatterAddOp op) {
  Name init = nameOf(op.getInit()), indices = nameOf(op.getIndices()),
       updates = nameOf(op.getUpdates());
  Shape shape = shapeOf(op.getInit()), rows = shapeOf(op.getUpdates()),
        places = shapeOf(op.getIndices());
  int64_t dim = op.getDim();
  if (op.getBatchDims() == 0) {
    if (places.size() != 1)
      return "";
    // To the front and back, as exporters write it.
    Shape forth = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    std::rotate(forth.begin(), forth.begin() + dim, forth.begin() + dim + 1);
    Shape back(forth.size());
    for (auto [to, from] : llvm::enumerate(forth))
      back[from] = to;
    if (dim) {
      init = transpose(init, forth);
      updates = transpose(updates, forth);
    }
    Name result =
        add("ScatterND", {init, reshape(indices, {places[0], 1}), updates});
    set("reduction", StringRef("add"));
    return dim ? transpose(result, back) : result;
  }
  // An index for each element.
  if (op.getBatchDims() != 1 || dim != 1 || places.size() != 2)
    return "";
  Shape wide(places);
  wide.append(rows.size() - 2, 1);
  Name result = add("ScatterElements",
                    {init, expand(reshape(indices, wide), rows), updates});
  set("axis", dim);
  set("reduction", StringRef("add"));
  return result;
}

/// Each row its own matrix, as an index has picked it.
Writer::Name Writer::writeGrouped(nn::GroupedMatmulOp op) {
  Shape lhs = shapeOf(op.getLhs()), result = shapeOf(op.getResult());
  Name matrices = add("Gather", {nameOf(op.getRhs()), nameOf(op.getGroups())});
  set("axis", int64_t(0));
  if (op.getTransposeRhs())
    matrices = swapLast(matrices, 3);
  Name rows = reshape(nameOf(op.getLhs()), {lhs[0], 1, lhs[1]});
  return reshape(add("MatMul", {rows, matrices}), result);
}

Writer::Name Writer::writeCrossEntropy(nn::CrossEntropyOp op) {
  Name logits = nameOf(op.getLogits());
  int64_t rank = shapeOf(op.getLogits()).size();
  if (rank > 3)
    return "";
  if (rank == 3) // classes come second
    logits = swapLast(logits, 3);
  Name result =
      add("SoftmaxCrossEntropyLoss", {logits, nameOf(op.getLabels())});
  set("reduction", StringRef("none"));
  set("ignore_index", int64_t(op.getIgnoreIndex()));
  return result;
}

/// scaled_dot_product_attention as it is taken apart.
Writer::Name Writer::writeAttention(nn::AttentionOp op) {
  if (!op.getLogSumExp().use_empty() || op.getRowOffset() ||
      op.getColumnOffset() || op.getStride() != 1)
    return "";
  Type element = getElementTypeOrSelf(op.getResult().getType());
  Shape query = shapeOf(op.getQuery()), key = shapeOf(op.getKey());
  Name k = nameOf(op.getKey()), v = nameOf(op.getValue());
  int64_t shared = query[1] / key[1];
  auto repeat = [&](Name heads, Shape shape) {
    if (shared == 1)
      return heads;
    Name apart = reshape(heads, {shape[0], shape[1], 1, shape[2], shape[3]});
    Name wide = expand(apart, {shape[0], shape[1], shared, shape[2], shape[3]});
    return reshape(wide, {shape[0], shape[1] * shared, shape[2], shape[3]});
  };
  k = repeat(k, key);
  v = repeat(v, shapeOf(op.getValue()));
  Name scores = add("MatMul", {nameOf(op.getQuery()), swapLast(k, 4)});
  scores =
      add("Mul", {scores, number(op.getScale().convertToDouble(), element)});
  Name hidden = number(-std::numeric_limits<double>::infinity(), element);
  if (Value mask = op.getMask()) {
    if (getElementTypeOrSelf(mask.getType()).isInteger(1))
      scores = add("Where", {nameOf(mask), scores, hidden});
    else
      scores = add("Add", {scores, nameOf(mask)});
  }
  if (op.getCausal()) {
    int64_t rows = query[2], columns = key[2];
    Tensor sees(Shape{rows, columns}, IntegerType::get(op.getContext(), 1));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column <= std::min(row, columns - 1); ++column)
        sees.mutableInts()[row * columns + column] = 1;
    scores = add("Where", {constant(sees), scores, hidden});
  }
  Name weights = add("Softmax", {scores});
  set("axis", int64_t(-1));
  if (op.getZeroMaskedRows())
    weights =
        add("Where", {add("IsNaN", {weights}), number(0, element), weights});
  return add("MatMul", {weights, v});
}

Writer::Name Writer::writeReduce(nn::ReduceOp op) {
  if (op.getFirst())
    return "";
  StringRef name = op.getKind() == nn::ReductionKind::sum   ? "ReduceSum"
                   : op.getKind() == nn::ReductionKind::max ? "ReduceMax"
                   : op.getKind() == nn::ReductionKind::min ? "ReduceMin"
                                                            : "ReduceProd";
  Name result = add(name, {nameOf(op.getInput()), constant(op.getDims())});
  set("keepdims", int64_t(0));
  return result;
}

/// Groups and channels are one dimension of ONNX's operands.
template <typename Op>
Writer::Name Writer::writeConvolution(Op op, StringRef name) {
  size_t space = op.getSizes().size();
  Shape input = shapeOf(op.getLhs()), weight = shapeOf(op.getRhs()),
        result = shapeOf(op.getResult());
  Name lhs = nameOf(op.getLhs()), rhs = nameOf(op.getRhs());
  int64_t groups = 1;
  auto join = [](Shape shape, size_t at) {
    shape[at] *= shape[at + 1];
    shape.erase(shape.begin() + at + 1);
    return shape;
  };
  if (input.size() == space + 3) {
    groups = input[1];
    lhs = reshape(lhs, input = join(input, 1));
    rhs = reshape(rhs, weight = join(weight, 0));
  }
  bool isTransposed = name == "ConvTranspose";
  Shape pads(op.getLow());
  Shape extra;
  for (size_t dim = 0; dim < space; ++dim) {
    int64_t from = input[2 + dim], to = op.getSizes()[dim],
            window = (weight[2 + dim] - 1) * op.getDilations()[dim] + 1;
    int64_t wide = isTransposed ? to : from, narrow = isTransposed ? from : to;
    // What the last window needs behind the last element.
    int64_t high =
        (narrow - 1) * op.getStrides()[dim] + window - wide - op.getLow()[dim];
    pads.push_back(std::max<int64_t>(0, high));
    extra.push_back(std::max<int64_t>(0, -high));
  }
  Name made = add(name, {lhs, rhs});
  setList("strides", op.getStrides());
  setList("dilations", op.getDilations());
  setList("pads", pads);
  set("group", groups);
  if (isTransposed)
    setList("output_padding", extra);
  return groups == 1 ? made : reshape(made, result);
}

Writer::Name Writer::writeMatmul(nn::MatmulOp op) {
  Name lhs = nameOf(op.getLhs()), rhs = nameOf(op.getRhs());
  if (op.getTransposeLhs())
    lhs = swapLast(lhs, shapeOf(op.getLhs()).size());
  if (op.getTransposeRhs())
    rhs = swapLast(rhs, shapeOf(op.getRhs()).size());
  return add("MatMul", {lhs, rhs});
}

Writer::Name Writer::write(Operation &any) {
  auto elementwise = [&](StringRef name) {
    return [this, name](Operation *op) { return writeElementwise(op, name); };
  };
  return TypeSwitch<Operation *, Name>(&any)
      .Case<nn::ConstantOp>([&](auto op) {
        return constant(*Tensor::fromElements(op.getValue()));
      })
      .Case<nn::IotaOp>([&](auto op) {
        Shape shape = shapeOf(op.getResult()), row(shape.size(), 1);
        int64_t first = op.getStart(), size = shape[op.getDim()];
        row[op.getDim()] = size;
        Name range =
            add("Range", {constant({first}, true),
                          constant({first + size}, true), constant({1}, true)});
        return expand(reshape(range, row), shape);
      })
      .Case<nn::CompareOp>([&](auto op) { return writeCompare(op); })
      .Case<nn::SliceOp>([&](auto op) { return writeSlice(op); })
      .Case<nn::ScatterAddOp>([&](auto op) { return writeScatter(op); })
      .Case<nn::GroupedMatmulOp>([&](auto op) { return writeGrouped(op); })
      .Case<nn::CrossEntropyOp>([&](auto op) { return writeCrossEntropy(op); })
      .Case<nn::AttentionOp>([&](auto op) { return writeAttention(op); })
      .Case<nn::ReduceOp>([&](auto op) { return writeReduce(op); })
      .Case<nn::MatmulOp>([&](auto op) { return writeMatmul(op); })
      .Case<nn::ConvOp>([&](auto op) { return writeConvolution(op, "Conv"); })
      .Case<nn::ConvInputGradOp>(
          [&](auto op) { return writeConvolution(op, "ConvTranspose"); })
      .Case<nn::ReshapeOp>([&](auto op) {
        return reshape(nameOf(op.getInput()), shapeOf(op.getResult()));
      })
      .Case<nn::BroadcastOp>([&](auto op) {
        return expand(nameOf(op.getInput()), shapeOf(op.getResult()));
      })
      .Case<nn::TransposeOp>([&](auto op) {
        return transpose(nameOf(op.getInput()), op.getPermutation());
      })
      .Case<nn::ConcatOp>([&](auto op) {
        SmallVector<Name> operands;
        for (Value input : op.getInputs())
          operands.push_back(nameOf(input));
        Name result = add("Concat", operands);
        set("axis", int64_t(op.getDim()));
        return result;
      })
      .Case<nn::PadOp>([&](auto op) {
        Shape pads(op.getLow());
        llvm::append_range(pads, op.getHigh());
        return add("Pad", {nameOf(op.getInput()), constant(pads),
                           nameOf(op.getValue())});
      })
      .Case<nn::GatherOp>([&](auto op) -> Name {
        if (op.getPaddingIndex())
          return "";
        Name result =
            add("Gather", {nameOf(op.getTable()), nameOf(op.getIndices())});
        set("axis", int64_t(op.getDim()));
        return result;
      })
      .Case<nn::GatherNdOp>([&](auto op) {
        Name result =
            add("GatherND", {nameOf(op.getTable()), nameOf(op.getIndices())});
        set("batch_dims", int64_t(op.getBatchDims()));
        return result;
      })
      .Case<nn::CumsumOp>([&](auto op) {
        Name result = add("CumSum", {nameOf(op.getInput()),
                                     constant({int64_t(op.getDim())}, true)});
        set("exclusive", int64_t(op.getExclusive()));
        set("reverse", int64_t(op.getReverse()));
        return result;
      })
      .Case<nn::TopKOp>([&](auto op) {
        Name values = add(
            "TopK", {nameOf(op.getInput()), constant({int64_t(op.getK())})});
        Name places = fresh();
        last->add_output(places);
        set("largest", int64_t(!op.getSmallest()));
        return places;
      })
      .Case<nn::SoftmaxOp>([&](auto op) {
        Name result = add(op.getLog() ? "LogSoftmax" : "Softmax",
                          {nameOf(op.getInput())});
        set("axis", int64_t(op.getDim()));
        return result;
      })
      .Case<nn::LayerNormOp>([&](auto op) {
        SmallVector<Name> operands = {nameOf(op.getInput()),
                                      nameOf(op.getScale())};
        if (op.getBias())
          operands.push_back(nameOf(op.getBias()));
        Name result = add("LayerNormalization", operands);
        set("axis", int64_t(op.getDim()));
        set("epsilon", op.getEpsilon().convertToFloat());
        return result;
      })
      .Case<nn::CastOp>([&](auto op) {
        Name result = add("Cast", {nameOf(op.getInput())});
        set("to", int64_t(typeOf(op.getType().getElementType())));
        return result;
      })
      .Case<nn::GeluOp>([&](auto op) {
        Name result = add("Gelu", {nameOf(op.getInput())});
        set("approximate", op.getKind() == nn::GeluKind::tanh
                               ? StringRef("tanh")
                               : StringRef("none"));
        return result;
      })
      .Case<nn::StopGradientOp>([&](auto op) {
        Name result = add("Identity", {nameOf(op.getInput())});
        auto *property = last->add_metadata_props();
        property->set_key("accel.stop_gradient");
        property->set_value("1");
        return result;
      })
      .Case<nn::ModOp>([&](auto op) {
        Name result = writeElementwise(op, "Mod");
        if (getElementTypeOrSelf(op.getType()).isF64())
          set("fmod", int64_t(1));
        return result;
      })
      .Case<nn::Log1pOp>([&](auto op) {
        Type element = getElementTypeOrSelf(op.getType());
        return add("Log",
                   {add("Add", {nameOf(op.getInput()), number(1, element)})});
      })
      .Case<nn::RsqrtOp>([&](auto op) {
        return add("Reciprocal", {add("Sqrt", {nameOf(op.getInput())})});
      })
      .Case<nn::AddOp>(elementwise("Add"))
      .Case<nn::SubOp>(elementwise("Sub"))
      .Case<nn::MulOp>(elementwise("Mul"))
      .Case<nn::DivOp>(elementwise("Div"))
      .Case<nn::PowOp>(elementwise("Pow"))
      .Case<nn::MinOp>(elementwise("Min"))
      .Case<nn::MaxOp>(elementwise("Max"))
      .Case<nn::AndOp>(elementwise("And"))
      .Case<nn::OrOp>(elementwise("Or"))
      .Case<nn::NotOp>(elementwise("Not"))
      .Case<nn::SelectOp>(elementwise("Where"))
      .Case<nn::IsNanOp>(elementwise("IsNaN"))
      .Case<nn::NegOp>(elementwise("Neg"))
      .Case<nn::AbsOp>(elementwise("Abs"))
      .Case<nn::ExpOp>(elementwise("Exp"))
      .Case<nn::LogOp>(elementwise("Log"))
      .Case<nn::SqrtOp>(elementwise("Sqrt"))
      .Case<nn::ReciprocalOp>(elementwise("Reciprocal"))
      .Case<nn::TanhOp>(elementwise("Tanh"))
      .Case<nn::ErfOp>(elementwise("Erf"))
      .Case<nn::SigmoidOp>(elementwise("Sigmoid"))
      .Case<nn::ReluOp>(elementwise("Relu"))
      .Case<nn::SinOp>(elementwise("Sin"))
      .Case<nn::CosOp>(elementwise("Cos"))
      .Case<nn::AtanOp>(elementwise("Atan"))
      .Case<nn::FloorOp>(elementwise("Floor"))
      .Case<nn::RoundOp>(elementwise("Round"))
      .Default([](Operation *) { return Name(); });
}

std::string Writer::write() {
  model.set_ir_version(9);
  model.set_producer_name("accel-fuzz-programs");
  auto *opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(20);
  graph = model.mutable_graph();
  graph->set_name("main");
  func::FuncOp entry = *program.getOps<func::FuncOp>().begin();
  SymbolTable symbols(program);
  for (BlockArgument argument : entry.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (auto input =
            entry.getArgAttrOfType<StringAttr>(index, nn::kInputAttr)) {
      names[argument] = input.str();
      describe(*graph->add_input(), input, argument.getType());
      continue;
    }
    auto state = symbols.lookup<nn::StateOp>(
        entry.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr)
            .getAttr());
    auto elements = dyn_cast<ElementsAttr>(state.getInit());
    if (argument.use_empty() || !elements)
      return "";
    names[argument] = state.getSymName().str();
    onnx::TensorProto *proto = graph->add_initializer();
    proto->set_name(state.getSymName().str());
    fill(*proto, *Tensor::fromElements(elements));
  }
  for (Operation &op : entry.front().without_terminator()) {
    Name result = write(op);
    if (result.empty())
      return "";
    names[op.getResult(0)] = result;
  }
  Value loss = entry.front().getTerminator()->getOperand(0);
  node("Identity", {nameOf(loss)}, "loss");
  describe(*graph->add_output(), "loss", loss.getType());
  return model.SerializeAsString();
}

std::string fuzz::writeOnnx(ModuleOp program) {
  return Writer(program).write();
}
