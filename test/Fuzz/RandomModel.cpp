// Chooses as an exporter would most of the time, and otherwise now and then.

#include "RandomModel.h"

#include "lib/Import/Import.h"
#include "lib/Import/OpTable.h"
#include "lib/Onnx/Payload.h"
#include "llvm/ADT/STLExtras.h"

using namespace accel;
using namespace accel::fuzz;

using onnx::AttributeProto;
using onnx::TensorProto;

namespace {

/// An attribute that operators know, by their names with a blank after each.
struct AttributeRow {
  const char *name;
  AttributeProto::AttributeType type;
  llvm::StringLiteral users;
};
constexpr AttributeRow kAttributes[] = {
    {"axis", AttributeProto::INT,
     "Concat ConcatFromSequence Flatten Gather GatherElements OneHot "
     "Hardmax LayerNormalization LogSoftmax LpNormalization "
     "RMSNormalization ScatterElements Softmax Split SplitToSequence "
     "QuantizeLinear DequantizeLinear Compress TensorScatter DFT "},
    {"axes", AttributeProto::INTS,
     "Resize ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
     "ReduceMean "
     "ReduceMin ReduceProd ReduceSumSquare CenterCropPad "
     "MeanVarianceNormalization "},
    {"keepdims", AttributeProto::INT,
     "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
     "ReduceMin ReduceProd ReduceSum ReduceSumSquare SplitToSequence "},
    {"noop_with_empty_axes", AttributeProto::INT,
     "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceSum "},
    {"perm", AttributeProto::INTS, "Transpose "},
    {"to", AttributeProto::INT, "Cast BitCast "},
    {"saturate", AttributeProto::INT, "Cast CastLike QuantizeLinear "},
    {"round_mode", AttributeProto::STRING, "Cast CastLike "},
    {"allowzero", AttributeProto::INT, "Reshape "},
    {"alpha", AttributeProto::FLOAT,
     "Celu Elu Gemm HardSigmoid LRN LeakyRelu Selu Swish ThresholdedRelu Adam "
     "Momentum SwiGLU "},
    {"gamma", AttributeProto::FLOAT, "Selu "},
    {"lambd", AttributeProto::FLOAT, "Shrink "},
    {"bias", AttributeProto::FLOAT, "LRN Shrink "},
    {"size", AttributeProto::INT, "LRN "},
    {"p", AttributeProto::INT, "LpNormalization "},
    {"k", AttributeProto::INT, "EyeLike "},
    {"dtype", AttributeProto::INT, "EyeLike "},
    {"blocksize", AttributeProto::INT, "DepthToSpace SpaceToDepth "},
    {"coordinate_transformation_mode", AttributeProto::STRING,
     "Resize RoiAlign "},
    {"nearest_mode", AttributeProto::STRING, "Resize "},
    {"keep_aspect_ratio_policy", AttributeProto::STRING, "Resize "},
    {"cubic_coeff_a", AttributeProto::FLOAT, "Resize "},
    {"extrapolation_value", AttributeProto::FLOAT, "Resize "},
    {"exclude_outside", AttributeProto::INT, "Resize "},
    {"antialias", AttributeProto::INT, "Resize "},
    {"scales", AttributeProto::FLOATS, "Upsample "},
    {"group", AttributeProto::INT,
     "Conv ConvTranspose ConvInteger DeformConv QLinearConv "},
    {"kernel_shape", AttributeProto::INTS,
     "AveragePool Conv ConvTranspose MaxPool ConvInteger DeformConv "
     "QLinearConv "},
    {"strides", AttributeProto::INTS,
     "AveragePool Conv ConvTranspose MaxPool ConvInteger DeformConv "
     "QLinearConv "},
    {"dilations", AttributeProto::INTS,
     "AveragePool Conv ConvTranspose MaxPool ConvInteger DeformConv "
     "QLinearConv "},
    {"pads", AttributeProto::INTS,
     "AveragePool Conv ConvTranspose MaxPool ConvInteger DeformConv "
     "QLinearConv "},
    {"auto_pad", AttributeProto::STRING,
     "AveragePool Conv ConvTranspose MaxPool ConvInteger DeformConv "
     "QLinearConv "},
    {"output_padding", AttributeProto::INTS, "ConvTranspose "},
    {"output_shape", AttributeProto::INTS, "ConvTranspose "},
    {"ceil_mode", AttributeProto::INT, "AveragePool MaxPool "},
    {"count_include_pad", AttributeProto::INT, "AveragePool "},
    {"storage_order", AttributeProto::INT, "MaxPool "},
    {"num_groups", AttributeProto::INT, "GroupNormalization "},
    {"momentum", AttributeProto::FLOAT, "BatchNormalization "},
    {"training_mode", AttributeProto::INT, "BatchNormalization "},
    {"equation", AttributeProto::STRING, "Einsum "},
    {"beta", AttributeProto::FLOAT, "Gemm HardSigmoid Adam Momentum "},
    {"transA", AttributeProto::INT, "Gemm "},
    {"transB", AttributeProto::INT, "Gemm "},
    {"epsilon", AttributeProto::FLOAT,
     "BatchNormalization GroupNormalization InstanceNormalization "
     "LayerNormalization RMSNormalization "},
    {"stash_type", AttributeProto::INT, "LayerNormalization RMSNormalization "},
    {"exclusive", AttributeProto::INT, "CumSum CumProd "},
    {"reverse", AttributeProto::INT, "CumSum CumProd "},
    {"batch_dims", AttributeProto::INT, "GatherND "},
    {"upper", AttributeProto::INT, "Trilu "},
    {"fmod", AttributeProto::INT, "Mod "},
    {"num_outputs", AttributeProto::INT, "Split "},
    {"new_axis", AttributeProto::INT, "ConcatFromSequence "},
    {"is_causal", AttributeProto::INT, "Attention "},
    {"q_num_heads", AttributeProto::INT, "Attention LinearAttention "},
    {"kv_num_heads", AttributeProto::INT, "Attention LinearAttention "},
    {"qk_matmul_output_mode", AttributeProto::INT, "Attention "},
    {"softmax_precision", AttributeProto::INT, "Attention "},
    {"scale", AttributeProto::FLOAT, "Attention LinearAttention "},
    {"softcap", AttributeProto::FLOAT, "Attention "},
    {"interleaved", AttributeProto::INT, "RotaryEmbedding "},
    {"num_heads", AttributeProto::INT, "RotaryEmbedding "},
    {"rotary_embedding_dim", AttributeProto::INT, "RotaryEmbedding "},
    {"detect_positive", AttributeProto::INT, "IsInf "},
    {"detect_negative", AttributeProto::INT, "IsInf "},
    {"ignore_index", AttributeProto::INT,
     "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss "},
    {"reduction", AttributeProto::STRING,
     "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss "},
    {"approximate", AttributeProto::STRING, "Gelu "},
    {"mode", AttributeProto::STRING,
     "DepthToSpace Pad Resize Upsample GridSample Momentum RoiAlign "
     "SpaceToDepth TensorScatter "},
    {"seed", AttributeProto::INT, "Dropout "},
    {"start", AttributeProto::INT, "Shape "},
    {"end", AttributeProto::INT, "Shape "},
    {"direction", AttributeProto::STRING, "BitShift GRU LSTM RNN "},
    {"hidden_size", AttributeProto::INT, "GRU LSTM RNN "},
    {"layout", AttributeProto::INT, "GRU LSTM RNN "},
    {"clip", AttributeProto::FLOAT, "GRU LSTM RNN "},
    {"activations", AttributeProto::STRINGS, "GRU LSTM RNN "},
    {"activation_alpha", AttributeProto::FLOATS, "GRU LSTM RNN "},
    {"input_forget", AttributeProto::INT, "LSTM "},
    {"linear_before_reset", AttributeProto::INT, "GRU "},
    {"align_corners", AttributeProto::INT, "AffineGrid GridSample "},
    {"padding_mode", AttributeProto::STRING, "GridSample "},
    {"output_height", AttributeProto::INT, "RoiAlign "},
    {"output_width", AttributeProto::INT, "RoiAlign "},
    {"sampling_ratio", AttributeProto::INT, "RoiAlign "},
    {"offset_group", AttributeProto::INT, "DeformConv "},
    {"block_size", AttributeProto::INT, "DequantizeLinear QuantizeLinear "},
    {"output_dtype", AttributeProto::INT, "DequantizeLinear QuantizeLinear "},
    {"precision", AttributeProto::INT, "QuantizeLinear "},
    {"batch_axis", AttributeProto::INT, "ReverseSequence "},
    {"time_axis", AttributeProto::INT, "ReverseSequence "},
    {"inverse", AttributeProto::INT, "DFT "},
    {"onesided", AttributeProto::INT, "DFT STFT "},
    {"periodic", AttributeProto::INT,
     "BlackmanWindow HammingWindow HannWindow "},
    {"output_datatype", AttributeProto::INT,
     "BlackmanWindow HammingWindow HannWindow "},
    {"update_rule", AttributeProto::STRING, "LinearAttention "},
    {"activation", AttributeProto::STRING, "CausalConvWithState "},
    {"left_window_size", AttributeProto::INT, "Attention "},
    {"right_window_size", AttributeProto::INT, "Attention "},
    {"num_scan_inputs", AttributeProto::INT, "Scan "},
    {"scan_input_axes", AttributeProto::INTS, "Scan "},
    {"scan_output_axes", AttributeProto::INTS, "Scan "},
    {"scan_output_directions", AttributeProto::INTS, "Scan "},
    {"body", AttributeProto::GRAPH, "Loop Scan "},
    {"value", AttributeProto::TENSOR, "Constant ConstantOfShape "},
    {"value_int", AttributeProto::INT, "Constant "},
    {"value_ints", AttributeProto::INTS, "Constant "},
    {"value_float", AttributeProto::FLOAT, "Constant "},
    {"value_floats", AttributeProto::FLOATS, "Constant "},
    {"value_string", AttributeProto::STRING, "Constant "},
    {"then_branch", AttributeProto::GRAPH, "If "},
    {"else_branch", AttributeProto::GRAPH, "If "},
    {"unknown", AttributeProto::STRINGS, ""}};

constexpr const char *kStrings[] = {"reverse",
                                    "bidirectional",
                                    "LEFT",
                                    "RIGHT",
                                    "zeros",
                                    "border",
                                    "reflection",
                                    "circular",
                                    "gated",
                                    "delta",
                                    "silu",
                                    "half_pixel",
                                    "avg",
                                    "Sigmoid",
                                    "Affine",
                                    "mean",
                                    "sum",
                                    "none",
                                    "tanh",
                                    "constant",
                                    "reflect",
                                    "edge",
                                    "wrap",
                                    "both",
                                    "backward",
                                    "",
                                    "\xc3\xa9",
                                    "x",
                                    "nearest",
                                    "linear",
                                    "cubic",
                                    "asymmetric",
                                    "align_corners",
                                    "tf_crop_and_resize",
                                    "pytorch_half_pixel",
                                    "half_pixel_symmetric",
                                    "floor",
                                    "ceil",
                                    "round_prefer_ceil",
                                    "not_larger",
                                    "not_smaller",
                                    "CRD",
                                    "SAME_UPPER",
                                    "SAME_LOWER",
                                    "VALID",
                                    "ij,jk->ik",
                                    "...i->...",
                                    "ii"};
constexpr float kFloats[] = {0,
                             1,
                             -1,
                             0.5f,
                             2,
                             1e-5f,
                             3e38f,
                             1e-45f,
                             -0.0f,
                             1e9f,
                             __builtin_inff(),
                             __builtin_nanf("")};

} // namespace

