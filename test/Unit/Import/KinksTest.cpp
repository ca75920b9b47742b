// What gradients are where a function has none: PyTorch's, row by row, through
// import (which reads the traced call), the recognition passes, the rules and
// the float64 evaluator. The numbers follow from each convention; PyTorch
// 2.13's own were compared with them.

#include "lib/Autodiff/Differentiate.h"
#include "lib/Driver/InitAll.h"
#include "lib/Evaluate/Interpreter.h"
#include "lib/Import/Import.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "test/Unit/Onnx/TestModel.h"

using namespace mlir;
using namespace accel;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A node that makes h0, h1, … in the order of the list, and the operator of
/// the call that it came from ("" for none).
struct Node {
  const char *op;
  std::vector<std::string> inputs;
  const char *call;
};

struct KinkCase {
  const char *name;
  std::vector<Node> nodes;
  std::vector<float> x;
  std::vector<double> gradient; ///< of the sum of the last node's result
};

const char *const kNorm = "aten.linalg_vector_norm.default";

std::vector<Node> norm(const char *inner, const char *outer) {
  return {{"Abs", {"x"}, kNorm},
          {"Pow", {"h0", inner}, kNorm},
          {"ReduceSum", {"h1", "axis"}, kNorm},
          {"Pow", {"h2", outer}, kNorm}};
}
std::vector<Node> root(const char *square, const char *sum) {
  return {{"Mul", {"x", "x"}, square},
          {"ReduceSum", {"h0", "axis"}, sum},
          {"Sqrt", {"h1"}, "aten.sqrt.default"}};
}

