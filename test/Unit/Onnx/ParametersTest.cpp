// Parameter identity: against the exports' own record (parameters.json, made
// from the PyTorch modules), and each rule on a model small enough to see it.
#include "TracedModel.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <set>

using namespace accel::onnxio;
using testing::ElementsAre;
using testing::HasSubstr;

namespace json = llvm::json;

namespace {
class ParametersTest : public TracedTest {};

/// A model beside its parameters.json.
class ParametersOfExport : public ParametersTest,
                           public testing::WithParamInterface<std::string> {};
} // namespace

static std::string modelsFolder() {
  if (const char *set = std::getenv("ACCEL_MODELS"))
    return set;
  return ACCEL_SOURCE_DIR "/../shared/models";
}

static json::Value initializersOf(const Parameter &parameter) {
  json::Array list;
  if (parameter.kind == ParameterKind::Parameter)
    for (const ParameterInitializer &held : parameter.initializers)
      list.push_back(
          json::Object{{"initializer", held.initializer},
                       {"permutation", json::Array(held.permutation)}});
  return list;
}

TEST_P(ParametersOfExport, equalTheRecord) {
  std::string folder = modelsFolder() + "/train/" + GetParam();
  if (!llvm::sys::fs::exists(folder))
    GTEST_SKIP() << "needs '" << folder << "'";
  auto buffer = llvm::MemoryBuffer::getFile(folder + "/parameters.json");
  ASSERT_TRUE(bool(buffer));
  llvm::Expected<json::Value> parsed = json::parse((*buffer)->getBuffer());
  ASSERT_TRUE(bool(parsed));
  const json::Object &record = *parsed->getAsObject();
  const json::Object &wanted = *record.getObject("parameters");
  const json::Object &names = *record.getObject("names of each parameter");

  loaded = loadPath(folder + "/model.onnx");
  ASSERT_TRUE(succeeded(loaded));
  // What no metadata tells, and the user must.
  IdentifyOptions options;
  if (llvm::StringRef(GetParam()).starts_with("bert"))
    options.ties.push_back(
        {"model.cls.predictions.bias", "model.cls.predictions.decoder.bias"});
  mlir::FailureOr<ParameterTable> table = identifyLoaded(options);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->parameters.size(), wanted.size());
  for (const auto &[name, initializers] : wanted) {
    const Parameter *found = table->find(name);
    ASSERT_TRUE(found) << name.str();
    EXPECT_EQ(found->name, name.str());
    EXPECT_EQ(initializersOf(*found), initializers) << name.str();
    std::vector<std::string> all = found->aliases, expected;
    all.insert(all.begin(), found->name);
    if (const json::Array *several = names.getArray(name))
      for (const json::Value &one : *several)
        expected.push_back(one.getAsString()->str());
    else
      expected.push_back(name.str());
    EXPECT_EQ(all, expected);
  }
  std::set<std::string> undone;
  for (const json::Value &name :
       *record.getArray("folded away by the exporter, held constant in the "
                        "references")) {
    // Gemma's norms, of which the line that uses them says how they were.
    const Parameter *found = table->find(*name.getAsString());
    EXPECT_EQ(found->kind, llvm::StringRef(GetParam()).starts_with("gemma3")
                               ? ParameterKind::Unfolded
                               : ParameterKind::FoldedAway);
    for (const ParameterInitializer &held : found->initializers)
      undone.insert(held.initializer);
  }
  for (const auto &[name, shape] :
       *record.getObject("constants that are not parameters"))
    EXPECT_TRUE(
        llvm::any_of(table->constants,
                     [&, n = name.str()](auto &c) { return c.first == n; }) ||
        undone.count(name.str()))
        << name.str();
  // Parameters that the exporter merged or removed are there, apart.
  if (const json::Array *merged = record.getArray(
          "all one value, so merged or, when zero, removed by the exporter; "
          "trained apart in the references"))
    for (const json::Value &name : *merged) {
      const Parameter *found = table->find(*name.getAsString());
      EXPECT_TRUE(found->kind == ParameterKind::Merged ||
                  found->kind == ParameterKind::Removed);
      EXPECT_TRUE(found->hasShape);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Train, ParametersOfExport,
    testing::Values("bert_eager_os18_dyn_raw", "bert_sdpa_os23_dyn",
                    "bert_sdpa_osdefault_static", "gemma3_sdpa_os23_dyn",
                    "gemma3_sdpa_osdefault_static", "gpt2_eager_os18_dyn_raw",
                    "gpt2_fresh_sdpa_osdefault_dyn", "gpt2_sdpa_os23_dyn",
                    "gpt2_sdpa_osdefault_static", "llama_eager_os18_dyn_raw",
                    "llama_fresh_sdpa_osdefault_dyn", "llama_sdpa_os23_dyn",
                    "llama_sdpa_osdefault_static", "resnet_eager_os18_dyn_raw"),
    [](const auto &info) { return info.param; });