int RandomModel::elementType() {
  static constexpr int kCommon[] = {
      TensorProto::FLOAT, TensorProto::INT64,   TensorProto::BOOL,
      TensorProto::FLOAT, TensorProto::FLOAT16, TensorProto::INT64,
      TensorProto::FLOAT, TensorProto::BFLOAT16};
  return source.rarely(24) ? static_cast<int>(source.below(28))
                           : source.pick(kCommon);
}

std::string RandomModel::newName() { return "v" + std::to_string(numNames++); }

std::string RandomModel::anyValue() {
  uint8_t at = source.byte();
  if (values.empty() || at > 250)
    return "";
  // Recent ones first: models are chains.
  return values[values.size() - 1 - at % values.size()];
}

void RandomModel::addInputs(onnx::GraphProto &graph) {
  for (size_t left = 1 + source.below(3); left > 0; --left) {
    onnx::ValueInfoProto &input = *graph.add_input();
    input.set_name(values.emplace_back(newName()));
    auto &type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(elementType());
    type.mutable_shape();
    static constexpr int64_t kSizes[] = {2, 3, 1, 4, 6, 2, 8, 0};
    for (size_t rank = source.below(5); rank > 0; --rank) {
      auto &dim = *type.mutable_shape()->add_dim();
      if (source.rarely(40))
        dim.set_dim_param(source.below(2) ? "batch" : "length");
      else if (source.rarely(4))
        dim.set_dim_value(source.integer());
      else
        dim.set_dim_value(source.pick(kSizes));
    }
  }
}

