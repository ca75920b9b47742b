// What lib/Onnx/RestoreFolded.cpp computes again from a parameter: the tables
// of operators, a line for each, and what bytes must show.
#include "TracedModel.h"
#include <cmath>
#include <cstring>

using namespace accel::onnxio;

namespace {
class RestoreFoldedTest : public TracedTest {
protected:
  /// A 2 x 3 parameter `w`, as it is or in one of the ways in which exporters
  /// fold.
  static std::vector<float> valuesFor(const std::string &kind) {
    std::vector<float> values{0.5f, -1.5f, 2.5f, -3.5f, 4.5f, -5.5f};
    if (kind == "permute")
      return {0.5f, -3.5f, -1.5f, 4.5f, 2.5f, -5.5f};
    if (kind == "slice")
      return {-3.5f, 4.5f, -5.5f};
    for (float &value : values)
      value = kind == "scale"    ? value * 3
              : kind == "square" ? value * value
                                 : value;
    return values;
  }
  static std::vector<int64_t> shapeFor(const std::string &kind) {
    if (kind == "permute")
      return {3, 2};
    return kind == "slice" ? std::vector<int64_t>{1, 3}
                           : std::vector<int64_t>{2, 3};
  }
  /// Expects that operand `operand` of node 1 is `w` after one step of that
  /// kind (none of `copy`), or, where `restored` is false, that it is doubted.
  void expectSteps(const TracedModel &traced, int operand,
                   const std::string &kind, bool restored) {
    SCOPED_TRACE(kind);
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    const ParameterUse *use = table->useAt(node(1), operand);
    ASSERT_EQ(use != nullptr, restored);
    if (!restored) {
      ASSERT_EQ(table->doubts.size(), 1u);
      EXPECT_EQ(table->doubts[0].kind, Doubt::Folded);
      EXPECT_EQ(table->doubts[0].parameters, std::vector<std::string>{"w"});
      EXPECT_THAT(table->doubts[0].message,
                  testing::HasSubstr("computed by the exporter from parameter "
                                     "'w'"));
      return;
    }
    EXPECT_TRUE(table->doubts.empty());
    if (kind == "copy") {
      EXPECT_TRUE(use->steps.empty());
      return;
    }
    ASSERT_EQ(use->steps.size(), 1u);
    const ParameterStep &step = use->steps[0];
    if (kind == "permute") {
      EXPECT_EQ(step.kind, ParameterStep::Permute);
      EXPECT_THAT(step.values, testing::ElementsAre(1, 0));
    } else if (kind == "slice") {
      EXPECT_EQ(step.kind, ParameterStep::Slice);
      EXPECT_THAT(step.values, testing::ElementsAre(0, 1, 1));
    } else if (kind == "scale") {
      EXPECT_EQ(step.kind, ParameterStep::Scale);
      EXPECT_EQ(step.number, 3);
    } else {
      EXPECT_EQ(step.kind, ParameterStep::Square);
    }
  }
  static constexpr const char *kinds[] = {"copy", "permute", "slice", "scale",
                                          "square"};
  /// Which kinds a set of steps ("layout", "scale", "square", "product", "")
  /// allows. A copy comes of arithmetic only where that changes nothing today.
  static bool allows(const std::string &steps, const std::string &kind) {
    return kind == steps ||
           (steps == "product" && (kind == "scale" || kind == "square")) ||
           (steps == "layout" &&
            (kind == "copy" || kind == "permute" || kind == "slice"));
  }
};

struct Line {
  const char *op, *steps;
};
} // namespace

