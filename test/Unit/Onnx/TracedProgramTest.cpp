// How lib/Onnx/TracedProgram.cpp and TracedCall.cpp read an exporter's
// metadata, by what identification and its doubts make of it: signatures in
// both forms, outputs, the text of calls, operands, names, types.
#include "TracedModel.h"

using namespace accel::onnxio;

namespace {
class TracedProgramTest : public TracedTest {
protected:
  using Wanted = std::vector<WantedDoubt>;
  /// `w` used as it is, and `mul_9`, whose argument `gone` no operand is.
  static TracedModel lacking(const std::string &gone) {
    TracedModel traced({"w"});
    traced.use("w");
    traced.add("Mul", {"used_w", "used_w"},
               call("mul_9", "aten.mul", "%used_w, " + gone));
    return traced;
  }
  static void setSignature(TracedModel &traced, const std::string &text) {
    traced.graph().mutable_metadata_props(0)->set_value(text);
  }
};

} // namespace

//===-- Signatures --------------------------------------------------------===//

/// torch 2.6 prints Python's own text of the signature.
TEST_F(TracedProgramTest, aSignatureOfEitherForm) {
  TracedModel traced({});
  traced.hold("val_1", {3});
  traced.add("Mul", {"x", "val_1"}, call("mul", "aten.mul", "%x, %p_a_w"));
  setSignature(traced,
               "ExportGraphSignature(input_specs=[InputSpec(kind=<InputKind."
               "PARAMETER: 2>, arg=TensorArgument(name='p_a_w'), target='a.w', "
               "persistent=None), InputSpec(kind=<InputKind.TOKEN: 6>, "
               "arg=TokenArgument(name='t'), target=None), InputSpec(kind="
               "<InputKind.BUFFER: 3>, arg=TensorArgument(name='b_m'), "
               "target='m', persistent=True), InputSpec(kind=<InputKind."
               "USER_INPUT: 1>, arg=TensorArgument(name='x'), target=None, "
               "persistent=None)], output_specs=[OutputSpec(kind=<OutputKind."
               "USER_OUTPUT: 1>, arg=TensorArgument(name='mul'), "
               "target=None)])");
  mlir::FailureOr<ParameterTable> table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  ASSERT_EQ(table->parameters.size(), 1u);
  EXPECT_EQ(table->parameters[0].name, "a.w");
  EXPECT_TRUE(table->useAt(node(0), 1));
}

TEST_F(TracedProgramTest, outputsOfTheSignature) {
  auto outputs = [](const std::string &text) {
    TracedModel traced({"w"});
    traced.use("w");
    addValue(traced.graph().mutable_output(), "used_w");
    setSignature(traced, "# inputs\n" + parameter("w") +
                             "x: USER_INPUT\n\n# outputs\n" + text);
    return traced;
  };
  expectDoubts(outputs("used_w: USER_OUTPUT\n"), {});
  expectDoubts(outputs("\ntoken: TOKEN\nused_w: USER_OUTPUT\n"), {});
  expectDoubts(
      outputs("add: USER_OUTPUT\n"),
      {{Doubt::Meaning, {"w"}, "the traced call 'add' that is output"}});
  for (const char *kind : {"BUFFER_MUTATION", "USER_INPUT_MUTATION"})
    expectDoubts(outputs(std::string("add: ") + kind +
                         " target='n'\nused_w: USER_OUTPUT\n"),
                 {{Doubt::Meaning, {}, "the forward changes 'n'"}});
  // Of the signature, and of no other property.
  TracedModel other = outputs("used_w: USER_OUTPUT\n");
  setProperty(other.graph().add_metadata_props(), "note",
              "# outputs\nadd: BUFFER_MUTATION target='n'\n");
  expectDoubts(other, {});
}

/// What was merged with a parameter is one input of the program.
TEST_F(TracedProgramTest, parametersAndBuffersHaveNamesOfTheirOwn) {
  for (auto [line, isFound] :
       {std::pair("p_k: PARAMETER target='k'\n", true),
        std::pair("b_k: BUFFER target='k' persistent=True\n", true),
        std::pair("c_k: CONSTANT_TENSOR target='k'\n", false)}) {
    SCOPED_TRACE(line);
    TracedModel traced({"w"}, line);
    traced.hold("k", {3});
    traced.add("Sub", {"x", "k"}, call("r", "aten.foo", "%x, %p_w"));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_EQ(table->useAt(node(0), 1) != nullptr, isFound);
  }
}

//===-- The text of calls -------------------------------------------------===//

TEST_F(TracedProgramTest, argumentsAreCountedOutsideBracketsAndStrings) {
  for (const char *first : {"[%x, %x]", "(1, 2)", "{a: 1, b: 2}", "'a, b'",
                            "\"a, b\"", "[1, 'a], b']", "'a\\', b'"}) {
    SCOPED_TRACE(first);
    TracedModel traced({"w"});
    traced.hold("val_1", {2, 3});
    traced.add("MatMul", {"x", "val_1"},
               call("r", "aten.matmul", std::string(first) + ", %p_w"));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_TRUE(table->useAt(node(0), 1));
  }
}

