// The rules of lib/Onnx/ParametersByCall.cpp: which operands are which
// parameter, by place, by name, or computed again; what was merged with a
// parameter and is none; and where a removed bias is put back. The tables of
// roles and steps: RolesTest.cpp, RestoreFoldedTest.cpp.
#include "TracedModel.h"

using namespace accel::onnxio;
using testing::ElementsAre;
using testing::ElementsAreArray;

namespace {
class ParametersByCallTest : public TracedTest {
protected:
  /// The parameter that an operand of node `index` is, by name; empty if none.
  std::string useOf(const ParameterTable &table, int index, unsigned operand) {
    const ParameterUse *use = table.useAt(node(index), operand);
    return use ? table.parameters[use->parameter].name : "";
  }
  /// Expects that operand 1 of the last node is that parameter.
  void expectUse(const TracedModel &traced, const std::string &parameter) {
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    int last = traced.model.graph().node_size() - 1;
    EXPECT_EQ(useOf(*table, last, 1), parameter);
  }
};

const char kBuffer[] = "b_m: BUFFER target='m' persistent=True\n";
const char kConstant[] = "c_k: CONSTANT_TENSOR target='k'\n";
} // namespace

//===-- Files and tensors of which names tell -----------------------------===//

TEST_F(ParametersByCallTest, withoutACallTheNameDecides) {
  TracedModel traced({"w"});
  traced.use("w");
  addNode(traced.graph(), "Sub", {"x", "w"}, {"s"});
  expectUse(traced, "w");
}

TEST_F(ParametersByCallTest, whereNoOptimizerWasTheNameDecides) {
  for (bool isRaw : {false, true}) {
    TracedModel traced({"w"});
    if (isRaw)
      addNode(traced.graph(), "Constant", {}, {"c"});
    traced.use("w");
    traced.add("Mul", {"x", "w"}, call("r", "aten.mul", "%x, 1.0"));
    expectUse(traced, isRaw ? "w" : "");
  }
  // Without the name the place does.
  TracedModel renamed({"w"});
  addNode(renamed.graph(), "Constant", {}, {"c"});
  renamed.hold("val_1", {2, 3});
  addNode(renamed.graph(), "Sub", {"x", "val_1"}, {"s"});
  renamed.add("Mul", {"x", "val_1"}, call("r", "aten.mul", "%x, %p_w"));
  expectUse(renamed, "w");
}

TEST_F(ParametersByCallTest, integersAreWhatTheirNameSays) {
  auto integers = [](const std::string &name, const std::string &argument) {
    TracedModel traced({"w", "k"});
    traced.use("w");
    onnx::TensorProto *tensor = traced.graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(1);
    tensor->set_raw_data(std::string(8, '\1'));
    traced.add("Mul", {"x", name}, call("r", "aten.mul", "%x, " + argument));
    return traced;
  };
  expectUse(integers("k", "1"), "k");
  expectUse(integers("val_1", "%p_k"), "");
}

//===-- What was merged with a parameter ----------------------------------===//

TEST_F(ParametersByCallTest, operandsOfACallOfUnknownPlaces) {
  const struct {
    const char *arguments;
    /// Of a node Sub(x or `w`, `w`) of a call aten.foo.
    bool isTwice;
    std::vector<int64_t> shape;
    /// Inputs of the signature that the file holds.
    bool holds;
    const char *parameter;
  } lines[] = {
      {"%x, %p_w", false, {3}, false, "w"},
      {"%p_w", true, {3}, false, "w"},
      // A literal may have been merged with one number.
      {"%x, %p_w", false, {1}, false, "w"},
      {"%p_w", true, {1}, false, ""},
      // A call that is gone may have been, where there are two operands.
      {"%p_w, %ones", true, {3}, false, ""},
      {"%p_w, %clone", true, {3}, false, ""},
      {"%p_w, %ones", false, {3}, false, "w"},
      {"%p_w, %used_w", true, {3}, false, "w"},
      // So may a buffer or a constant that is not there.
      {"%p_w, %b_m", false, {3}, false, ""},
      {"%p_w, %c_k", false, {3}, false, ""},
      {"%p_w, %b_m", false, {3}, true, "w"},
      {"%p_w, %c_k", false, {3}, true, "w"},
      // Another parameter that is gone is doubted as such.
      {"%p_w, %p_v", false, {3}, false, "w"},
      // The parameter that is gone was merged with another one.
      {"%x, %p_v", false, {3}, false, "v"},
      {"%x, %p_v", true, {3}, false, ""},
      {"%x, %p_v, %p_u", false, {3}, false, ""},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.arguments) + (line.isTwice ? " twice" : ""));
    TracedModel traced({"w", "v", "u"}, std::string(kBuffer) + kConstant);
    traced.use("w", line.shape);
    if (line.holds)
      for (const char *name : {"m", "k"})
        traced.hold(name, {3});
    traced.add("Sub", {line.isTwice ? "w" : "x", "w"},
               call("r", "aten.foo", line.arguments));
    expectUse(traced, line.parameter);
  }
  // Places of calls in the table of roles are known: this is none of theirs.
  TracedModel known({"w", "v"});
  known.use("w");
  known.add("Sub", {"x", "w"}, call("r", "aten.linear", "%x, %p_v"));
  expectUse(known, "");
  // What is no input of the program was merged with none.
  TracedModel other({"w", "v"});
  other.use("w");
  other.hold("val_1", {3});
  other.add("Sub", {"x", "val_1"}, call("r", "aten.foo", "%x, %p_v"));
  expectUse(other, "");
}