TEST_F(RestoreFoldedTest, aCallThatIsGoneAllowsTheStepsOfItsName) {
  const Line lines[] = {
      {"permute", "layout"},    {"transpose", "layout"},
      {"t", "layout"},          {"numpy_t", "layout"},
      {"slice", "layout"},      {"select", "layout"},
      {"view", "layout"},       {"_unsafe_view", "layout"},
      {"reshape", "layout"},    {"unsqueeze", "layout"},
      {"squeeze", "layout"},    {"flatten", "layout"},
      {"unflatten", "layout"},  {"narrow", "layout"},
      {"clone", "layout"},      {"alias", "layout"},
      {"contiguous", "layout"}, {"expand", "layout"},
      {"mul", "product"},       {"div", "scale"},
      {"neg", "scale"},         {"pow", "square"},
      {"square", "square"},     {"relu", ""},
      {"detach", ""},           {"add", ""},
      {"index_select", ""},
  };
  for (const Line &line : lines)
    for (const char *kind : kinds) {
      SCOPED_TRACE(line.op);
      std::string gone = std::string(line.op) + "_1";
      TracedModel traced({"w"});
      traced.use("w", {2, 3}, valuesFor("copy"));
      traced.hold(gone, shapeFor(kind), valuesFor(kind));
      traced.foldedFrom(gone, {"w"});
      traced.add("MatMul", {"x", gone},
                 call("matmul", "aten.matmul", "%x, %" + gone));
      expectSteps(traced, 1, kind, allows(line.steps, kind));
    }
}

/// The operator of a value inside a call is the call's own.
TEST_F(RestoreFoldedTest, aValueWithinACallAllowsTheStepsOfTheCall) {
  const struct {
    const char *call, *op, *steps;
  } lines[] = {
      {"linear", "MatMul", "layout"}, {"matmul", "MatMul", "layout"},
      {"mm", "MatMul", "layout"},     {"addmm", "Transpose", "layout"},
      {"index", "Gather", "layout"},  {"add", "Add", "scale"},
      {"sub", "Sub", "scale"},        {"rsub", "Sub", "scale"},
      {"embedding", "Gather", ""},    {"exp", "Exp", ""},
  };
  for (const auto &line : lines)
    for (const char *kind : kinds) {
      SCOPED_TRACE(line.call);
      TracedModel traced({"w"});
      traced.use("w", {2, 3}, valuesFor("copy"));
      traced.hold("val_9", shapeFor(kind), valuesFor(kind));
      // From more than the parameter: it is not the argument as it was.
      traced.foldedFrom("val_9", {"w", "val_8"});
      // The last argument, and the second one, is the parameter.
      traced.add(
          line.op, {"val_9", "val_9"},
          call("r", std::string("aten.") + line.call, "%p_w, %p_w, %p_w"));
      mlir::FailureOr<ParameterTable> table = identify(traced.model);
      ASSERT_TRUE(succeeded(table));
      bool restored = allows(line.steps, kind);
      for (unsigned operand : {0, 1})
        EXPECT_EQ(table->useAt(node(1), operand) != nullptr, restored)
            << kind << " " << operand;
      EXPECT_EQ(table->doubts.empty(), restored) << kind;
    }
}

/// Every call on the way must allow what was done.
TEST_F(RestoreFoldedTest, allCallsOnTheWayAreAsked) {
  for (auto [between, restored] :
       {std::pair("permute", true), std::pair("detach", false),
        std::pair("relu_2", false), std::pair("val_3", true)}) {
    SCOPED_TRACE(between);
    TracedModel traced({"w"});
    traced.use("w", {2, 3}, valuesFor("copy"));
    traced.hold("view", {3, 2}, valuesFor("permute"));
    traced.foldedFrom("view", {"w", between});
    traced.add("MatMul", {"x", "view"},
               call("matmul", "aten.matmul", "%x, %view"));
    expectSteps(traced, 1, "permute", restored);
  }
}

TEST_F(RestoreFoldedTest, otherInputsOnTheWayForbidIt) {
  TracedModel traced({"w"}, "b_m: BUFFER target='m' persistent=True\n");
  traced.use("w", {2, 3}, valuesFor("copy"));
  traced.hold("mul_7", {2, 3}, valuesFor("scale"));
  traced.foldedFrom("mul_7", {"w", "m"});
  traced.add("MatMul", {"x", "mul_7"},
             call("matmul", "aten.matmul", "%x, %mul_7"));
  expectSteps(traced, 1, "scale", false);
}

