// What a loaded file promises, and the error for each way of breaking it.
#include "TestModel.h"
#include "lib/Onnx/NodeInfo.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace accel::onnxio;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
class OnnxFileTest : public OnnxTest {};
} // namespace

TEST_F(OnnxFileTest, namesNodesAndFindsRawDataInTheFile) {
  File file = load(smallModel());
  ASSERT_TRUE(succeeded(file));
  EXPECT_EQ((*file)->graph().node(1).name(), "Mul#1");
  EXPECT_EQ((*file)->opsetVersion("ai.onnx"), 18);
  const onnx::TensorProto *w = (*file)->findInitializer("w");
  const Payload &payload = (*file)->payload(*w);
  EXPECT_TRUE(payload.byReference);
  EXPECT_EQ(payload.bytes, 24u);
  // The bytes are where the payload says, read without the loader.
  auto buffer = llvm::MemoryBuffer::getFile(payload.path);
  float third;
  std::memcpy(&third,
              (*buffer)->getBufferStart() + payload.offset + 2 * sizeof(float),
              sizeof(float));
  EXPECT_EQ(third, 3.0f);
  EXPECT_EQ(hashBytes(payload.data),
            hashBytes(llvm::ArrayRef<char>(
                (*buffer)->getBufferStart() + payload.offset, 24)));
}

TEST_F(OnnxFileTest, initializersThatAreInputsAreNoInputs) {
  onnx::ModelProto model = smallModel();
  addValue(model.mutable_graph()->mutable_input(), "b", {3});
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  ASSERT_EQ((*file)->inputs().size(), 1u);
  EXPECT_EQ((*file)->inputs()[0]->name(), "x");
}

TEST_F(OnnxFileTest, sortsNodesAndKeepsTheFilesOrderOtherwise) {
  onnx::ModelProto model = smallModel();
  onnx::GraphProto &graph = *model.mutable_graph();
  addNode(graph, "Neg", {"x"}, {"unused"}, "last");
  graph.mutable_node()->SwapElements(0, 1);
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  std::vector<std::string> names;
  for (const onnx::NodeProto &node : (*file)->graph().node())
    names.push_back(node.name());
  EXPECT_THAT(names, ElementsAre("Add#1", "Mul#0", "last"));
}

TEST_F(OnnxFileTest, sortsByWhatSubgraphsRead) {
  onnx::ModelProto model = smallModel();
  onnx::GraphProto &graph = *model.mutable_graph();
  onnx::NodeProto *branch = addNode(graph, "If", {"c"}, {"z"}, "branch");
  onnx::AttributeProto *body = branch->add_attribute();
  body->set_name("then_branch");
  body->set_type(onnx::AttributeProto::GRAPH);
  addNode(*body->mutable_g(), "Neg", {"late"}, {"inner"});
  addValue(body->mutable_g()->mutable_output(), "inner");
  addValue(graph.mutable_input(), "c");
  addNode(graph, "Abs", {"y"}, {"late"}, "late");
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  EXPECT_EQ((*file)->graph().node(3).name(), "branch");
}

TEST_F(OnnxFileTest, namesTheNodesOfACycle) {
  onnx::ModelProto model = smallModel();
  model.mutable_graph()->mutable_node(0)->set_input(1, "y");
  expectError(model, "found 'Mul#1' -> 'Add#0' -> 'Mul#1'");
}