/// Small integers and floats as models hold them; any bits in other types.
void RandomModel::fillTensor(TensorProto &tensor) {
  int type = elementType();
  std::optional<unsigned> bits = onnxio::bitsOfElementType(type);
  if (!bits) {
    type = TensorProto::FLOAT;
    bits = 32;
  }
  tensor.set_data_type(type);
  size_t count = 1;
  for (size_t rank = source.below(4); rank > 0; --rank) {
    size_t size = source.below(5);
    tensor.add_dims(static_cast<int64_t>(size));
    count *= size;
  }
  if (type == TensorProto::INT64) {
    for (size_t i = 0; i < count; ++i)
      tensor.add_int64_data(source.integer());
  } else if (type == TensorProto::FLOAT) {
    for (size_t i = 0; i < count; ++i)
      tensor.add_float_data(source.pick(kFloats));
  }
  if (tensor.int64_data_size() + tensor.float_data_size() == 0)
    tensor.set_raw_data(source.bytes((count * *bits + 7) / 8));
}

void RandomModel::addInitializer(onnx::GraphProto &graph) {
  TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(values.emplace_back(newName()));
  fillTensor(tensor);
}

void RandomModel::fillSubgraph(onnx::GraphProto &graph, int depth,
                               bool hasInputs) {
  graph.set_name("branch");
  // What a branch defines is not seen outside of it.
  std::vector<std::string> outer = values;
  for (size_t left = hasInputs ? source.below(5) : 0; left > 0; --left)
    graph.add_input()->set_name(values.emplace_back(newName()));
  if (source.rarely(60))
    addInitializer(graph);
  for (size_t left = source.below(3); left > 0; --left)
    addNode(graph, depth + 1);
  for (size_t left = source.below(3); left > 0; --left)
    graph.add_output()->set_name(anyValue());
  values = std::move(outer);
}