/// Several ways to read the same bytes are no way.
TEST_F(RestoreFoldedTest, repeatedElementsAreNoProof) {
  TracedModel traced({"w"});
  traced.use("w", {2, 3}, {1, 2, 1, 2, 1, 2});
  traced.hold("slice_1", {2, 1}, {1, 2});
  traced.foldedFrom("slice_1", {"w"});
  traced.add("MatMul", {"x", "slice_1"},
             call("matmul", "aten.matmul", "%x, %slice_1"));
  expectSteps(traced, 1, "slice", false);
}

/// 4 is 2 * 2 and 2 squared, and 8 is 4 * 2 and 2 cubed.
TEST_F(RestoreFoldedTest, powersOfOneMagnitudeAreMultiples) {
  for (auto [op, kind, factor, restored] :
       {std::tuple("mul_1", "square", 2.0f, false),
        std::tuple("mul_1", "scale", 3.0f, false),
        std::tuple("div_1", "scale", 3.0f, true)}) {
    SCOPED_TRACE(op);
    std::vector<float> values{2, -2, 2, -2, -2, 2}, folded;
    for (float value : values)
      folded.push_back(kind == std::string("square") ? value * value
                                                     : value * factor);
    TracedModel traced({"w"});
    traced.use("w", {2, 3}, values);
    traced.hold(op, {2, 3}, folded);
    traced.foldedFrom(op, {"w"});
    traced.add("MatMul", {"x", op},
               call("matmul", "aten.matmul", std::string("%x, %") + op));
    expectSteps(traced, 1, kind, restored);
  }
}

/// Where the initializer is the parameter's own, the calls that are gone passed
/// it on as it was, or nothing says so.
TEST_F(RestoreFoldedTest, aParameterBehindACallThatIsGone) {
  for (auto [gone, restored] :
       {std::pair("clone", true), std::pair("relu", false)}) {
    SCOPED_TRACE(gone);
    TracedModel traced({"w"});
    traced.use("w", {2, 3}, valuesFor("copy"));
    traced.add("MatMul", {"x", "w"},
               call("matmul", "aten.matmul", std::string("%x, %") + gone));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_EQ(table->useAt(node(1), 1) != nullptr, restored);
    ASSERT_EQ(table->doubts.size(), 1u);
    EXPECT_EQ(table->doubts[0].kind,
              restored ? Doubt::Possible : Doubt::Folded);
  }
}

/// What is not the parameter's own shape, order, type or arithmetic.
TEST_F(RestoreFoldedTest, bytesThatAreAlikeAndNotTheSame) {
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  const struct {
    const char *what, *gone;
    Tensor parameter, folded;
    bool restored;
  } lines[] = {
      {"more elements than there are",
       "slice_1",
       {{3}, {1, 2, 3}},
       {{2, 3}, {1, 2, 3, 1, 2, 3}},
       false},
      {"repetition",
       "expand_1",
       {{3}, {1, 2, 3}},
       {{2, 3}, {1, 2, 3, 1, 2, 3}},
       true},
      {"repetition of other numbers",
       "expand_1",
       {{3}, {1, 2, 3}},
       {{2, 3}, {1, 2, 3, 1, 2, 4}},
       false},
      {"repetition of each element",
       "expand_1",
       {{3}, {1, 2, 3}},
       {{3, 2}, {1, 1, 2, 2, 3, 3}},
       false},
      {"no elements", "slice_1", {{3}, {1, 2, 3}}, {{0}, {}}, false},
      {"of no elements", "slice_1", {{0, 3}, {}}, {{1}, {0.5f}}, false},
      {"a slice that is scaled",
       "mul_1",
       {{2, 2}, {1, 2, 3, 5}},
       {{1, 2}, {9, 15}},
       false},
      {"a permutation that is scaled",
       "mul_1",
       {{2, 2}, {1, 2, 3, 5}},
       {{2, 2}, {3, 9, 6, 15}},
       false},
      {"a factor of all but the last",
       "mul_1",
       {{3}, {1, 2, 0}},
       {{3}, {3, 6, 0}},
       true},
      {"no factor", "mul_1", {{3}, {1, 2, 3}}, {{3}, {3, 6, 8}}, false},
      {"a factor that is too large",
       "div_1",
       {{2}, {1e38f, 2e38f}},
       {{2}, {INFINITY, INFINITY}},
       false},
      {"a factor of nothing", "mul_1", {{2}, {0, 0}}, {{2}, {1, 1}}, false},
      {"six dimensions",
       "permute_1",
       {{1, 1, 1, 1, 2, 2}, {1, 2, 3, 4}},
       {{1, 1, 1, 1, 2, 2}, {1, 3, 2, 4}},
       false},
      {"five dimensions",
       "permute_1",
       {{1, 1, 1, 2, 2}, {1, 2, 3, 4}},
       {{1, 1, 1, 2, 2}, {1, 3, 2, 4}},
       true},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(line.what);
    TracedModel traced({"w"});
    traced.use("w", line.parameter.shape, line.parameter.values);
    traced.hold(line.gone, line.folded.shape, line.folded.values);
    traced.foldedFrom(line.gone, {"w"});
    traced.add("MatMul", {"x", line.gone},
               call("r", "aten.matmul", std::string("%x, %") + line.gone));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_EQ(table->useAt(node(1), 1) != nullptr, line.restored);
    EXPECT_EQ(table->doubts.empty(), line.restored);
  }
}