/// Every model there is gets a table: no operator is converted for it.
TEST_F(ParametersTest, worksOnEveryModel) {
  if (!llvm::sys::fs::exists(modelsFolder() + "/export"))
    GTEST_SKIP() << "needs '" << modelsFolder() << "/export'";
  std::error_code code;
  unsigned count = 0;
  for (llvm::sys::fs::recursive_directory_iterator it(modelsFolder(), code),
       end;
       it != end && !code; it.increment(code)) {
    if (llvm::sys::path::filename(it->path()) != "model.onnx")
      continue;
    loaded = loadPath(it->path());
    ASSERT_TRUE(succeeded(loaded)) << it->path();
    EXPECT_TRUE(succeeded(identifyLoaded())) << it->path();
    ++count;
  }
  EXPECT_GT(count, 90u);
}

TEST_F(ParametersTest, aTiedWeightThatWasSplitIsOneParameter) {
  onnx::ModelProto model =
      traced(parameter("m.wte.weight") + parameter("m.head.weight"));
  onnx::GraphProto &graph = *model.mutable_graph();
  addInitializer(graph, "m.head.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  addInitializer(graph, "val_1", {3, 2}, {1, 4, 2, 5, 3, 6});
  setCall(addNode(graph, "Gather", {"m.head.weight", "x"}, {"e"}),
          call("embedding", "aten.embedding", "%p_m_head_weight, %x"), "m.wte");
  setCall(addNode(graph, "MatMul", {"e", "val_1"}, {"y"}),
          call("linear", "aten.linear", "%embedding, %p_m_head_weight"),
          "m.head");
  mlir::FailureOr<ParameterTable> table = identify(model);
  ASSERT_TRUE(succeeded(table));
  ASSERT_EQ(table->parameters.size(), 1u);
  const Parameter &found = table->parameters[0];
  EXPECT_EQ(found.name, "m.wte.weight");
  EXPECT_THAT(found.aliases, ElementsAre("m.head.weight"));
  ASSERT_EQ(found.initializers.size(), 2u);
  EXPECT_THAT(found.initializers[1].permutation, ElementsAre(1, 0));
  EXPECT_THAT(found.shape, ElementsAre(2, 3));
  const onnx::NodeProto &matmul = (*loaded)->graph().node(1);
  ASSERT_TRUE(table->useAt(matmul, 1));
  EXPECT_THAT(table->useAt(matmul, 1)->permutation, ElementsAre(1, 0));
  EXPECT_FALSE(table->useAt(matmul, 0));

  fillRaw(*graph.mutable_initializer(1), {1, 4, 2, 5, 3, 7});
  EXPECT_TRUE(failed(identify(model)));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0],
              HasSubstr("initializers 'm.head.weight' and 'val_1' both stand "
                        "for parameter 'm.wte.weight', but hold different "
                        "values; export with acc-export, or with "));
  // An export that no optimizer touched cannot be made anew that way.
  addNode(graph, "Constant", {}, {"c"});
  EXPECT_TRUE(failed(identify(model)));
  EXPECT_THAT(messages[0], testing::EndsWith("; export with acc-export"));
}

