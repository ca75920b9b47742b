// Local functions: what stands in their calls' place.
#include "TestModel.h"
#include "lib/Onnx/NodeInfo.h"

using namespace accel::onnxio;
using testing::ElementsAre;

namespace {
class InlineTest : public OnnxTest {
protected:
  static onnx::NodeProto *addBodyNode(onnx::FunctionProto &function,
                                      const char *op,
                                      std::vector<std::string> inputs,
                                      std::vector<std::string> outputs) {
    onnx::NodeProto *node = function.add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    for (const std::string &output : outputs)
      node->add_output(output);
    return node;
  }
  /// A function f.<name>(a, b) -> r.
  static onnx::FunctionProto *addFunction(onnx::ModelProto &model,
                                          const char *name) {
    onnx::FunctionProto *function = model.add_functions();
    function->set_domain("f");
    function->set_name(name);
    function->add_input("a");
    function->add_input("b");
    function->add_output("r");
    auto *import = function->add_opset_import();
    import->set_domain("");
    import->set_version(18);
    return function;
  }
  static onnx::NodeProto *addCall(onnx::ModelProto &model, const char *name,
                                  std::vector<std::string> inputs,
                                  std::vector<std::string> outputs,
                                  const char *nodeName) {
    onnx::NodeProto *call =
        addNode(*model.mutable_graph(), name, inputs, outputs, nodeName);
    call->set_domain("f");
    return call;
  }
  static std::vector<std::string> names(const onnx::NodeProto &node) {
    std::vector<std::string> list(node.input().begin(), node.input().end());
    list.push_back("->");
    list.insert(list.end(), node.output().begin(), node.output().end());
    return list;
  }
};
} // namespace

TEST_F(InlineTest, bodiesTakeTheCallsPlaceUnderUniqueNames) {
  onnx::ModelProto model = smallModel();
  onnx::FunctionProto *function = addFunction(model, "Twice");
  addBodyNode(*function, "Add", {"a", "b"}, {"t"});
  addBodyNode(*function, "Mul", {"t", "s"}, {"r"})->set_input(1, "t");
  addCall(model, "Twice", {"x", "y"}, {"z"}, "first");
  addCall(model, "Twice", {"z", ""}, {"q"}, "second");
  // The name that inlining would take is already there.
  addNode(*model.mutable_graph(), "Neg", {"x"}, {"first/t"});
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  const onnx::GraphProto &graph = (*file)->graph();
  ASSERT_EQ(graph.node_size(), 7);
  EXPECT_EQ((*file)->model().functions_size(), 0);
  EXPECT_THAT(names(graph.node(2)), ElementsAre("x", "y", "->", "first/t#1"));
  EXPECT_THAT(names(graph.node(3)),
              ElementsAre("first/t#1", "first/t#1", "->", "z"));
  EXPECT_THAT(names(graph.node(4)), ElementsAre("z", "", "->", "second/t"));
  EXPECT_EQ(graph.node(3).name(), "first/Mul#1");
}

TEST_F(InlineTest, attributesComeFromTheCallOrTheDefault) {
  onnx::ModelProto model = smallModel();
  onnx::FunctionProto *function = addFunction(model, "Soft");
  function->add_attribute("axis");
  function->add_attribute("absent");
  onnx::AttributeProto *given = function->add_attribute_proto();
  given->set_name("keep");
  given->set_type(onnx::AttributeProto::INT);
  given->set_i(7);
  onnx::NodeProto *node = addBodyNode(*function, "Softmax", {"a"}, {"r"});
  for (const char *name : {"axis", "keep", "absent"}) {
    onnx::AttributeProto *attribute = node->add_attribute();
    attribute->set_name(std::string("inner_") + name);
    attribute->set_ref_attr_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
  }
  onnx::NodeProto *call = addCall(model, "Soft", {"x"}, {"z"}, "call");
  onnx::AttributeProto *axis = call->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx::AttributeProto::INT);
  axis->set_i(-1);
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  const onnx::NodeProto &inlined = (*file)->graph().node(2);
  ASSERT_EQ(inlined.attribute_size(), 2);
  EXPECT_EQ(findAttribute(inlined, "inner_axis")->i(), -1);
  EXPECT_EQ(findAttribute(inlined, "inner_keep")->i(), 7);

  axis->set_type(onnx::AttributeProto::FLOAT);
  expectError(model, "expected attribute 'axis' of kind INT, found FLOAT");
  function->clear_attribute();
  axis->set_name("other");
  expectError(model, "refers to attribute 'axis', which function 'Soft' does "
                     "not declare");
}