/// `w` at a place whose argument is gone: passed on as it was, unless it may
/// have been something equal to it that is not there.
TEST_F(ParametersByCallTest, aParameterBehindACallThatIsGone) {
  for (const char *more :
       {"", kBuffer, kConstant, "p_v: PARAMETER target='v'\n"})
    for (bool isHeld : {true, false}) {
      SCOPED_TRACE(std::string(more) + (isHeld ? "held" : "lost"));
      TracedModel traced({"w"}, more);
      traced.use("w");
      if (isHeld)
        for (const char *name : {"m", "k", "v"})
          traced.hold(name, {3});
      traced.add("MatMul", {"x", "w"}, call("r", "aten.matmul", "%x, %clone"));
      expectUse(traced, isHeld || !*more ? "w" : "");
    }
  // A buffer is no parameter.
  TracedModel buffer({"w"}, kBuffer);
  buffer.use("w");
  buffer.hold("m", {2, 3});
  buffer.add("MatMul", {"x", "m"}, call("r", "aten.matmul", "%x, %clone"));
  expectUse(buffer, "");
  // The place is a literal's or a buffer's, whatever else is gone.
  for (const char *argument : {"1.0", "%b_m"}) {
    TracedModel traced({"w"}, kBuffer);
    traced.use("w");
    traced.hold("m", {3});
    traced.add("MatMul", {"x", "w"},
               call("r", "aten.matmul", std::string("%clone, ") + argument));
    expectUse(traced, "");
  }
}

/// Equal initializers that were computed from something else are one, under the
/// name and history of one.
TEST_F(ParametersByCallTest, whatWasComputedIsOfTheCallsOwnArgument) {
  const struct {
    const char *op, *arguments;
    std::vector<std::string> from;
    bool isTwice, isRestored;
  } lines[] = {
      // By place: the argument itself, one on the way, the parameter.
      {"matmul", "%x, %mul_1", {"w"}, false, true},
      {"matmul", "%x, %mul_2", {"w"}, false, false},
      {"matmul", "%mul_1, %mul_2", {"w"}, false, false},
      {"matmul", "%x, %mul_2", {"w", "mul_2"}, false, true},
      {"matmul", "%x, %p_w", {"w", "mul_2"}, false, true},
      {"matmul", "%x, %p_v", {"w", "mul_2"}, false, false},
      // Of unknown places: any argument, but not for several operands.
      {"foo", "%x, %mul_1", {"w"}, false, true},
      {"foo", "%x, %mul_2", {"w"}, false, false},
      {"foo", "%mul_1, %mul_1", {"w"}, true, true},
      {"foo", "%mul_1, %mul_2", {"w"}, true, false},
      {"foo", "%mul_1, %p_w", {"w"}, true, true},
      {"foo", "%mul_1, %used_w", {"w"}, true, true},
      {"foo", "%mul_1, %clone", {"w"}, false, true},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.arguments);
    TracedModel traced({"w", "v"});
    traced.use("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    traced.use("v", {2, 3}, {1, 2, 3, 4, 5, 6});
    traced.hold("mul_1", {2, 3}, {3, 6, 9, 12, 15, 18});
    traced.foldedFrom("mul_1", line.from);
    traced.add("MatMul", {line.isTwice ? "mul_1" : "x", "mul_1"},
               call("r", std::string("aten.") + line.op, line.arguments));
    expectUse(traced, line.isRestored ? "w" : "");
  }
}