TEST_F(ParametersTest, mergedAndRemovedParametersAreKeptApart) {
  onnx::ModelProto model =
      traced(parameter("a.weight") + parameter("b.weight") +
             parameter("c.weight") + parameter("c.bias"));
  onnx::GraphProto &graph = *model.mutable_graph();
  addInitializer(graph, "a.weight", {3}, {1, 1, 1});
  addInitializer(graph, "val_9", {3, 2}, {1, 2, 3, 4, 5, 6});
  setCall(addNode(graph, "Mul", {"a.weight", "x"}, {"s"}),
          call("mul", "aten.mul", "%p_a_weight, %x"));
  setCall(addNode(graph, "Mul", {"s", "a.weight"}, {"t"}),
          call("mul_1", "aten.mul", "%mul, %p_b_weight"));
  setCall(addNode(graph, "MatMul", {"t", "val_9"}, {"y"}),
          call("linear", "aten.linear", "%mul_1, %p_c_weight, %p_c_bias"));
  mlir::FailureOr<ParameterTable> table = identify(model);
  ASSERT_TRUE(succeeded(table));
  ASSERT_EQ(table->parameters.size(), 4u);
  EXPECT_EQ(table->parameters[0].kind, ParameterKind::Merged);
  EXPECT_EQ(table->parameters[1].kind, ParameterKind::Merged);
  EXPECT_EQ(table->parameters[1].initializers[0].initializer, "a.weight");
  const auto &nodes = (*loaded)->graph().node();
  EXPECT_EQ(table->useAt(nodes[0], 0)->parameter, 0u);
  EXPECT_EQ(table->useAt(nodes[1], 1)->parameter, 1u);
  EXPECT_EQ(table->parameters[3].kind, ParameterKind::Removed);
  EXPECT_THAT(table->parameters[3].shape, ElementsAre(2));
  ASSERT_EQ(table->restored.size(), 1u);
  EXPECT_EQ(table->restored[0].node, &nodes[2]);
  EXPECT_EQ(table->restored[0].operand, -1);
  EXPECT_EQ(table->restored[0].parameter, 3u);
}

TEST_F(ParametersTest, foldedParametersAndBuffersAreNotTrained) {
  // 1 + w was folded into `add`; the rotary table is a buffer; a convolution
  // took over the batch norm behind it, under the convolution's own name.
  onnx::ModelProto model =
      traced(parameter("norm.weight") + parameter("conv.weight") +
             parameter("bn.weight") +
             "b_inv_freq: BUFFER target='rope.inv_freq' persistent=False\n");
  onnx::GraphProto &graph = *model.mutable_graph();
  addInitializer(graph, "add", {3}, {1, 2, 3});
  addInitializer(graph, "freq", {3}, {1, 2, 3});
  addInitializer(graph, "conv.weight", {1, 1, 1}, {1});
  setCall(addNode(graph, "Mul", {"x", "add"}, {"s"}),
          call("mul", "aten.mul", "%x, %add"));
  setCall(addNode(graph, "Mul", {"s", "freq"}, {"t"}),
          call("mul_1", "aten.mul", "%mul, %b_inv_freq"));
  setCall(addNode(graph, "Conv", {"t", "conv.weight"}, {"y"}),
          call("bn", "aten._native_batch_norm_legit_no_training",
               "%conv1d, %p_bn_weight, %p_bn_bias, %b_m, %b_v"));
  mlir::FailureOr<ParameterTable> table = identify(model);
  ASSERT_TRUE(succeeded(table));
  ASSERT_EQ(table->parameters.size(), 3u);
  for (const Parameter &parameter : table->parameters) {
    EXPECT_EQ(parameter.kind, ParameterKind::FoldedAway);
    EXPECT_THAT(parameter.why, HasSubstr("optimize=False"));
  }
  ASSERT_EQ(table->constants.size(), 3u);
  EXPECT_EQ(table->constants[1].second, "buffer 'rope.inv_freq'");
  EXPECT_TRUE(table->uses.empty());
}

