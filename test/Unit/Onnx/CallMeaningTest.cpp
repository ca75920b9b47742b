// The rules of lib/Onnx/CallMeaning.cpp: what calls mean in training and their
// nodes do not do. A line for each row of the table, and what is no doubt.
#include "TracedModel.h"

using namespace accel::onnxio;

namespace {
class CallMeaningTest : public TracedTest {
protected:
  /// A node of a call with `arguments` behind the tensor it computes with.
  static TracedModel oneCall(const char *nodeOp, const std::string &op,
                             const std::string &arguments,
                             const char *input = "used_w") {
    TracedModel traced({"w"});
    traced.use("w");
    traced.add(nodeOp, {input},
               call("r", "aten." + op, std::string("%") + input + arguments));
    return traced;
  }
};
} // namespace

TEST_F(CallMeaningTest, whatNodesDoNotDoIsDoubted) {
  const struct {
    const char *nodeOp, *op, *arguments, *message;
  } lines[] = {
      {"MatMul", "scaled_dot_product_attention", ", %x, %x, None, 0.5",
       "(scaled_dot_product_attention) drops weights of attention with "
       "probability 0.5"},
      {"MatMul", "scaled_dot_product_attention", ", %x, %x, None, 0.0", ""},
      {"Dropout", "scaled_dot_product_attention", ", %x, %x, None, 0.5", ""},
      {"MatMul", "scaled_dot_product_attention", ", %x, %x", ""},
      {"Identity", "native_dropout", ", 0.5, True",
       "(native_dropout) drops elements in training"},
      {"Identity", "dropout", ", 0.5, True",
       "(dropout) drops elements in training"},
      {"Identity", "dropout", ", 0.5, False", ""},
      {"Identity", "dropout", ", 0.0, True", ""},
      {"Dropout", "dropout", ", 0.5, True", ""},
      {"Conv", "batch_norm", ", %x, %x, %x, %x, True",
       "(batch_norm) normalizes by the statistics of the batch, and its nodes "
       "by running ones"},
      {"Conv", "native_batch_norm", ", %x, %x, %x, %x, True",
       "(native_batch_norm) normalizes by the statistics of the batch"},
      {"Conv", "_native_batch_norm_legit_functional", ", %x, %x, %x, %x, True",
       "_functional) normalizes by the statistics of the batch"},
      {"Conv", "batch_norm", ", %x, %x, %x, %x, False", ""},
      {"BatchNormalization", "batch_norm", ", %x, %x, %x, %x, True", ""},
      {"BatchNormalization", "batch_norm", ", %x, %x, %x, %x, False", ""},
      {"ReduceMean", "batch_norm", ", %x, %x, %x, %x, True", ""},
      {"Gather", "embedding", ", %x, -1, True, False",
       "(embedding) divides gradients by how often a row is picked"},
      {"Gather", "embedding", ", %x, -1, False, True",
       "(embedding) has sparse gradients"},
      {"Gather", "embedding", ", %x, -1, False, False", ""},
      {"Gather", "embedding_renorm_", ", %x, 1.0, 2.0",
       "renormalizes rows of an embedding in place"},
      {"Relu", "relu", ", 0.5, True", ""},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + line.arguments);
    std::vector<WantedDoubt> wanted;
    if (*line.message)
      wanted.push_back({Doubt::Meaning, {"w"}, line.message});
    expectDoubts(oneCall(line.nodeOp, line.op, line.arguments), wanted);
    // Where no parameter is, no gradient is.
    expectDoubts(oneCall(line.nodeOp, line.op, line.arguments, "x"), {});
  }
}