// clang-format off
const KinkCase kCases[] = {
  // A norm of 0 has gradient 0; a root of 0 that the user wrote has not.
  {"norm", {{"ReduceL2", {"x", "axis"}, kNorm}}, {0, 0}, {0, 0}},
  {"norm_elsewhere", {{"ReduceL2", {"x", "axis"}, kNorm}}, {3, 4}, {0.6, 0.8}},
  {"norm_of_other_exporters", {{"ReduceL2", {"x", "axis"}, ""}}, {0, 0}, {0, 0}},
  {"norm_3", norm("three", "third"), {0, 0}, {0, 0}},
  {"norm_3_elsewhere", norm("three", "third"), {0, 2}, {0, 1}},
  {"norm_half", norm("half", "two"), {0, 2}, {0, 1}},
  {"norm_half_of_zeros", norm("half", "two"), {0, 0}, {0, 0}},
  {"norm_infinity", {{"Abs", {"x"}, kNorm}, {"ReduceMax", {"h0", "axis"}, kNorm}}, {1, -1}, {0.5, -0.5}},
  {"norm_infinity_of_zeros", {{"Abs", {"x"}, kNorm}, {"ReduceMax", {"h0", "axis"}, kNorm}}, {0, 0}, {0, 0}},
  {"norm_1", {{"ReduceL1", {"x", "axis"}, kNorm}}, {-1, 0, 2}, {-1, 0, 1}},
  {"normalize", {{"ReduceL2", {"x", "axis"}, kNorm}, {"Clip", {"h0", "half"}, "aten.clamp_min.default"},
                 {"Div", {"x", "h1"}, "aten.div.Tensor"}}, {0, 0}, {2, 2}},
  {"sqrt", {{"Sqrt", {"x"}, "aten.sqrt.default"}}, {0, 1}, {kInfinity, 0.5}},
  {"root_of_a_sum", root("aten.mul.Tensor", "aten.sum.dim_IntList"), {0, 0}, {kNaN, kNaN}},
  {"standard_deviation", root("prims.var.default", "prims.var.default"), {0, 0}, {0, 0}},
  // One-sided slopes.
  {"abs", {{"Abs", {"x"}, "aten.abs.default"}}, {-1, 0, 1}, {-1, 0, 1}},
  {"sign", {{"Sign", {"x"}, "aten.sign.default"}}, {-1, 0, 1}, {0, 0, 0}},
  {"relu", {{"Relu", {"x"}, "aten.relu.default"}}, {-1, 0, 1}, {0, 0, 1}},
  {"leaky_relu", {{"LeakyRelu", {"x"}, "aten.leaky_relu.default"}}, {-1, 0, 1}, {0.01f, 0.01f, 1}},
  {"hardswish", {{"HardSwish", {"x"}, "aten.hardswish.default"}}, {-4, -3, 0, 3, 4}, {0, 0, 0.5, 1, 1}},
  {"hardsigmoid", {{"HardSigmoid", {"x"}, "aten.hardsigmoid.default"}}, {-3, -2.5, 0, 2.5, 3}, {0, 0, 0.2f, 0, 0}},
  // clamp hands gradients on at its bounds, hardtanh and relu6 do not.
  {"clamp", {{"Clip", {"x", "zero", "one"}, "aten.clamp.Tensor"}}, {-1, 0, 0.5, 1, 2}, {0, 1, 1, 1, 0}},
  {"clamp_of_other_exporters", {{"Clip", {"x", "zero", "one"}, ""}}, {-1, 0, 0.5, 1, 2}, {0, 1, 1, 1, 0}},
  {"clamp_unoptimised", {{"Max", {"x", "zero"}, "aten.clamp.Tensor"}, {"Min", {"h0", "one"}, "aten.clamp.Tensor"}},
   {-1, 0, 0.5, 1, 2}, {0, 1, 1, 1, 0}},
  {"clamp_min", {{"Clip", {"x", "zero"}, "aten.clamp_min.default"}}, {-1, 0, 1}, {0, 1, 1}},
  {"clamp_min_of_a_tensor", {{"Max", {"x", "zero"}, "aten.clamp_min.Tensor"}}, {-1, 0, 1}, {0, 1, 1}},
  {"clamp_max_of_a_tensor", {{"Min", {"x", "zero"}, "aten.clamp_max.Tensor"}}, {-1, 0, 1}, {1, 1, 0}},
  {"hardtanh", {{"Clip", {"x", "minus_one", "one"}, "aten.hardtanh.default"}}, {-2, -1, 0, 1, 2}, {0, 0, 1, 0, 0}},
  {"relu6", {{"Clip", {"x", "zero", "six"}, "aten.relu6.default"}}, {-1, 0, 1, 6, 7}, {0, 0, 1, 0, 0}},
  // Ties: halves between two, even shares among all, or the first.
  {"maximum", {{"Max", {"x", "one"}, "aten.maximum.default"}}, {1, 2, 0}, {0.5, 1, 0}},
  {"minimum", {{"Min", {"x", "one"}, "aten.minimum.default"}}, {1, 2, 0}, {0.5, 0, 1}},
  {"amax", {{"ReduceMax", {"x", "axis"}, "aten.amax.default"}}, {1, 1, 0}, {0.5, 0.5, 0}},
  {"max", {{"ReduceMax", {"x"}, "aten.max.default"}}, {1, 1, 0}, {0.5, 0.5, 0}},
  {"max_by_index", {{"ReduceMax", {"x", "axis"}, "aten.max.dim"}}, {0, 1, 1}, {0, 1, 0}},
  {"min_by_index", {{"ReduceMin", {"x", "axis"}, "aten.min.dim"}}, {1, 0, 0}, {0, 1, 0}},
  {"prod", {{"ReduceProd", {"x", "axis"}, "aten.prod.dim_int"}}, {0, 0, 2}, {0, 0, 0}},
  {"prod_with_a_zero", {{"ReduceProd", {"x", "axis"}, "aten.prod.dim_int"}}, {0, 3, 2}, {6, 0, 0}},
  // Powers.
  {"power_0", {{"Pow", {"x", "zero"}, "aten.pow.Tensor_Scalar"}}, {0, 1}, {0, 0}},
  {"power_1", {{"Pow", {"x", "one"}, "aten.pow.Tensor_Scalar"}}, {0, 1}, {1, 1}},
  {"power_half", {{"Pow", {"x", "half"}, "aten.pow.Tensor_Scalar"}}, {0, 1}, {kInfinity, 0.5}},
  {"power_of_0", {{"Pow", {"zero", "x"}, "aten.pow.Scalar"}}, {0, 2, -1}, {0, 0, -kInfinity}},
  {"power_of_2", {{"Pow", {"two", "x"}, "aten.pow.Scalar"}}, {0, 1}, {M_LN2, 2 * M_LN2}},
  // Logarithms of what is 0 or infinite by itself.
  {"log_sigmoid", {{"Sigmoid", {"x"}, "aten.log_sigmoid.default"}, {"Log", {"h0"}, "aten.log_sigmoid.default"}},
   {-1000, 0, 1000}, {1, 0.5, 0}},
  {"softplus", {{"Softplus", {"x"}, "aten.softplus.default"}}, {-1000, 0, 1000}, {0, 0.5, 1}},
  {"logaddexp", {{"Neg", {"x"}, "aten.neg.default"}, {"Exp", {"x"}, "aten.logaddexp.default"},
                 {"Exp", {"h0"}, "aten.logaddexp.default"}, {"Add", {"h1", "h2"}, "aten.logaddexp.default"},
                 {"Log", {"h3"}, "aten.logaddexp.default"}}, {-1000, 0, 1000}, {-1, 0, 1}},
};
// clang-format on