TEST_F(ParametersTest, anInputThatNothingReadsMayBeAnother) {
  TracedModel traced({"w"});
  traced.use("w");
  *traced.graph().add_input() = traced.graph().input(0);
  traced.graph().mutable_input(1)->set_name("labels");
  mlir::FailureOr<ParameterTable> table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  ASSERT_EQ(table->notes.size(), 1u);
  EXPECT_THAT(table->notes[0],
              HasSubstr("nothing reads input 'labels', and 'x' is of its "
                        "type"));
  // One of another type is none of them.
  traced.graph()
      .mutable_input(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::INT64);
  table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_TRUE(table->notes.empty());
  // One that is read is none.
  *traced.graph().mutable_input(1)->mutable_type() =
      traced.graph().input(0).type();
  traced.add("Neg", {"labels"}, call("neg", "aten.neg", "%labels"));
  table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_TRUE(table->notes.empty());
}

TEST_F(ParametersTest, tiesThatNoMetadataTellsAreAskedFor) {
  onnx::ModelProto model =
      traced(parameter("m.bias") + parameter("m.decoder.bias"));
  onnx::GraphProto &graph = *model.mutable_graph();
  addInitializer(graph, "m.decoder.bias", {3}, {1, 2, 3});
  setCall(addNode(graph, "Add", {"x", "m.decoder.bias"}, {"y"}),
          call("linear", "aten.linear", "%x, %w, %p_m_decoder_bias"),
          "m.decoder");
  mlir::FailureOr<ParameterTable> table = identify(model);
  ASSERT_TRUE(succeeded(table));
  ASSERT_EQ(table->parameters.size(), 1u);
  ASSERT_EQ(table->notes.size(), 1u);
  EXPECT_THAT(table->notes[0],
              HasSubstr("another name of 'm.decoder.bias', say "
                        "--tie m.bias=m.decoder.bias"));

  table = identify(model, {{{"m.decoder.bias", "m.bias"}}});
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->parameters[0].name, "m.bias");
  EXPECT_THAT(table->parameters[0].aliases, ElementsAre("m.decoder.bias"));
  EXPECT_TRUE(table->notes.empty());

  // Where there are several, all are named.
  onnx::ModelProto several =
      traced(parameter("m.bias") + parameter("m.norm.bias") +
             parameter("m.decoder.bias"));
  *several.mutable_graph()->mutable_initializer() = graph.initializer();
  *several.mutable_graph()->mutable_node() = graph.node();
  addInitializer(*several.mutable_graph(), "m.norm.bias", {3}, {1, 2, 4});
  setCall(addNode(*several.mutable_graph(), "Add", {"x", "m.norm.bias"}, {"z"}),
          call("add", "aten.add", "%x, %p_m_norm_bias"), "m.norm");
  table = identify(several);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->parameters.size(), 2u);
  ASSERT_EQ(table->notes.size(), 1u);
  EXPECT_THAT(table->notes[0],
              HasSubstr("another name of one of 'm.norm.bias', "
                        "'m.decoder.bias', say --tie m.bias=NAME"));

  EXPECT_TRUE(failed(identify(model, {{{"m.bias", "m.nothing"}}})));
  EXPECT_THAT(messages[0], HasSubstr("found none called 'm.nothing'"));
}