/// What acc-export refuses as well is not to be exported otherwise.
TEST_F(CallMeaningTest, whatNoExportKeepsHasARemedyOfItsOwn) {
  const struct {
    const char *nodeOp, *op, *arguments, *remedy;
  } lines[] = {
      {"MatMul", "scaled_dot_product_attention", ", %x, %x, None, 0.5", ""},
      {"Conv", "batch_norm", ", %x, %x, %x, %x, True", ""},
      {"Gather", "embedding", ", %x, -1, True, False",
       "leave 'scale_grad_by_freq' out"},
      {"Gather", "embedding", ", %x, -1, False, True", "leave 'sparse' out"},
      {"Gather", "embedding_renorm_", ", %x, 1.0, 2.0", "leave 'max_norm' out"},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + line.arguments);
    mlir::FailureOr<ParameterTable> table =
        identify(oneCall(line.nodeOp, line.op, line.arguments).model);
    ASSERT_TRUE(succeeded(table));
    ASSERT_EQ(table->doubts.size(), 1u);
    EXPECT_EQ(table->doubts[0].remedy.empty(), !*line.remedy);
    EXPECT_THAT(table->doubts[0].remedy, testing::StartsWith(line.remedy));
  }
}

/// Decompositions turn `detach` into `alias`; only the quoted line tells.
TEST_F(CallMeaningTest, anAliasThatMayHaveBeenADetach) {
  const struct {
    const char *op, *text;
    bool isDoubted;
  } lines[] = {
      {"alias", "y = h.detach()", true},
      {"alias", "y = h.contiguous()", false},
      {"clone", "y = h.detach()", false},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.text);
    TracedModel traced = oneCall("Identity", line.op, "");
    setTrace(traced.graph().mutable_node(1),
             std::string("File \"m.py\", line 7, in forward\n  ") + line.text);
    std::vector<WantedDoubt> wanted;
    if (line.isDoubted)
      wanted.push_back({Doubt::Meaning, {"w"}, "may have been a detach"});
    expectDoubts(traced, wanted);
  }
}

static const char kOutside[] = "File \"m.py\", line 7, in forward\n  y = x * w";
static const char kInside[] =
    "File \"m.py\", line 8, in forward\n  y = f(x)\n"
    "File \"<eval_with_key>.12\", line 5, in forward\n  mul = a * b";

TEST_F(CallMeaningTest, aRegionIsDoubtedOnceOfAllParameters) {
  auto twice = [](const char *first, const char *second, const char *third) {
    TracedModel traced({"v", "w"});
    traced.use("v");
    traced.use("w");
    setTrace(traced.graph().mutable_node(0), first);
    setTrace(traced.graph().mutable_node(1), second);
    setTrace(traced.add("Neg", {"x"}, call("neg", "aten.neg", "%x")), third);
    return traced;
  };
  const char message[] = "'used_v' (mul) was made in a region "
                         "(torch.no_grad() or autocast())";
  expectDoubts(twice(kInside, kInside, kOutside),
               {{Doubt::Meaning, {"v", "w"}, message}});
  expectDoubts(twice(kInside, kOutside, kOutside),
               {{Doubt::Meaning, {"v"}, message}});
  expectDoubts(twice(kOutside, kOutside, kOutside), {});
  // Each parameter is told once.
  TracedModel again({"w"});
  again.use("w");
  setTrace(again.graph().mutable_node(0), kInside);
  setTrace(again.add("Exp", {"used_w"}, call("exp", "aten.exp", "%used_w")),
           kInside);
  setTrace(again.add("Neg", {"x"}, call("neg", "aten.neg", "%x")), kOutside);
  expectDoubts(
      again, {{Doubt::Meaning, {"w"}, "'used_w' (mul) was made in a region"}});
  // No parameter goes into the region.
  expectDoubts(twice(kOutside, kOutside, kInside), {});
  // The whole program was traced twice.
  expectDoubts(twice(kInside, kInside, kInside), {});
}

TEST_F(CallMeaningTest, anAutogradFunctionIsDoubted) {
  auto madeAt = [](const char *apply, const char *function,
                   const std::string &file = "m.py") {
    TracedModel traced({"w"});
    traced.use("w");
    setTrace(traced.graph().mutable_node(0),
             "File \"" + file + "\", line 7, in forward\n  return " + apply +
                 "\nFile \"m.py\", line 3, in " + function +
                 "\n  return x * w");
    return traced;
  };
  expectDoubts(
      madeAt("Twice.apply(x)", "forward"),
      {{Doubt::Meaning, {"w"}, "made by the forward of an autograd function"}});
  expectDoubts(madeAt("Twice.apply(x)", "helper"), {});
  // A library's whose backward is the derivative; in its own file only.
  const std::string bloom =
      "/site-packages/transformers/models/bloom/modeling_bloom.py";
  expectDoubts(madeAt("GeLUFunction.apply(x)", "forward", bloom), {});
  for (const auto &[apply, file] :
       {std::pair("GeLUFunction.apply(x)", std::string("modeling_bloom.py")),
        std::pair("Twice.apply(x)", bloom)})
    expectDoubts(madeAt(apply, "forward", file),
                 {{Doubt::Meaning, {"w"}, "of an autograd function"}});
}