void PrintTo(const KinkCase &row, std::ostream *stream) { *stream << row.name; }

onnx::ModelProto makeModel(const KinkCase &row) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(20);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("kinks");
  int64_t size = row.x.size();
  onnxio::addValue(graph.mutable_input(), "x", {size});
  std::string last;
  for (auto [index, node] : llvm::enumerate(row.nodes)) {
    last = "h" + std::to_string(index);
    onnx::NodeProto *made =
        onnxio::addNode(graph, node.op, node.inputs, {last});
    if (!*node.call)
      continue;
    auto *call = made->add_metadata_props();
    call->set_key("pkg.torch.onnx.fx_node");
    call->set_value("%c : [num_users=1] = call_function[target=torch.ops." +
                    std::string(node.call) + "](args = (%x,), kwargs = {})");
  }
  onnx::ValueInfoProto *result = graph.add_output();
  result->set_name(last);
  result->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  for (auto [name, value] :
       std::initializer_list<std::pair<const char *, float>>{
           {"minus_one", -1.f},
           {"zero", 0.f},
           {"third", 1 / 3.f},
           {"half", 0.5f},
           {"one", 1.f},
           {"two", 2.f},
           {"three", 3.f},
           {"six", 6.f}})
    onnxio::addInitializer(graph, name, {}, {value});
  onnx::TensorProto *axis = graph.add_initializer();
  axis->set_name("axis");
  axis->set_data_type(onnx::TensorProto::INT64);
  axis->add_dims(1);
  axis->add_int64_data(-1);
  return model;
}

class Kinks : public ::testing::TestWithParam<KinkCase> {};
} // namespace

TEST_P(Kinks, HavePyTorchsGradient) {
  const KinkCase &row = GetParam();
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  onnxio::TestFolder folder;
  std::string path = folder.write("m.onnx", makeModel(row).SerializeAsString());
  auto file = onnxio::OnnxFile::load(path, &context);
  ASSERT_TRUE(succeeded(file));
  auto table = onnxio::identifyParameters(**file);
  ASSERT_TRUE(succeeded(table));
  import::ImportOptions options;
  options.f64 = true;
  OwningOpRef<ModuleOp> module =
      import::importOnnx(**file, *table, options, &context);
  ASSERT_TRUE(module);
  PassManager pm(&context);
  transforms::buildImportPipeline(pm);
  ASSERT_TRUE(succeeded(pm.run(*module)));

  auto function = *module->getOps<func::FuncOp>().begin();
  auto exit = cast<func::ReturnOp>(function.front().getTerminator());
  OpBuilder builder(exit);
  Value sum = exit.getOperand(0);
  auto type = cast<RankedTensorType>(sum.getType());
  if (type.getRank() > 0)
    sum = nn::ReduceOp::create(
        builder, exit.getLoc(), nn::ReductionKind::sum, sum,
        llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())),
        /*first=*/false);
  auto gradients =
      autodiff::differentiate(builder, sum, {function.getArgument(0)});
  ASSERT_TRUE(succeeded(gradients));
  exit->setOperands(*gradients);
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(),
                                                   exit.getOperandTypes()));

  Tensor x(cast<RankedTensorType>(function.getArgument(0).getType()));
  llvm::copy(row.x, x.mutableFloats().begin());
  std::string input =
      function.getArgAttrOfType<StringAttr>(0, "nn.input").str();
  evaluate::TensorsByName found;
  ASSERT_TRUE(
      succeeded(evaluate::evaluateModule(*module, {{input, x}}, {}, found)));
  ArrayRef<double> gradient = found.begin()->second.floats();
  ASSERT_EQ(gradient.size(), row.gradient.size());
  for (auto [i, expected] : llvm::enumerate(row.gradient)) {
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(gradient[i])) << gradient[i] << " at " << row.x[i];
    else if (std::isinf(expected))
      EXPECT_EQ(gradient[i], expected) << "at " << row.x[i];
    else
      EXPECT_NEAR(gradient[i], expected, 1e-6) << "at " << row.x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Kinks, ::testing::ValuesIn(kCases),
                         [](const auto &info) { return info.param.name; });