TEST_F(ParametersTest, withoutMetadataNameAndUseDecide) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto &graph = *model.mutable_graph();
  addValue(graph.mutable_input(), "x");
  addInitializer(graph, "m.wte.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  addInitializer(graph, "m.ln.weight", {3}, {1, 1, 1});
  addInitializer(graph, "onnx::MatMul_7", {3, 2}, {1, 4, 2, 5, 3, 6});
  addInitializer(graph, "m.rotary_emb.inv_freq", {3}, {1, 2, 3});
  addInitializer(graph, "onnx::Mul_8", {3}, {1, 2, 3});
  addInitializer(graph, "onnx::MatMul_9", {2, 2}, {1, 4, 2, 5});
  addNode(graph, "Identity", {"m.ln.weight"}, {"m.ln_2.weight"});
  addNode(graph, "Gather", {"m.wte.weight", "x"}, {"e"});
  addNode(graph, "Mul", {"e", "m.ln.weight"}, {"f"});
  addNode(graph, "Mul", {"f", "m.ln_2.weight"}, {"g"});
  addNode(graph, "Mul", {"g", "m.rotary_emb.inv_freq"}, {"h"});
  addNode(graph, "Mul", {"h", "onnx::Mul_8"}, {"i"});
  addNode(graph, "MatMul", {"i", "onnx::MatMul_7"}, {"j"});
  addNode(graph, "MatMul", {"j", "onnx::MatMul_9"}, {"y"});
  mlir::FailureOr<ParameterTable> table = identify(model);
  ASSERT_TRUE(succeeded(table));
  std::vector<std::string> names;
  for (const Parameter &parameter : table->parameters)
    names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("m.wte.weight", "m.ln.weight", "m.ln_2.weight",
                                 "onnx::MatMul_9"));
  // The logits' weight is the table, transposed by the exporter.
  ASSERT_EQ(table->parameters[0].initializers.size(), 2u);
  EXPECT_EQ(table->parameters[0].initializers[1].initializer, "onnx::MatMul_7");
  EXPECT_EQ(table->parameters[2].kind, ParameterKind::Merged);
  EXPECT_EQ(table->constants.size(), 2u);
}

TEST_F(ParametersTest, reportIsOneArrayOfTheAgreedKeys) {
  onnx::ModelProto model = traced(parameter("w") + parameter("gone"));
  onnx::GraphProto &graph = *model.mutable_graph();
  addInitializer(graph, "val", {3, 2}, {1, 2, 3, 4, 5, 6});
  setCall(addNode(graph, "MatMul", {"x", "val"}, {"y"}),
          call("linear", "aten.linear", "%x, %p_w"));
  mlir::FailureOr<ParameterTable> table = identify(model);
  ASSERT_TRUE(succeeded(table));
  std::string text;
  llvm::raw_string_ostream os(text);
  printParameterReport(*table, os, /*json=*/true);
  llvm::Expected<json::Value> parsed = json::parse(text);
  ASSERT_TRUE(bool(parsed));
  const json::Array &list = *parsed->getAsArray();
  ASSERT_EQ(list.size(), 2u);
  json::Object first = *list[0].getAsObject();
  EXPECT_FALSE(first.getString("why")->empty());
  first.erase("why");
  EXPECT_EQ(json::Value(std::move(first)),
            json::Value(json::Object{
                {"name", "w"},
                {"aliases", json::Array{}},
                {"shape", json::Array{2, 3}},
                {"initializers",
                 json::Array{json::Object{{"initializer", "val"},
                                          {"permutation", json::Array{1, 0}}}}},
                {"trained", true}}));
  EXPECT_EQ(*list[1].getAsObject()->get("shape"), json::Value(nullptr));
  EXPECT_EQ(*list[1].getAsObject()->get("trained"), json::Value(false));

  text.clear();
  printParameterReport(*table, os, /*json=*/false);
  EXPECT_THAT(text, HasSubstr("val (1,0)"));
  EXPECT_THAT(text, HasSubstr("(folded away)"));
}

/// Metadata is text from a file: any text must do.
TEST_F(ParametersTest, survivesMutatedMetadata) {
  std::string signature = parameter("a.weight") + parameter("b.weight");
  std::string traceText =
      call("linear", "aten.linear", "%x, %p_a_weight, [1, 'a)b', {k: 2}], %y");
  uint64_t state = 0x2545f4914f6cdd1d;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  auto mutate = [&](std::string text) {
    for (unsigned count = next() % 4; count-- > 0;)
      text[next() % text.size()] = "%(),'\"[]{}:= \\.x"[next() % 16];
    return text.substr(0, 1 + next() % text.size());
  };
  for (int round = 0; round < 1000; ++round) {
    onnx::ModelProto model = traced(mutate(signature));
    onnx::GraphProto &graph = *model.mutable_graph();
    addInitializer(graph, "a.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
    setCall(addNode(graph, "MatMul", {"x", "a.weight"}, {"y"}),
            mutate(traceText), mutate("m.wte"));
    ASSERT_TRUE(succeeded(identify(model)));
  }
}