/// Arithmetic is tried in f32, and nothing across types.
TEST_F(RestoreFoldedTest, typesAreTheParameters) {
  auto restores = [&](int32_t parameterType, int32_t foldedType,
                      const char *gone, const std::vector<double> &folded) {
    TracedModel traced({"w"});
    traced.use("w", {2}, {1, 2});
    traced.hold(gone, {int64_t(folded.size())});
    traced.foldedFrom(gone, {"w"});
    const std::vector<double> values{1, 2};
    auto set = [&](int index, int32_t type, const std::vector<double> &list) {
      onnx::TensorProto *tensor = traced.graph().mutable_initializer(index);
      tensor->set_data_type(type);
      if (type == onnx::TensorProto::DOUBLE)
        tensor->set_raw_data(list.data(), list.size() * sizeof(double));
      else
        fillRaw(*tensor, {list.begin(), list.end()});
    };
    set(0, parameterType, values);
    set(1, foldedType, folded);
    traced.add("MatMul", {"x", gone},
               call("r", "aten.matmul", std::string("%x, %") + gone));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    EXPECT_TRUE(succeeded(table));
    return table->useAt(node(1), 1) != nullptr;
  };
  const int32_t f32 = onnx::TensorProto::FLOAT, f64 = onnx::TensorProto::DOUBLE;
  EXPECT_TRUE(restores(f32, f32, "mul_1", {3, 6}));
  EXPECT_TRUE(restores(f64, f64, "view_1", {1, 2}));
  EXPECT_FALSE(restores(f64, f64, "mul_1", {3, 6}));
  EXPECT_FALSE(restores(f64, f64, "mul_1", {1, 5}));
  // The bytes of 1.0f and 2.0f, read as one number.
  double both;
  const float floats[] = {1, 2};
  std::memcpy(&both, floats, sizeof(both));
  EXPECT_FALSE(restores(f32, f64, "view_1", {both}));
}

TEST_F(RestoreFoldedTest, anotherShapeIsAStep) {
  TracedModel traced({"w"});
  traced.use("w", {2, 3}, valuesFor("copy"));
  traced.hold("view_1", {6}, valuesFor("copy"));
  traced.foldedFrom("view_1", {"w"});
  traced.add("MatMul", {"x", "view_1"},
             call("r", "aten.matmul", "%x, %view_1"));
  mlir::FailureOr<ParameterTable> table = identify(traced.model);
  ASSERT_TRUE(succeeded(table));
  const ParameterUse *use = table->useAt(node(1), 1);
  ASSERT_TRUE(use);
  ASSERT_EQ(use->steps.size(), 1u);
  EXPECT_EQ(use->steps[0].kind, ParameterStep::Reshape);
  EXPECT_THAT(use->steps[0].values, testing::ElementsAre(6));
}