/// All elements alike: of equal parameters one is left, and the file does not
/// say of which it was computed.
TEST_F(ParametersByCallTest, uniformTensorsBesideAParameterThatIsGone) {
  const struct {
    const char *more;
    std::vector<float> values;
    bool isRestored;
  } lines[] = {
      {"p_v: PARAMETER target='v'\n", {2, 2, 2}, false},
      {"p_v: PARAMETER target='v'\n", {2, 3, 4}, true},
      {"", {2, 2, 2}, true},
      {kBuffer, {2, 2, 2}, true},
  };
  for (const auto &line : lines) {
    TracedModel traced({"w"}, line.more);
    traced.use("w", {3}, line.values);
    std::vector<float> scaled = line.values;
    for (float &value : scaled)
      value *= 3;
    traced.hold("div_1", {3}, scaled);
    traced.foldedFrom("div_1", {"w"});
    traced.add("MatMul", {"x", "div_1"},
               call("r", "aten.matmul", "%x, %div_1"));
    expectUse(traced, line.isRestored ? "w" : "");
  }
  // Nor is anything computed from a parameter that is gone itself.
  TracedModel gone({"w"});
  gone.hold("div_1", {3});
  gone.foldedFrom("div_1", {"w"});
  gone.add("MatMul", {"x", "div_1"}, call("r", "aten.matmul", "%x, %div_1"));
  expectUse(gone, "");
}

/// What a dropped view passed on may be another tensor that looks like it.
TEST_F(ParametersByCallTest, aViewThatMayBeOfAnother) {
  for (auto [other, gone, isRestored] :
       {std::tuple(std::vector<float>{1, 3, 2, 4}, "t", false),
        std::tuple(std::vector<float>{1, 3, 2, 4}, "permute_2", false),
        std::tuple(std::vector<float>{1, 3, 2, 5}, "t", true)}) {
    SCOPED_TRACE(gone);
    TracedModel traced({"v", "w"});
    traced.use("v", {2, 2}, other);
    traced.use("w", {2, 2}, {1, 2, 3, 4});
    traced.add("MatMul", {"x", "w"},
               call("r", "aten.matmul", std::string("%x, %") + gone));
    expectUse(traced, isRestored ? "w" : "");
  }
}

//===-- Biases that were removed ------------------------------------------===//

/// The length of a bias is that of the result's last dimension, or a
/// convolution's channels: by the weight, else as far as the file tells.
TEST_F(ParametersByCallTest, theShapeOfARemovedBias) {
  const struct {
    const char *call, *op;
    unsigned argument;
    /// Empty: the weight is computed.
    std::vector<int64_t> weight;
    /// Of the node; 0: none.
    const char *attribute;
    int64_t value;
    /// What the file says of the result; empty: nothing. 0: unknown.
    std::vector<int64_t> result;
    std::vector<int64_t> bias;
  } lines[] = {
      {"linear", "Gemm", 2, {2, 3}, "", 0, {}, {3}},
      {"linear", "Gemm", 2, {2, 3}, "transB", 1, {}, {2}},
      {"linear", "Gemm", 2, {2, 3}, "transB", 0, {}, {3}},
      {"linear", "Gemm", 2, {3}, "", 0, {}, {}},
      {"linear", "MatMul", 2, {2, 3}, "", 0, {}, {3}},
      {"linear", "MatMul", 2, {3}, "", 0, {}, {}},
      {"linear", "MatMul", 2, {4, 2, 3}, "", 0, {}, {}},
      {"conv2d", "Conv", 2, {4, 2, 1, 1}, "", 0, {}, {4}},
      {"conv2d", "Conv", 2, {4, 2}, "", 0, {}, {}},
      {"conv2d", "ConvTranspose", 2, {4, 2, 1, 1}, "", 0, {}, {2}},
      {"conv2d", "ConvTranspose", 2, {4, 2, 1, 1}, "group", 2, {}, {4}},
      {"conv2d", "ConvTranspose", 2, {4, 2}, "", 0, {}, {}},
      {"layer_norm", "LayerNormalization", 3, {3}, "", 0, {}, {3}},
      {"layer_norm", "LayerNormalization", 3, {2, 3}, "", 0, {}, {}},
      // The weight is computed.
      {"linear", "MatMul", 2, {}, "", 0, {}, {}},
      {"linear", "MatMul", 2, {}, "", 0, {5, 6, 7}, {7}},
      {"linear", "MatMul", 2, {}, "", 0, {5, 0}, {}},
      {"conv2d", "Conv", 2, {}, "", 0, {5, 6, 7}, {6}},
      {"conv2d", "Conv", 2, {}, "", 0, {5}, {}},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.attribute);
    TracedModel traced({"b"});
    addValue(traced.graph().mutable_value_info(), "other", {8, 9, 10});
    // A sequence has no shape.
    onnx::ValueInfoProto *sequence = traced.graph().add_value_info();
    sequence->set_name(line.result.empty() ? "o_0" : "list");
    sequence->mutable_type()->mutable_sequence_type();
    if (!line.weight.empty())
      traced.hold("val_1", line.weight);
    std::string text = "%x, %x, ";
    for (unsigned i = 2; i < line.argument; ++i)
      text += "%x, ";
    onnx::NodeProto *added =
        traced.add(line.op, {"x", line.weight.empty() ? "x" : "val_1"},
                   call("r", std::string("aten.") + line.call, text + "%p_b"));
    if (*line.attribute) {
      onnx::AttributeProto *attribute = added->add_attribute();
      attribute->set_name(line.attribute);
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(line.value);
    }
    if (!line.result.empty()) {
      onnx::TensorShapeProto *shape =
          addValue(traced.graph().mutable_value_info(), "o_0", line.result)
              ->mutable_type()
              ->mutable_tensor_type()
              ->mutable_shape();
      for (onnx::TensorShapeProto::Dimension &dim : *shape->mutable_dim())
        if (dim.dim_value() == 0)
          dim.set_dim_param("n");
    }
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    ASSERT_EQ(table->restored.size(), 1u);
    EXPECT_EQ(table->parameters[0].kind, ParameterKind::Removed);
    EXPECT_THAT(table->parameters[0].shape, ElementsAreArray(line.bias));
    EXPECT_EQ(table->parameters[0].hasShape, !line.bias.empty());
    EXPECT_EQ(table->parameters[0].dtype, onnx::TensorProto::FLOAT);
  }
}

