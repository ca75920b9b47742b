// Parameters of which the file holds only what was computed from them: what the
// names of the calls that are gone, and the line that uses it, must say.
#include "TracedModel.h"
#include <algorithm>
#include <cmath>

using namespace accel::onnxio;
using llvm::StringRef;

namespace {
class UndoFoldsTest : public TracedTest {
protected:
  struct Fold {
    /// What the call that is gone is called, and what it was computed from.
    std::string name;
    std::vector<std::string> from;
    std::vector<int64_t> shape;
    /// The line that uses it.
    std::string line = "return x * self.w";
    std::string module = "";
  };
  static TracedModel fold(const Fold &fold) {
    std::string parameter = fold.module.empty() ? "w" : fold.module + ".w";
    TracedModel traced({parameter});
    traced.hold(fold.name, fold.shape);
    std::vector<std::string> from = fold.from;
    from.push_back(parameter);
    traced.foldedFrom(fold.name, from);
    onnx::NodeProto *node =
        addNode(traced.graph(), "Mul", {"x", fold.name}, {"o"});
    setCall(node, call("mul", "aten.mul", "%x, %" + fold.name), fold.module);
    setTrace(node, "File \"m.py\", line 7, in forward\n  " + fold.line);
    return traced;
  }
  /// Expects `w` of that shape, and the steps to the operand.
  void expectUndone(const Fold &folded, std::vector<int64_t> shape,
                    std::vector<ParameterStep::Kind> kinds, double number = 0) {
    SCOPED_TRACE(folded.name + " " + folded.line);
    mlir::FailureOr<ParameterTable> table = identify(fold(folded).model);
    ASSERT_TRUE(succeeded(table));
    for (const Doubt &doubt : table->doubts)
      ADD_FAILURE() << doubt.message;
    ASSERT_EQ(table->parameters.size(), 1u);
    const Parameter &parameter = table->parameters[0];
    EXPECT_TRUE(parameter.trained);
    EXPECT_THAT(parameter.shape, testing::ElementsAreArray(shape));
    const ParameterUse *use = table->useAt(node(0), 1);
    ASSERT_TRUE(use);
    std::vector<ParameterStep::Kind> found;
    for (const ParameterStep &step : use->steps)
      found.push_back(step.kind);
    EXPECT_EQ(found, kinds);
    if (!kinds.empty()) {
      EXPECT_EQ(parameter.kind, ParameterKind::Unfolded);
      EXPECT_EQ(use->steps.back().number, number);
    }
  }
  void expectRefused(const Fold &folded) {
    SCOPED_TRACE(folded.name + " " + folded.line);
    mlir::FailureOr<ParameterTable> table = identify(fold(folded).model);
    ASSERT_TRUE(succeeded(table));
    ASSERT_EQ(table->doubts.size(), 1u);
    EXPECT_THAT(table->doubts[0].message,
                testing::HasSubstr("was computed by the exporter from"));
  }
};

constexpr auto kReshape = ParameterStep::Reshape;
constexpr auto kOffset = ParameterStep::Offset;
constexpr auto kScale = ParameterStep::Scale;

TEST_F(UndoFoldsTest, copiesAndTranspositions) {
  expectUndone({"clone", {}, {2, 3}}, {2, 3}, {});
  expectUndone({"permute", {}, {2, 3}}, {3, 2}, {});
  expectUndone({"clone", {"t"}, {2, 3}}, {3, 2}, {});
  mlir::FailureOr<ParameterTable> table =
      identify(fold({"permute", {}, {2, 3}}).model);
  EXPECT_THAT(table->useAt(node(0), 1)->permutation,
              testing::ElementsAre(1, 0));
  // Of more dimensions any order is possible.
  expectRefused({"permute", {}, {2, 3, 4}});
  expectRefused({"permute", {"t"}, {2, 3}});
  for (const char *name : {"detach", "mul_1", "slice_1", "expand", "relu"})
    expectRefused({name, {}, {2, 3}});
  expectRefused({"clone", {"detach"}, {2, 3}});
}

TEST_F(UndoFoldsTest, dimensionsOfSizeOne) {
  expectUndone({"unsqueeze", {"val_1"}, {1, 2, 3}}, {2, 3}, {kReshape});
  expectUndone({"unsqueeze_1", {"unsqueeze"}, {1, 2, 1}}, {2}, {kReshape});
  expectRefused({"unsqueeze", {}, {1, 2, 1}});
  // A view of a vector, if it was one.
  expectUndone({"view", {}, {1, 4, 1}}, {4}, {kReshape});
  EXPECT_EQ(identify(fold({"view", {}, {1, 4, 1}}).model)->notes.size(), 1u);
  expectRefused({"view", {}, {2, 2}});
}

TEST_F(UndoFoldsTest, whatTheLineAdds) {
  const auto sum = [](const char *line) {
    return Fold{"add", {"val_0"}, {4}, line};
  };
  for (const char *line :
       {"return x * (1.0 + self.w)", "y = x * (self.w.float() + 1)",
        "return f(x, 1. + self.w)", "w = self.w + 1.0"})
    expectUndone(sum(line), {4}, {kOffset}, 1);
  expectUndone(sum("return x * (0.5 + self.w)"), {4}, {kOffset}, 0.5);
  expectUndone({"add",
                {"val_0", "scalar_tensor_default"},
                {4},
                "return x * (2 + self.w)"},
               {4}, {kOffset}, 2);
  for (const char *line :
       {"return x * self.w", "return x * (1.0 - self.w)",
        "return x * (2 * 1.0 + self.w)", "return x * (1.0 + self.w * 2)",
        "return x * (one + self.w)", "return x * (1.0 + self.w2)",
        "return (1.0 + self.w) * self.w", "return x * (1.0 + other.w)",
        // What is small beside the number is lost.
        "return x * (3e7 + self.w)"})
    expectRefused(sum(line));
  // `self` is the module that has the parameter.
  expectUndone({"add", {"val_0"}, {4}, "return x * (1.0 + self.w)", "norm"},
               {4}, {kOffset}, 1);
  expectRefused({"add", {"val_0", "add_1"}, {4}, "return x * (1.0 + self.w)"});
}

TEST_F(UndoFoldsTest, byWhatTheLineMultiplies) {
  const auto product = [](const char *line, const char *name = "mul_1") {
    return Fold{name, {"val_0"}, {4}, line};
  };
  expectUndone(product("return x * (self.w * 0.5)"), {4}, {kScale}, 0.5);
  expectUndone(product("return f(x, 0.1 * self.w)"), {4}, {kScale}, 0.1);
  expectUndone(product("return x * (self.w / 8)", "div"), {4}, {kScale}, 0.125);
  expectUndone({"view", {"mul_1", "val_0"}, {1, 4, 1}, "return f(self.w * 4)"},
               {4}, {kReshape, kScale}, 4);
  for (const char *line :
       {"return x * self.w", "return x * (h * self.w)",
        "return x * (self.w ** 2)", "return x * (self.w + 0.5)",
        "return x * (self.w * 0.5 * h)", "return x * (2 * 0.5 * self.w)",
        // The quotient of 1.5 does not give it again, and a zero nothing.
        "return x * (self.w * 1.7)", "return x * (self.w * 0)",
        "return x * (self.w / 8)"})
    expectRefused(product(line));
  // A quotient by 3 is no product.
  for (const char *line :
       {"return x * (self.w / 3)", "return x * (8 / self.w)",
        "return x * (self.w // 8)", "return x * (self.w * 0.125)"})
    expectRefused(product(line, "div"));
  expectRefused({"mul_1", {"add", "val_0"}, {4}, "return x * (self.w * 0.5)"});
  // Any large number may have become infinite.
  TracedModel infinite = fold(product("return x * (self.w * 2)"));
  infinite.hold("mul_1", {4}, {1, 2, HUGE_VALF, 3});
  infinite.graph().mutable_initializer()->DeleteSubrange(0, 1);
  mlir::FailureOr<ParameterTable> table = identify(infinite.model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->doubts.size(), 1u);
}

TEST_F(UndoFoldsTest, whatWasWidened) {
  const auto widened = [](const char *line, std::vector<double> values,
                          std::vector<std::string> from = {}) {
    TracedModel model =
        fold({"_to_copy", std::move(from), {int64_t(values.size())}, line});
    onnx::TensorProto *tensor = model.graph().mutable_initializer(0);
    tensor->set_data_type(onnx::TensorProto::DOUBLE);
    tensor->set_raw_data(std::string(
        reinterpret_cast<const char *>(values.data()), values.size() * 8));
    return model.model;
  };
  const auto doubts = [&](const onnx::ModelProto &model) {
    mlir::FailureOr<ParameterTable> table = identify(model);
    return succeeded(table) ? int(table->doubts.size()) : -1;
  };
  const double third = double(1.0f / 3);
  const char *line = "return x * self.w.double()";
  mlir::FailureOr<ParameterTable> table = identify(widened(line, {1, third}));
  ASSERT_TRUE(succeeded(table));
  EXPECT_TRUE(table->doubts.empty());
  EXPECT_EQ(table->parameters[0].dtype, onnx::TensorProto::FLOAT);
  EXPECT_EQ(table->useAt(node(0), 1)->steps.back().kind, ParameterStep::Widen);
  // A third was none of f32; a half is one of smaller types, too, and 1 + 2^-10
  // is one of f16, 2^100 of bfloat16.
  EXPECT_EQ(doubts(widened(line, {1, 1.0 / 3})), 1);
  EXPECT_EQ(doubts(widened(line, {1, 0.5})), 1);
  EXPECT_EQ(doubts(widened(line, {1, 1 + 1.0 / 1024})), 1);
  EXPECT_EQ(doubts(widened(line, {1, std::pow(2.0, 100)})), 1);
  EXPECT_EQ(doubts(widened(line, {1, third}, {"_to_copy_1"})), 1);
  EXPECT_EQ(doubts(widened(line, {1, third}, {"add"})), 1);
  // Of a copy that is no cast.
  for (const char *other :
       {"return x * self.w.double().detach()",
        "return x * self.w.to(memory_format=f)", "return x.double() * self.w",
        "return x * self.w.double() + self.w.double()"})
    EXPECT_EQ(doubts(widened(other, {1, third})), 1) << other;
}

TEST_F(UndoFoldsTest, theLineNamesTheParameterForEachOfItsTensors) {
  expectRefused({"permute", {}, {2, 3}, "return x * w"});
  expectRefused({"permute", {}, {2, 3}, "return x * self.wide"});
  // Another tensor of it on the same line.
  for (const char *line :
       {"return x * w + self.w", "return x * self.w + self.w"}) {
    TracedModel traced({"w"});
    traced.use("w");
    setTrace(traced.graph().mutable_node(0),
             std::string("File \"m.py\", line 7, in forward\n  ") + line);
    traced.hold("permute", {3, 2}, {0.5f, 3.5f, 1.5f, 4.5f, 2.5f, 5.5f});
    traced.foldedFrom("permute", {"w"});
    setTrace(traced.add("Mul", {"x", "permute"},
                        call("mul", "aten.mul", "%x, %permute")),
             std::string("File \"m.py\", line 7, in forward\n  ") + line);
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    EXPECT_EQ(table->doubts.size(),
              StringRef(line).count("self.w") == 1 ? 1u : 0u)
        << line;
  }
}

TEST_F(UndoFoldsTest, aTableSharedByHalves) {
  const std::vector<std::string> names{"shared.weight", "encoder.t.weight",
                                       "decoder.t.weight"};
  const auto tables = [&](const std::string &second) {
    TracedModel traced({names[0], names[1], second});
    traced.hold(second, {2, 3});
    std::string placeholder = "%p_" + second;
    std::replace(placeholder.begin(), placeholder.end(), '.', '_');
    for (const std::string &name : {names[1], second}) {
      std::string module = name.substr(0, name.rfind('.'));
      onnx::NodeProto *node =
          addNode(traced.graph(), "Mul", {"x", second}, {"o_" + module});
      setCall(
          node,
          call("mul_" + module.substr(0, 3), "aten.mul", "%x, " + placeholder),
          module);
    }
    return traced;
  };
  mlir::FailureOr<ParameterTable> table = identify(tables(names[2]).model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_TRUE(table->doubts.empty());
  ASSERT_EQ(table->parameters.size(), 1u);
  EXPECT_EQ(table->parameters[0].name, "shared.weight");
  EXPECT_THAT(table->parameters[0].aliases,
              testing::UnorderedElementsAre(names[1], names[2]));
  ASSERT_EQ(table->notes.size(), 1u);
  EXPECT_THAT(table->notes[0], testing::HasSubstr("'shared.weight'"));
  // Modules of other names share nothing with it.
  table = identify(tables("decoder.u.weight").model);
  ASSERT_TRUE(succeeded(table));
  EXPECT_EQ(table->doubts.size(), 1u);
}

} // namespace