TEST_F(OnnxFileTest, locatesNodesAtTheUsersLine) {
  onnx::ModelProto model = smallModel();
  onnx::NodeProto &node = *model.mutable_graph()->mutable_node(0);
  auto add = [&](const char *key, const char *value) {
    onnx::StringStringEntryProto *entry = node.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("pkg.torch.onnx.name_scopes", "['', 'model', 'model.wte', 'add']");
  add("pkg.torch.onnx.stack_trace",
      "File \"a.py\", line 3, in forward\n    y = f(x)\n"
      "  File \"b.py\", line 17, in f\n    return x + b\n");
  File file = load(model);
  ASSERT_TRUE(succeeded(file));
  const onnx::NodeProto &loaded = (*file)->graph().node(0);
  EXPECT_EQ(modulePath(loaded), "model.wte");
  EXPECT_THAT(moduleScopes(loaded), ElementsAre("model", "model.wte"));
  EXPECT_EQ(sourceLine(loaded)->text, "return x + b");
  std::string text;
  llvm::raw_string_ostream(text) << (*file)->location(loaded);
  EXPECT_THAT(text, HasSubstr("\"Add#0\"(\"b.py\":17:0)"));
  EXPECT_THAT(text, HasSubstr("model.wte"));
  node.set_input(1, "nothing");
  expectError(model,
              "node 'Add#0' (Add): uses 'nothing', which nothing defines");
  EXPECT_THAT(locations.back(), HasSubstr("b.py"));
}

TEST(NodeInfoTest, findsTheUsersOwnLineBeforeThoseOfLibraries) {
  auto describe = [](std::initializer_list<const char *> files) {
    std::string trace;
    unsigned line = 0;
    for (const char *file : files) {
      trace += line == 0 ? "File \"" : "  File \"";
      ++line;
      trace += std::string(file) + "\", line " + std::to_string(line) +
               ", in forward\n    x\n";
    }
    onnx::NodeProto node;
    onnx::StringStringEntryProto *entry = node.add_metadata_props();
    entry->set_key("pkg.torch.onnx.stack_trace");
    entry->set_value(trace);
    std::optional<SourceLine> own = sourceLine(node), inner = libraryLine(node);
    return (own ? std::to_string(own->line) : "none") + ", " +
           (inner ? std::to_string(inner->line) : "none");
  };
  const char *mine = "/home/me/train.py";
  const char *llama = "/v/site-packages/transformers/models/llama.py";
  const char *linear = "/v/site-packages/torch/nn/modules/linear.py";
  EXPECT_EQ(describe({}), "none, none");
  EXPECT_EQ(describe({mine, mine}), "2, none");
  EXPECT_EQ(describe({mine, linear}), "1, 2");
  EXPECT_EQ(describe({mine, llama, llama, linear}), "1, 3");
  EXPECT_EQ(describe({llama, llama, linear}), "2, none");
  EXPECT_EQ(describe({linear}), "1, none");
  EXPECT_EQ(describe({"torch/fx/passes/x.py", "<eval_with_key>.3"}), "2, none");
  EXPECT_EQ(describe({"/usr/lib/python3.11/copy.py", mine,
                      "/usr/lib/python3/dist-packages/torch/a.py"}),
            "2, 3");
}

TEST_F(OnnxFileTest, readsTheModulePathFromTheNamespaceToo) {
  onnx::NodeProto node;
  onnx::StringStringEntryProto *entry = node.add_metadata_props();
  entry->set_key("namespace");
  entry->set_value(": W/model: pkg.Gpt2/model.wte: torch.Embedding/"
                   "embedding: aten.embedding.default");
  EXPECT_THAT(moduleScopes(node), ElementsAre("model", "model.wte"));
}

TEST_F(OnnxFileTest, refusesWhatIsNoModel) {
  expectErrorOf(loadPath(folder.file("absent.onnx")), "cannot open the model");
  expectErrorOf(loadPath(folder.path.str().str()), "found a folder");
  expectErrorOf(loadPath(folder.write("empty.onnx", "")), "no IR version");
  std::string bytes = smallModel().SerializeAsString();
  expectErrorOf(
      loadPath(folder.write("cut.onnx", bytes.substr(0, bytes.size() / 2))),
      "truncated");
  expectErrorOf(loadPath(folder.write("text.onnx", "hello, world\n")),
                "truncated or no protobuf");
}

TEST_F(OnnxFileTest, refusesUnknownFieldsAtAnyDepth) {
  onnx::ModelProto model = smallModel();
  model.GetReflection()->MutableUnknownFields(&model)->AddVarint(999, 1);
  expectError(model, "unknown protobuf field 999 in the model");

  model = smallModel();
  onnx::TensorShapeProto::Dimension *dim = model.mutable_graph()
                                               ->mutable_input(0)
                                               ->mutable_type()
                                               ->mutable_tensor_type()
                                               ->mutable_shape()
                                               ->mutable_dim(1);
  dim->GetReflection()->MutableUnknownFields(dim)->AddVarint(77, 1);
  expectError(model, "unknown protobuf field 77 in "
                     "'graph.input[0].type.tensor_type.shape.dim[1]'");

  model = smallModel();
  onnx::AttributeProto *attribute =
      model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->GetReflection()->MutableUnknownFields(attribute)->AddVarint(20,
                                                                         99);
  expectError(model, "field 'type' in 'graph.node[0].attribute[0]' of the "
                     "model has the unknown value 99");

  model = smallModel();
  model.mutable_graph()->mutable_node(0)->set_doc_string("DOC");
  std::string bytes = model.SerializeAsString();
  bytes[bytes.find("DOC")] = '\xff';
  expectErrorOf(loadPath(folder.write("latin.onnx", bytes)),
                "'graph.node[0].doc_string' of the model is not UTF-8");
}

TEST_F(OnnxFileTest, refusesModelsItCannotMean) {
  onnx::ModelProto model = smallModel();
  model.set_ir_version(99);
  expectError(model, "unsupported IR version 99, expected 3 to 14");
  model = smallModel();
  model.clear_graph();
  expectError(model, "expected a graph");
  model = smallModel();
  model.clear_opset_import();
  expectError(model, "imports no operator set");
  model = smallModel();
  *model.add_opset_import() = model.opset_import(0);
  expectError(model, "imports domain '' twice");
  model = smallModel();
  model.mutable_graph()->mutable_node(0)->set_domain("com.example");
  expectError(model, "is of domain 'com.example', which the model neither");
  model = smallModel();
  model.add_training_info();
  expectError(model, "training information");
  model = smallModel();
  model.add_configuration();
  expectError(model, "device configurations");
  model = smallModel();
  model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name(
      "sparse");
  expectError(model, "sparse initializer 'sparse' is not supported");
}

TEST_F(OnnxFileTest, refusesNamesDefinedTwiceOrNever) {
  onnx::ModelProto model = smallModel();
  *model.mutable_graph()->add_initializer() = model.graph().initializer(0);
  expectError(model, "initializer 'b' is defined twice");
  model = smallModel();
  addValue(model.mutable_graph()->mutable_input(), "x");
  expectError(model, "input 'x' is defined twice");
  model = smallModel();
  addNode(*model.mutable_graph(), "Neg", {"x"}, {"s"}, "again");
  expectError(model,
              "node 'again' (Neg): defines 's', which is defined before");
  model = smallModel();
  addValue(model.mutable_graph()->mutable_output(), "z");
  expectError(model, "output 'z' of graph 'g' is defined nowhere");
  model = smallModel();
  model.mutable_graph()->mutable_initializer(0)->clear_name();
  expectError(model, "an initializer of graph 'g' has no name");
  model = smallModel();
  for (int i = 0; i < 2; ++i)
    model.mutable_graph()->mutable_node(0)->add_attribute()->set_name("axis");
  expectError(model, "has two attributes called 'axis'");
}

/// Every prefix of a model and many mutations of it: an error or a model, but
/// never a crash. Seeds are fixed, so that a failure repeats.
TEST_F(OnnxFileTest, survivesTruncationAndMutation) {
  onnx::ModelProto model = smallModel();
  onnx::TensorProto *typed = model.mutable_graph()->add_initializer();
  typed->set_name("t");
  typed->set_data_type(onnx::TensorProto::BFLOAT16);
  typed->add_dims(2);
  typed->add_int32_data(1);
  typed->add_int32_data(2);
  onnx::FunctionProto *function = model.add_functions();
  function->set_domain("f");
  function->set_name("Double");
  function->add_input("a");
  function->add_output("r");
  function->add_attribute("alpha");
  onnx::NodeProto *inner = function->add_node();
  inner->set_op_type("Add");
  inner->add_input("a");
  inner->add_input("a");
  inner->add_output("r");
  onnx::AttributeProto *reference = inner->add_attribute();
  reference->set_name("alpha");
  reference->set_ref_attr_name("alpha");
  onnx::NodeProto *call =
      addNode(*model.mutable_graph(), "Double", {"y"}, {"d"});
  call->set_domain("f");
  ASSERT_TRUE(succeeded(load(model)));

  const std::string bytes = model.SerializeAsString();
  unsigned refused = 0;
  for (size_t length = 0; length < bytes.size(); ++length)
    refused += failed(loadPath(
        folder.write("cut.onnx", llvm::StringRef(bytes).take_front(length))));
  // Only where a field ends can a prefix be a model.
  EXPECT_GT(refused, bytes.size() * 9 / 10);

  uint64_t state = 0x9e3779b97f4a7c15;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  for (int round = 0; round < 2000; ++round) {
    std::string mutated = bytes;
    for (unsigned count = 1 + next() % 4; count-- > 0;)
      mutated[next() % mutated.size()] = char(next());
    if (next() % 4 == 0)
      mutated.erase(next() % mutated.size(), 1 + next() % 8);
    File file = loadPath(folder.write("mutated.onnx", mutated));
    ASSERT_EQ(messages.size(), failed(file) ? 1u : 0u);
  }
}
