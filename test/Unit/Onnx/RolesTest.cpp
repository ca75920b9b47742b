// The tables of lib/Onnx/ParameterRoles.cpp, a line for each row: which operand
// of which node an argument of a traced call becomes.
#include "TracedModel.h"

using namespace accel::onnxio;
using testing::ElementsAreArray;

namespace {
class RolesTest : public TracedTest {
protected:
  /// Arguments of which number `place` is `value`, the others the user's input.
  static std::string argumentsWith(unsigned place, const std::string &value) {
    std::string text;
    for (unsigned i = 0; i < place; ++i)
      text += "%x, ";
    return text + value;
  }
  /// A node of which operand `operand` is the initializer `val_1`.
  static onnx::NodeProto *addReader(TracedModel &traced, const char *op,
                                    int operand, unsigned rank,
                                    const std::string &text) {
    std::vector<std::string> inputs(std::max(operand + 1, 2), "x");
    inputs[operand] = "val_1";
    static const std::vector<int64_t> sizes{2, 3, 4, 5};
    traced.hold("val_1", {sizes.begin(), sizes.begin() + rank});
    return traced.add(op, inputs, text);
  }
  /// The permutation with which the operand is parameter `w`; "none" if it is
  /// not.
  std::string roleOf(const TracedModel &traced, int operand) {
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    EXPECT_TRUE(succeeded(table));
    const ParameterUse *use = table->useAt(node(0), operand);
    if (!use)
      return "none";
    EXPECT_EQ(table->parameters[use->parameter].name, "w");
    EXPECT_TRUE(use->steps.empty());
    std::string text;
    for (int64_t each : use->permutation)
      text += std::to_string(each);
    return text;
  }
};

struct RoleLine {
  const char *call, *op;
  int operand;
  unsigned argument;
  const char *keyword;
  unsigned rank;
  /// The permutation of the operand.
  const char *role;
  /// Set to 1 on the node.
  const char *attribute = "";
};
} // namespace

static const RoleLine lines[] = {
    {"linear", "MatMul", 1, 1, "weight", 2, "10"},
    {"linear", "Gemm", 1, 1, "weight", 2, "10"},
    {"linear", "Gemm", 1, 1, "weight", 2, "01", "transB"},
    {"linear", "Transpose", 0, 1, "weight", 2, "01"},
    {"linear", "Add", 0, 2, "bias", 1, "0"},
    {"linear", "Add", 1, 2, "bias", 1, "0"},
    {"linear", "Gemm", 2, 2, "bias", 1, "0"},
    {"addmm", "Gemm", 1, 2, "mat2", 2, "01"},
    {"addmm", "Gemm", 1, 2, "mat2", 2, "10", "transB"},
    {"addmm", "Gemm", 0, 1, "mat1", 2, "01"},
    {"addmm", "Gemm", 0, 1, "mat1", 2, "10", "transA"},
    {"addmm", "MatMul", 1, 2, "mat2", 2, "01"},
    {"addmm", "Transpose", 0, 2, "mat2", 2, "01"},
    {"addmm", "Add", 0, 0, "", 1, "0"},
    {"addmm", "Add", 1, 0, "", 2, "01"},
    {"addmm", "Gemm", 2, 0, "", 1, "0"},
    {"mm", "MatMul", 0, 0, "", 2, "01"},
    {"mm", "MatMul", 1, 1, "mat2", 2, "01"},
    {"mm", "Gemm", 0, 0, "", 2, "01"},
    {"mm", "Gemm", 0, 0, "", 2, "10", "transA"},
    {"mm", "Gemm", 1, 1, "mat2", 2, "01"},
    {"mm", "Gemm", 1, 1, "mat2", 2, "10", "transB"},
    {"matmul", "MatMul", 0, 0, "", 3, "012"},
    {"matmul", "MatMul", 1, 1, "other", 2, "01"},
    {"matmul", "Gemm", 1, 1, "other", 2, "01"},
    {"matmul", "Gemm", 1, 1, "other", 2, "10", "transB"},
    {"bmm", "MatMul", 0, 0, "", 3, "012"},
    {"bmm", "MatMul", 1, 1, "mat2", 3, "012"},
    {"embedding", "Gather", 0, 0, "weight", 2, "01"},
    {"layer_norm", "LayerNormalization", 1, 2, "weight", 1, "0"},
    {"native_layer_norm", "LayerNormalization", 2, 3, "bias", 2, "01"},
    {"layer_norm", "Mul", 0, 2, "weight", 1, "0"},
    {"layer_norm", "Mul", 1, 2, "weight", 1, "0"},
    {"layer_norm", "Add", 1, 3, "bias", 1, "0"},
    {"group_norm", "GroupNormalization", 1, 2, "weight", 1, "0"},
    {"native_group_norm", "GroupNormalization", 2, 3, "bias", 1, "0"},
    {"group_norm", "Mul", 1, 2, "weight", 1, "0"},
    {"group_norm", "Add", 1, 3, "bias", 1, "0"},
    {"batch_norm", "BatchNormalization", 1, 1, "weight", 1, "0"},
    {"_native_batch_norm_legit_no_training", "BatchNormalization", 2, 2, "bias",
     1, "0"},
    {"batch_norm", "BatchNormalization", 3, 3, "", 1, "0"},
    {"batch_norm", "BatchNormalization", 4, 4, "", 1, "0"},
    {"rms_norm", "RMSNormalization", 1, 2, "weight", 1, "0"},
    {"_fused_rms_norm", "SimplifiedLayerNormalization", 1, 2, "weight", 1, "0"},
    {"rms_norm", "Mul", 1, 2, "weight", 2, "01"},
    {"conv2d", "Conv", 1, 1, "weight", 4, "0123"},
    {"conv1d", "Conv", 2, 2, "bias", 1, "0"},
    {"conv_transpose1d", "ConvTranspose", 1, 1, "weight", 3, "012"},
    {"convolution", "ConvTranspose", 2, 2, "bias", 1, "0"},
    // By the place of an elementwise call's operand.
    {"add", "Add", 0, 0, "", 2, "01"},
    {"add", "Add", 1, 1, "other", 1, "0"},
    {"sub", "Sub", 1, 1, "other", 1, "0"},
    {"mul", "Mul", 1, 1, "other", 1, "0"},
    {"div", "Div", 1, 1, "other", 1, "0"},
    {"maximum", "Max", 1, 1, "other", 1, "0"},
    {"minimum", "Min", 1, 1, "other", 1, "0"},
    {"pow", "Pow", 1, 1, "", 1, "0"},
};