void RandomModel::fillAttribute(AttributeProto &attribute, int depth) {
  switch (attribute.type()) {
  case AttributeProto::INT:
    attribute.set_i(attribute.name() == "to" ? elementType()
                                             : source.integer());
    break;
  case AttributeProto::FLOAT:
    attribute.set_f(source.pick(kFloats));
    break;
  case AttributeProto::STRING:
    attribute.set_s(source.pick(kStrings));
    break;
  case AttributeProto::INTS:
    for (size_t left = source.below(5); left > 0; --left)
      attribute.add_ints(source.integer());
    break;
  case AttributeProto::FLOATS:
    for (size_t left = source.below(5); left > 0; --left)
      attribute.add_floats(source.pick(kFloats));
    break;
  case AttributeProto::TENSOR:
    fillTensor(*attribute.mutable_t());
    break;
  case AttributeProto::GRAPH:
    fillSubgraph(*attribute.mutable_g(), depth, attribute.name() == "body");
    break;
  default:
    for (size_t left = 1 + source.below(6); left > 0; --left)
      attribute.add_strings(source.pick(kStrings));
  }
}

void RandomModel::addAttributes(onnx::NodeProto &node, int depth) {
  for (const AttributeRow &row : kAttributes) {
    bool isUser = (" " + row.users).str().find(" " + node.op_type() + " ") !=
                  std::string::npos;
    bool isGraph = row.type == AttributeProto::GRAPH;
    // A constant has one value.
    bool isValue = llvm::StringRef(row.name).starts_with("value");
    if (isUser ? !isGraph && !source.rarely(isValue ? 80 : 128) : true)
      continue;
    if (isGraph && depth > 1)
      continue;
    AttributeProto &attribute = *node.add_attribute();
    attribute.set_name(row.name);
    attribute.set_type(row.type);
    fillAttribute(attribute, depth);
  }
  if (!source.rarely(5))
    return;
  const AttributeRow &row = source.pick(kAttributes);
  AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(row.name);
  attribute.set_type(row.type == AttributeProto::GRAPH ? AttributeProto::INT
                                                       : row.type);
  fillAttribute(attribute, depth);
}

void RandomModel::addNode(onnx::GraphProto &graph, int depth) {
  llvm::ArrayRef<const import::OpRow *> rows = import::allOps();
  const import::OpRow &row = *rows[source.below(rows.size())];
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type(row.name.str());
  node.set_domain(row.domain.str());
  int most = row.maxOperands < 0 ? row.minOperands + 3 : row.maxOperands;
  int operands = row.minOperands;
  if (most > operands)
    operands += static_cast<int>(source.below(most - operands + 1));
  if (source.rarely(4))
    operands = static_cast<int>(source.below(8));
  for (int i = 0; i < operands; ++i)
    node.add_input(anyValue());
  addAttributes(node, depth);
  size_t results = source.rarely(60) ? source.below(5) : 1;
  for (size_t i = 0; i < results; ++i)
    node.add_output(newName());
  for (const std::string &name : node.output())
    values.push_back(name);
}

onnx::ModelProto RandomModel::build() {
  static constexpr int kOpsets[] = {18, 23, 13, 17, 28, 21, 14, 11, 25};
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(source.pick(kOpsets));
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("main");
  addInputs(graph);
  for (size_t left = source.below(5); left > 0; --left)
    addInitializer(graph);
  for (size_t left = 1 + source.below(8); left > 0; --left)
    addNode(graph, 0);
  for (size_t left = 1 + source.below(3); left > 0; --left) {
    onnx::ValueInfoProto &output = *graph.add_output();
    output.set_name(anyValue());
    if (output.name().empty())
      graph.mutable_output()->RemoveLast();
  }
  return model;
}