TEST_F(ParametersByCallTest, aBiasIsPutBackOnlyWhereItIsMissing) {
  auto restored = [&](std::vector<std::string> inputs, const char *arguments) {
    TracedModel traced({"b"});
    traced.hold("val_1", {2, 3});
    traced.hold("c", {3});
    traced.add("Gemm", inputs, call("r", "aten.linear", arguments));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    EXPECT_TRUE(succeeded(table));
    return table->restored.size();
  };
  EXPECT_EQ(restored({"x", "val_1"}, "%x, %x, %p_b"), 1u);
  EXPECT_EQ(restored({"x", "val_1", ""}, "%x, %x, %p_b"), 1u);
  EXPECT_EQ(restored({"x"}, "%x, %x, %p_b"), 1u);
  // It is there, as what it is or as something else.
  EXPECT_EQ(restored({"x", "val_1", "c"}, "%x, %x, %p_b"), 0u);
  EXPECT_EQ(restored({"x", "val_1", "x"}, "%x, %x, %p_b"), 0u);
  // The argument is no parameter.
  EXPECT_EQ(restored({"x", "val_1"}, "%x, %x, %x"), 0u);
  EXPECT_EQ(restored({"x", "val_1"}, "%x, %x, None"), 0u);
  // The sum behind the product is there.
  TracedModel sum({"b"});
  sum.hold("val_1", {2, 3});
  sum.hold("b", {3});
  std::string linear = call("r", "aten.linear", "%x, %x, %p_b");
  sum.add("MatMul", {"x", "val_1"}, linear);
  sum.add("Add", {"o_0", "b"}, linear);
  mlir::FailureOr<ParameterTable> both = identify(sum.model);
  ASSERT_TRUE(succeeded(both));
  EXPECT_TRUE(both->restored.empty());
  // It has the weight's type.
  TracedModel traced({"b"});
  traced.hold("val_1", {2, 3});
  onnx::TensorProto *weight = traced.graph().mutable_initializer(0);
  weight->set_data_type(onnx::TensorProto::FLOAT16);
  weight->set_raw_data(std::string(12, '\1'));
  traced.add("Gemm", {"x", "val_1"}, call("r", "aten.linear", "%x, %x, %p_b"));
  mlir::FailureOr<ParameterTable> table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->parameters[0].dtype, onnx::TensorProto::FLOAT16);
}

//===-- Ties --------------------------------------------------------------===//