static std::string describe(const RoleLine &line) {
  return std::string(line.call) + " -> " + line.op + " " +
         std::to_string(line.operand) + " " + line.attribute;
}

TEST_F(RolesTest, anOperandIsTheArgumentOfItsRow) {
  for (const RoleLine &line : lines) {
    SCOPED_TRACE(describe(line));
    std::string op = std::string("aten.") + line.call, name = line.keyword;
    std::vector<std::string> calls{
        call("r", op, argumentsWith(line.argument, "%p_w"))};
    if (!name.empty())
      calls.push_back(
          call("r", op, line.argument ? "%x" : "", name + ": %p_w"));
    for (const std::string &text : calls) {
      TracedModel traced({"w"});
      onnx::NodeProto *reader =
          addReader(traced, line.op, line.operand, line.rank, text);
      if (*line.attribute) {
        onnx::AttributeProto *attribute = reader->add_attribute();
        attribute->set_name(line.attribute);
        attribute->set_type(onnx::AttributeProto::INT);
        attribute->set_i(1);
      }
      EXPECT_EQ(roleOf(traced, line.operand), line.role);
    }
    // The same operand is nothing where another argument is the parameter.
    TracedModel other({"w"});
    addReader(other, line.op, line.operand, line.rank,
              call("r", op, argumentsWith(line.argument, "%x, %p_w")));
    EXPECT_EQ(roleOf(other, line.operand), "none");
  }
}

TEST_F(RolesTest, whatCannotBeTheArgumentIsNot) {
  const RoleLine none[] = {
      // Another rank than the argument has.
      {"linear", "MatMul", 1, 1, "", 3, ""},
      {"linear", "Gemm", 1, 1, "", 3, ""},
      {"linear", "Transpose", 0, 1, "", 3, ""},
      {"linear", "Add", 1, 2, "", 2, ""},
      {"linear", "Gemm", 2, 2, "", 2, ""},
      {"addmm", "Gemm", 1, 2, "", 1, ""},
      {"addmm", "Gemm", 0, 1, "", 1, ""},
      {"addmm", "MatMul", 1, 2, "", 3, ""},
      {"addmm", "Transpose", 0, 2, "", 3, ""},
      {"mm", "MatMul", 0, 0, "", 3, ""},
      {"mm", "MatMul", 1, 1, "", 3, ""},
      {"mm", "Gemm", 0, 0, "", 3, ""},
      {"mm", "Gemm", 1, 1, "", 3, ""},
      {"matmul", "Gemm", 1, 1, "", 3, ""},
      {"bmm", "MatMul", 0, 0, "", 2, ""},
      {"bmm", "MatMul", 1, 1, "", 2, ""},
      {"embedding", "Gather", 0, 0, "", 3, ""},
      {"group_norm", "GroupNormalization", 1, 2, "", 2, ""},
      {"group_norm", "Mul", 1, 2, "", 3, ""},
      {"batch_norm", "BatchNormalization", 1, 1, "", 2, ""},
      {"conv2d", "Conv", 2, 2, "", 2, ""},
      // Another operator or place than the table has.
      {"linear", "Mul", 1, 1, "", 2, ""},
      {"embedding", "Gather", 1, 0, "", 2, ""},
      {"add", "Mul", 1, 1, "", 1, ""},
      {"relu", "Relu", 0, 0, "", 1, ""},
      // An argument that the call has not.
      {"batch_norm", "BatchNormalization", 3, 0, "", 1, ""},
  };
  for (const RoleLine &line : none) {
    SCOPED_TRACE(describe(line));
    TracedModel traced({"w"});
    addReader(traced, line.op, line.operand, line.rank,
              call("r", std::string("aten.") + line.call,
                   argumentsWith(line.argument, "%p_w")));
    EXPECT_EQ(roleOf(traced, line.operand), "none");
  }
}