TEST_F(InlineTest, nestedCallsOverloadsAndOpsets) {
  onnx::ModelProto model = smallModel();
  onnx::FunctionProto *inner = addFunction(model, "Inner");
  inner->set_overload("two");
  addBodyNode(*inner, "Sub", {"a", "b"}, {"r"});
  onnx::FunctionProto *wrong = addFunction(model, "Inner");
  addBodyNode(*wrong, "Div", {"a", "b"}, {"r"});
  onnx::FunctionProto *outer = addFunction(model, "Outer");
  outer->mutable_opset_import(0)->set_version(13);
  onnx::NodeProto *nested = addBodyNode(*outer, "Inner", {"b", "a"}, {"t"});
  nested->set_domain("f");
  nested->set_overload("two");
  addBodyNode(*outer, "Neg", {"t"}, {"r"});
  onnx::NodeProto *call = addCall(model, "Outer", {"x", "y"}, {"z"}, "call");
  onnx::StringStringEntryProto *entry = call->add_metadata_props();
  entry->set_key("namespace");
  entry->set_value(": W/m: M/op: aten.op");
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  const onnx::NodeProto &sub = (*file)->graph().node(2);
  const onnx::NodeProto &neg = (*file)->graph().node(3);
  EXPECT_EQ(sub.op_type(), "Sub");
  EXPECT_EQ(sub.input(0), "y");
  EXPECT_EQ(sub.name(), "call/Inner#0/Sub#0");
  EXPECT_EQ((*file)->opsetVersion(sub), 18);
  EXPECT_EQ((*file)->opsetVersion(neg), 13);
  EXPECT_EQ(modulePath(neg), "m");
}

TEST_F(InlineTest, subgraphsInBodiesSeeTheRenamedValues) {
  onnx::ModelProto model = smallModel();
  onnx::FunctionProto *function = addFunction(model, "Branch");
  addBodyNode(*function, "Neg", {"b"}, {"t"});
  onnx::NodeProto *branch = addBodyNode(*function, "If", {"a"}, {"r"});
  onnx::AttributeProto *attribute = branch->add_attribute();
  attribute->set_name("then_branch");
  onnx::GraphProto *body = attribute->mutable_g();
  addNode(*body, "Abs", {"t"}, {"inner"});
  addNode(*body, "Add", {"inner", "b"}, {"out"});
  addValue(body->mutable_output(), "out");
  addCall(model, "Branch", {"x", "y"}, {"z"}, "call");
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  const onnx::GraphProto &loaded = (*file)->graph().node(3).attribute(0).g();
  EXPECT_EQ(loaded.node(0).input(0), "call/t");
  EXPECT_EQ(loaded.node(1).input(1), "y");
}

TEST_F(InlineTest, aResultThatIsAnInputIsCopied) {
  onnx::ModelProto model = smallModel();
  onnx::FunctionProto *function = addFunction(model, "Pass");
  function->set_output(0, "a");
  addCall(model, "Pass", {"x"}, {"z"}, "call");
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  EXPECT_EQ((*file)->graph().node(2).op_type(), "Identity");
}

TEST_F(InlineTest, refusesRecursionExplosionAndWrongCalls) {
  onnx::ModelProto model = smallModel();
  onnx::FunctionProto *function = addFunction(model, "Loop");
  addBodyNode(*function, "Loop", {"a"}, {"r"})->set_domain("f");
  addCall(model, "Loop", {"x"}, {"z"}, "call");
  expectError(model, "found 'Loop' within its own body");

  model = smallModel();
  addFunction(model, "Same");
  addFunction(model, "Same");
  expectError(model, "function 'Same' of domain 'f' is defined twice");

  model = smallModel();
  addBodyNode(*addFunction(model, "One"), "Neg", {"a"}, {"r"});
  addCall(model, "One", {"x", "x", "x"}, {"z"}, "call");
  expectError(model, "expected at most 2 operands and 1 results");

  // Thirty levels of two calls each would be a billion nodes.
  model = smallModel();
  for (int i = 0; i < 30; ++i) {
    function = addFunction(model, ("L" + std::to_string(i)).c_str());
    std::string next = i == 29 ? "Add" : "L" + std::to_string(i + 1);
    addBodyNode(*function, next.c_str(), {"a", "b"}, {"t"});
    addBodyNode(*function, next.c_str(), {"t", "t"}, {"r"});
    if (i != 29)
      for (onnx::NodeProto &node : *function->mutable_node())
        node.set_domain("f");
  }
  addCall(model, "L0", {"x", "x"}, {"z"}, "call");
  expectError(model, "expected functions that expand to at most 1000000 nodes");
}