/// A parameter that no call names is another name of the one that its module
/// uses.
TEST_F(ParametersByCallTest, namesThatNoCallHas) {
  struct Used {
    const char *parameter, *module;
  };
  const struct {
    std::vector<const char *> unnamed;
    std::vector<Used> used;
    /// Aliases of the first parameter that is left.
    std::vector<std::string> aliases;
    size_t parameters;
  } lines[] = {
      {{"head.weight"}, {{"e.weight", "head"}}, {"head.weight"}, 1},
      // Another module, another leaf, two that are used there.
      {{"head.weight"}, {{"e.weight", "neck"}}, {}, 2},
      {{"head.bias"}, {{"e.weight", "head"}}, {}, 2},
      {{"head.weight"}, {{"e.weight", "head"}, {"f.weight", "head"}}, {}, 3},
      // The outermost module has one within: the user is asked.
      {{"weight"}, {{"e.weight", "head"}}, {}, 1},
      // What no call names itself is nobody's other name.
      {{"head.weight", "tail.weight"},
       {{"e.weight", "head"}},
       {"head.weight"},
       2},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(line.unnamed.front());
    std::vector<std::string> names;
    for (const Used &used : line.used)
      names.push_back(used.parameter);
    names.insert(names.end(), line.unnamed.begin(), line.unnamed.end());
    TracedModel traced(names);
    for (const Used &used : line.used) {
      std::string name = used.parameter, placeholder = "p_" + name;
      std::replace(placeholder.begin(), placeholder.end(), '.', '_');
      traced.hold(name, {3});
      setProperty(
          traced
              .add("Mul", {"x", name},
                   call("r_" + placeholder, "aten.mul", "%x, %" + placeholder))
              ->add_metadata_props(),
          "pkg.torch.onnx.name_scopes",
          std::string("['', '") + used.module + "', 'mul']");
    }
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_EQ(table->parameters.size(), line.parameters);
    EXPECT_THAT(table->parameters[0].aliases, ElementsAreArray(line.aliases));
  }
  // Two other names of one, which come before it.
  TracedModel twice({"head.weight", "tail.weight", "e.weight"});
  twice.hold("e.weight", {3});
  for (const char *module : {"head", "tail"})
    setProperty(twice
                    .add("Mul", {"x", "e.weight"},
                         call(std::string("r_") + module, "aten.mul",
                              "%x, %p_e_weight"))
                    ->add_metadata_props(),
                "pkg.torch.onnx.name_scopes",
                std::string("['', '") + module + "', 'mul']");
  mlir::FailureOr<ParameterTable> one = identify(twice.model);
  ASSERT_TRUE(succeeded(one));
  ASSERT_EQ(one->parameters.size(), 1u);
  EXPECT_THAT(one->parameters[0].aliases,
              ElementsAre("e.weight", "tail.weight"));
  // One that a node without a call reads is itself.
  TracedModel read({"e.weight", "head.weight"});
  read.hold("e.weight", {3});
  read.hold("head.weight", {3});
  setProperty(read.add("Mul", {"x", "e.weight"},
                       call("mul", "aten.mul", "%x, %p_e_weight"))
                  ->add_metadata_props(),
              "pkg.torch.onnx.name_scopes", "['', 'head', 'mul']");
  addNode(read.graph(), "Neg", {"head.weight"}, {"n"});
  mlir::FailureOr<ParameterTable> two = identify(read.model);
  ASSERT_TRUE(succeeded(two));
  EXPECT_EQ(two->parameters.size(), 2u);
  // Nothing is another name of what was folded itself.
  TracedModel inner({"m.bias", "m.norm.bias"});
  inner.add("Neg", {"x"}, call("neg", "aten.foo", "%p_m_norm_bias"));
  mlir::FailureOr<ParameterTable> neither = identify(inner.model);
  ASSERT_TRUE(succeeded(neither));
  EXPECT_EQ(neither->parameters.size(), 2u);
  EXPECT_TRUE(neither->notes.empty());
  // One that a call names and nothing holds was folded; it is no other name.
  TracedModel folded({"e.weight", "head.weight"});
  folded.hold("e.weight", {3});
  onnx::NodeProto *reader = folded.add(
      "Mul", {"x", "e.weight"}, call("mul", "aten.mul", "%x, %p_e_weight"));
  setProperty(reader->add_metadata_props(), "pkg.torch.onnx.name_scopes",
              "['', 'head', 'mul']");
  folded.add("Neg", {"x"}, call("neg", "aten.foo", "%p_head_weight"));
  mlir::FailureOr<ParameterTable> table = identify(folded.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->parameters.size(), 2u);
}