/// Only the second operand of an elementwise call has a keyword.
/// What is indexed is stored with the indexed dimensions first.
TEST_F(RolesTest, whatIsIndexedIsTheFirstArgument) {
  const struct {
    const char *indices;
    unsigned rank;
    const char *role;
  } indexed[] = {
      {"[%i]", 3, "012"},
      {"[%i, %j]", 3, "012"},
      {"[%i, None]", 3, "012"},
      {"[None, %i]", 2, "10"},
      // A mask of two dimensions would be moved to another place.
      {"[None, %i]", 3, "none"},
      {"[%i, %i, %i]", 2, "none"},
      {"%i", 3, "none"},
  };
  for (const auto &line : indexed) {
    SCOPED_TRACE(line.indices);
    TracedModel traced({"w"});
    addReader(traced, "GatherND", 0, line.rank,
              call("r", "aten.index", std::string("%p_w, ") + line.indices));
    EXPECT_EQ(roleOf(traced, 0), line.role);
  }
}

TEST_F(RolesTest, theFirstTermIsNotTheOther) {
  for (int operand : {0, 1}) {
    TracedModel traced({"w"});
    addReader(traced, "Add", operand, 1,
              call("r", "aten.add", "", "self: %x, other: %p_w"));
    EXPECT_EQ(roleOf(traced, operand), operand ? "0" : "none");
  }
}

/// With `alpha` the second term is not the argument, unless it is 1.
TEST_F(RolesTest, theSecondTermOfAScaledSumIsNotTheArgument) {
  for (auto [alpha, role] : {std::pair("1", "0"), std::pair("2", "none")}) {
    TracedModel traced({"w"});
    addReader(
        traced, "Add", 1, 1,
        call("r", "aten.add", "%x, %p_w", std::string("alpha: ") + alpha));
    EXPECT_EQ(roleOf(traced, 1), role);
  }
  TracedModel first({"w"});
  addReader(first, "Add", 0, 1, call("r", "aten.add", "%p_w, %x", "alpha: 2"));
  EXPECT_EQ(roleOf(first, 0), "0");
}

/// A bias that is an argument and no operand was zero; `operand` is where it is
/// put back, -2: nowhere.
TEST_F(RolesTest, aRemovedBiasIsPutBackWhereItsRowSays) {
  struct Bias {
    const char *call, *op;
    unsigned argument;
    const char *keyword;
    int operand;
    std::vector<int64_t> weight;
  } all[] = {
      {"linear", "MatMul", 2, "bias", -1, {2, 3}},
      {"linear", "Gemm", 2, "bias", 2, {2, 3}},
      {"addmm", "MatMul", 0, "", -1, {2, 3}},
      {"addmm", "Gemm", 0, "", 2, {2, 3}},
      {"layer_norm", "LayerNormalization", 3, "bias", 2, {3}},
      {"conv2d", "Conv", 2, "bias", 2, {3, 2, 1, 1}},
      {"conv_transpose2d", "ConvTranspose", 2, "bias", 2, {2, 3, 1, 1}},
      {"group_norm", "GroupNormalization", 3, "bias", -2, {3}},
      {"batch_norm", "BatchNormalization", 2, "bias", -2, {3}},
      {"matmul", "MatMul", 2, "bias", -2, {2, 3}},
      {"linear", "Mul", 2, "bias", -2, {2, 3}},
      {"linear", "Add", 2, "bias", -2, {2, 3}},
      {"layer_norm", "MatMul", 3, "bias", -2, {2, 3}},
  };
  for (const Bias &bias : all) {
    SCOPED_TRACE(std::string(bias.call) + " -> " + bias.op);
    std::string op = std::string("aten.") + bias.call, name = bias.keyword;
    std::vector<std::string> calls{
        call("r", op, argumentsWith(bias.argument, "%p_b"))};
    if (!name.empty())
      calls.push_back(call("r", op, "%x", name + ": %p_b"));
    for (const std::string &text : calls) {
      TracedModel traced({"b"});
      traced.hold("val_1", bias.weight);
      traced.add(bias.op, {"x", "val_1"}, text);
      mlir::FailureOr<ParameterTable> table = identify(traced.model);
      ASSERT_TRUE(succeeded(table));
      EXPECT_EQ(table->restored.size(), bias.operand == -2 ? 0u : 1u);
      if (bias.operand == -2 || table->restored.empty())
        continue;
      EXPECT_EQ(table->restored[0].node, &node(0));
      EXPECT_EQ(table->restored[0].operand, bias.operand);
      EXPECT_EQ(table->parameters[0].kind, ParameterKind::Removed);
      EXPECT_THAT(table->parameters[0].shape, ElementsAreArray({3}));
      EXPECT_TRUE(table->doubts.empty());
    }
  }
}