TEST_F(CallMeaningTest, gradientsStopAtDetachAndWhereTheFileSaysSo) {
  for (auto [op, stops] :
       {std::pair("detach", true), std::pair("detach_", true),
        std::pair("alias", false)}) {
    onnx::NodeProto node;
    setCall(&node, call("r", std::string("aten.") + op, "%x"));
    EXPECT_EQ(stopsGradient(node), stops) << op;
  }
  onnx::NodeProto node;
  EXPECT_FALSE(stopsGradient(node));
  setProperty(node.add_metadata_props(), "accel.stop_gradient", "1");
  EXPECT_TRUE(stopsGradient(node));
}

/// Random numbers are drawn by a dropout that has a ratio and is training, as
/// far as constants tell.
TEST_F(CallMeaningTest, dropoutsThatDraw) {
  const struct {
    const char *ratio, *training;
    bool draws;
  } lines[] = {
      {"half", "yes", true}, {"zero", "yes", false}, {"half", "zero", false},
      {"half", "", false},   {"x", "yes", true},     {"half", "x", true},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.ratio) + " " + line.training);
    TracedModel traced({"w"});
    traced.use("w");
    traced.hold("half", {}, {0.5});
    traced.hold("yes", {}, {1});
    traced.hold("zero", {}, {0});
    traced.add("Dropout", {"x", line.ratio, line.training},
               call("draw", "aten.dropout", "%x"));
    traced.add("Mul", {"o_1", "o_1"},
               call("mul_9", "aten.mul", "%draw, %draw_1"));
    std::vector<WantedDoubt> wanted;
    if (line.draws)
      wanted.push_back({Doubt::Meaning, {}, "made one draw of two"});
    expectDoubts(traced, wanted);
  }
}

TEST_F(CallMeaningTest, thePaddingOfAnEmbeddingIsTheCallsOwn) {
  auto padding = [](const std::string &op, const std::string &arguments,
                    const std::string &keywords = "") {
    onnx::NodeProto node;
    setCall(&node, call("r", op, arguments, keywords));
    return getPaddingIndex(node);
  };
  EXPECT_EQ(padding("aten.embedding", "%p_w, %x, 0"), 0);
  EXPECT_EQ(padding("aten.embedding", "%p_w, %x", "padding_idx: 3"), 3);
  for (const char *arguments :
       {"%p_w, %x", "%p_w, %x, -1", "%p_w, %x, None", "%p_w, %x, 1.5"})
    EXPECT_EQ(padding("aten.embedding", arguments), std::nullopt) << arguments;
  EXPECT_EQ(padding("aten.index", "%p_w, %x, 3"), std::nullopt);
  EXPECT_EQ(getPaddingIndex(onnx::NodeProto()), std::nullopt);
}

TEST_F(CallMeaningTest, labelSmoothingIsTheCallsOwn) {
  auto smoothing = [](const std::string &op, const std::string &arguments,
                      const std::string &keywords = "") {
    onnx::NodeProto node;
    setCall(&node, call("r", op, arguments, keywords));
    return getLabelSmoothing(node);
  };
  EXPECT_EQ(smoothing("aten.cross_entropy_loss", "%x, %y, None, 1, -100, 0.25"),
            0.25);
  EXPECT_EQ(
      smoothing("aten.cross_entropy_loss", "%x, %y", "label_smoothing: 0.25"),
      0.25);
  EXPECT_EQ(smoothing("aten.cross_entropy_loss", "%x, %y"), 0);
  EXPECT_EQ(smoothing("aten.nll_loss", "%x, %y, None, 1, -100, 0.25"), 0);
  EXPECT_EQ(getLabelSmoothing(onnx::NodeProto()), 0);
}