/// A value whose users are all there stands for no other.
TEST_F(TracedProgramTest, usersAreCounted) {
  for (auto [users, isDropped] :
       {std::pair("[num_users=1] ", false), std::pair("[num_users=2] ", true),
        std::pair("", true)}) {
    SCOPED_TRACE(users);
    TracedModel traced({"s"});
    traced.hold("s", {}, {1});
    traced.add("Mul", {"x", "s"},
               std::string("%h : ") + users +
                   "= call_function[target=torch.ops.aten.mul.default](args = "
                   "(%x, %p_s), kwargs = {})",
               "h");
    // An operand that is left out is none.
    traced.add("Clip", {"h", ""}, call("r", "aten.foo", "%h, %mul_9"));
    expectDoubts(traced,
                 isDropped
                     ? Wanted{{Doubt::Folded, {"s"}, "may have computed with"}}
                     : Wanted{{Doubt::Meaning, {"s"}, "was merged with 'h'"}});
  }
}

/// The operator that a name tells, with the number that FX adds.
TEST_F(TracedProgramTest, namesTellOperators) {
  for (auto [gone, isDetach] :
       {std::pair("detach", true), std::pair("detach_1", true),
        std::pair("detach_12", true), std::pair("detach12", false),
        std::pair("detachs3", false), std::pair("a_detach", false),
        std::pair("12", false), std::pair("_1", false)}) {
    SCOPED_TRACE(gone);
    expectDoubts(lacking(std::string("%") + gone),
                 isDetach ? Wanted{{Doubt::Meaning, {}, "stopped a gradient"}}
                          : Wanted{{Doubt::Meaning, {"w"}, "was merged with"}});
  }
  // An operator that changes its operand in place is another one.
  for (auto [gone, restored] :
       {std::pair("view", true), std::pair("view_1", true),
        std::pair("view_", false)}) {
    SCOPED_TRACE(gone);
    TracedModel traced({"w"});
    traced.use("w");
    traced.add("MatMul", {"x", "w"},
               call("r", "aten.matmul", std::string("%x, %") + gone));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_EQ(table->useAt(node(1), 1) != nullptr, restored);
  }
}

//===-- The graph ---------------------------------------------------------===//

TEST_F(TracedProgramTest, aValueIsThereWhereANodeMakesIt) {
  TracedModel traced = lacking("%detach");
  addNode(traced.graph(), "Neg", {"x"}, {"detach"});
  expectDoubts(traced, {});
}

/// A file may hold constants of its own and what an optimizer folded.
TEST_F(TracedProgramTest, whatWasFoldedShowsAnOptimizer) {
  TracedModel traced = lacking("%detach");
  addNode(traced.graph(), "Constant", {}, {"c"});
  expectDoubts(traced, {});
  traced.foldedFrom("val_1", {"val_0"});
  expectDoubts(traced, {{Doubt::Meaning, {}, "stopped a gradient"}});
}

TEST_F(TracedProgramTest, callsOfSubgraphsAreRead) {
  TracedModel traced({"w"});
  traced.hold("val_1", {2, 3});
  onnx::NodeProto *branch = addNode(traced.graph(), "If", {"x"}, {"y"});
  onnx::AttributeProto *attribute = branch->add_attribute();
  attribute->set_name("then_branch");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto &inner = *attribute->mutable_g();
  inner.set_name("then");
  setCall(addNode(inner, "Mul", {"x", "val_1"}, {"z"}),
          call("mul", "aten.mul", "%x, %p_w"));
  addValue(inner.mutable_output(), "z");
  mlir::FailureOr<ParameterTable> table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_TRUE(table->useAt(node(0).attribute(0).g().node(0), 1));
}

/// One value at two places is one, and doubted once.
TEST_F(TracedProgramTest, valuesAndOperandsAreListedOnce) {
  expectDoubts(lacking("%detach, %detach"),
               {{Doubt::Meaning, {}, "stopped a gradient"}});
  TracedModel traced({"a", "b"});
  traced.use("a");
  traced.add("Mul", {"x", "a"}, call("mul", "aten.mul", "%x, %p_b"));
  traced.add("Exp", {"a"}, call("exp", "aten.exp", "%p_a"), "e");
  traced.add("Max", {"e", "e"}, call("max", "aten.foo", "%exp_5"));
  expectDoubts(traced, {{Doubt::Folded, {"a"}, "merged it with 'exp'"}});
}

TEST_F(TracedProgramTest, typesOfFloats) {
  for (auto [type, isFloat] : {std::pair(onnx::TensorProto::FLOAT, true),
                               std::pair(onnx::TensorProto::DOUBLE, true),
                               std::pair(onnx::TensorProto::FLOAT16, true),
                               std::pair(onnx::TensorProto::BFLOAT16, true),
                               std::pair(onnx::TensorProto::INT64, false)}) {
    TracedModel traced({"w"});
    traced.use("w");
    addValue(traced.graph().mutable_value_info(), "used_w")
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(type);
    traced.add("Sqrt", {"used_w"}, call("sqrt", "aten.sqrt", "%add"));
    expectDoubts(
        traced,
        isFloat ? Wanted{{Doubt::Meaning, {}, "less than 1e-8"}}
                : Wanted{{Doubt::Meaning, {"w"}, "nothing tells what it did"}});
  }
}
