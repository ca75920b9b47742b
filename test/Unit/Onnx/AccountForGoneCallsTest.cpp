// The rules of lib/Onnx/AccountForCalls.cpp for calls of which nothing is left,
// each with what it doubts and what it must not.
#include "TracedModel.h"

using namespace accel::onnxio;

namespace {
class AccountForGoneCallsTest : public TracedTest {
protected:
  using Wanted = std::vector<WantedDoubt>;
  /// `w` used as it is, and a call `mul_9(%used_w, %<gone>)` whose node squares
  /// `used_w`: the argument is gone.
  static TracedModel lacking(const std::string &gone) {
    TracedModel traced({"w"});
    traced.use("w");
    traced.add("Mul", {"used_w", "used_w"},
               call("mul_9", "aten.mul", "%used_w, %" + gone));
    return traced;
  }
};
} // namespace

TEST_F(AccountForGoneCallsTest, aGradientThatWasStopped) {
  const Wanted wanted{{Doubt::Meaning, {}, "stopped a gradient"}};
  const char quote[] = "File \"m.py\", line 3, in forward\n  y = w.detach()";
  for (const char *gone : {"detach", "detach_3", "detach_"})
    expectDoubts(lacking(gone), wanted);
  for (const char *gone : {"clone", "alias", "relu"}) {
    SCOPED_TRACE(gone);
    expectDoubts(lacking(gone), {});
    TracedModel own = lacking(gone);
    setTrace(own.graph().mutable_node(1), quote);
    expectDoubts(own, gone == std::string("relu") ? Wanted() : wanted);
    // The lines of the value that stands in its place.
    TracedModel left({"w"});
    left.use("w");
    setTrace(left.graph().mutable_node(0), quote);
    left.add("Neg", {"used_w"},
             call("neg", "aten.neg", std::string("%") + gone));
    expectDoubts(left, gone == std::string("relu") ? Wanted() : wanted);
  }
  // No optimizer lifted this constant: what is gone was never there.
  TracedModel raw = lacking("detach");
  addNode(raw.graph(), "Constant", {}, {"c"});
  expectDoubts(raw, {});
  // What an initializer was computed from is explained.
  TracedModel explained = lacking("exp_1");
  explained.hold("val_1", {3});
  explained.foldedFrom("val_1", {"detach"});
  explained.add("Add", {"x", "val_1"}, call("add", "aten.add", "%x, %detach"));
  expectDoubts(explained, {});
}

TEST_F(AccountForGoneCallsTest, twoDrawsThatBecameOne) {
  for (const char *op : {"RandomNormalLike", "RandomUniform", "Bernoulli",
                         "Multinomial", "Dropout", "Neg"}) {
    SCOPED_TRACE(op);
    for (float ratio : {0.5f, 0.0f})
      for (float training : {1.0f, 0.0f}) {
        TracedModel traced({"w"});
        traced.use("w");
        traced.hold("ratio", {}, {ratio});
        traced.hold("training", {}, {training});
        traced.add(op, {"x", "ratio", "training"},
                   call("draw", "aten.draw", "%x"));
        traced.add("Mul", {"o_1", "o_1"},
                   call("mul_9", "aten.mul", "%draw, %draw_1"));
        bool draws = op == std::string("Dropout") ? ratio > 0 && training > 0
                                                  : op != std::string("Neg");
        expectDoubts(
            traced, draws ? Wanted{{Doubt::Meaning, {}, "made one draw of two"}}
                          : Wanted());
      }
  }
}

TEST_F(AccountForGoneCallsTest, aSumThatAddsNextToNothing) {
  for (auto [gone, isDoubted] :
       {std::pair("add_1", true), std::pair("sub", true),
        std::pair("relu", false)})
    for (bool isFloat : {true, false}) {
      SCOPED_TRACE(gone);
      TracedModel traced({"w"});
      traced.use("w");
      addValue(traced.graph().mutable_value_info(), "used_w")
          ->mutable_type()
          ->mutable_tensor_type()
          ->set_elem_type(isFloat ? onnx::TensorProto::FLOAT
                                  : onnx::TensorProto::INT64);
      traced.add("Sqrt", {"used_w"},
                 call("sqrt", "aten.sqrt", std::string("%") + gone));
      expectDoubts(traced, isDoubted && isFloat
                               ? Wanted{{Doubt::Meaning, {}, "less than 1e-8"}}
                               : Wanted());
    }
}

TEST_F(AccountForGoneCallsTest, aProductWithAParameterThatIsOne) {
  const struct {
    const char *gone;
    std::vector<int64_t> shape;
    float value;
    bool isDoubted;
  } lines[] = {
      {"mul_1", {}, 1, true},       {"div", {}, 1, true},
      {"mul", {}, 1.000005f, true}, {"mul", {}, 1.1f, false},
      {"mul", {1}, 1, false},       {"relu", {}, 1, false},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(line.gone);
    TracedModel traced({"s"});
    traced.use("s", line.shape, {line.value});
    traced.add("Neg", {"x"},
               call("neg", "aten.neg", std::string("%") + line.gone));
    expectDoubts(traced, line.isDoubted ? Wanted{{Doubt::Folded,
                                                  {"s"},
                                                  "drops while it changes "
                                                  "nothing"}}
                                        : Wanted());
  }
}

TEST_F(AccountForGoneCallsTest, aCallMergedWithThatOfAnEqualParameter) {
  for (auto [other, gone, isDoubted] :
       {std::tuple("%p_b", "exp_5", true), std::tuple("%p_b", "relu", false),
        std::tuple("%p_a", "exp_5", false)}) {
    SCOPED_TRACE(std::string(other) + " " + gone);
    TracedModel traced({"a", "b"});
    traced.use("a");
    traced.add("Mul", {"x", "a"},
               call("mul", "aten.mul", std::string("%x, ") + other));
    if (other == std::string("%p_a"))
      traced.use("b");
    traced.add("Exp", {"a"}, call("exp", "aten.exp", "%p_a"), "e");
    traced.add("Neg", {"e"}, call("neg", "aten.neg", std::string("%") + gone));
    expectDoubts(traced, isDoubted
                             ? Wanted{{Doubt::Folded,
                                       {"a"},
                                       "the exporter merged it with 'exp'"}}
                             : Wanted());
  }
}

TEST_F(AccountForGoneCallsTest, aValueMergedWithAnotherInitializer) {
  const struct {
    const char *op, *arguments, *held;
    std::vector<int64_t> shape;
    std::vector<float> values;
    bool isDoubted;
  } lines[] = {
      {"mul", "%x, %exp_1", "sigmoid", {3}, {2, 2, 2}, true},
      {"foo", "%x, %exp_1", "sigmoid", {3}, {2, 2, 2}, true},
      // Values that differ are equal because they were computed alike.
      {"mul", "%x, %exp_1", "sigmoid", {3}, {1, 2, 3}, false},
      {"mul", "%x, %zeros", "sigmoid", {3}, {2, 2, 2}, false},
      // The same operator is the same program written twice.
      {"mul", "%x, %exp_1", "exp", {3}, {2, 2, 2}, false},
      // The operand's place says that it is another argument.
      {"mul", "%exp_1, 2.0", "sigmoid", {3}, {2, 2, 2}, false},
      // One number may be a literal, but where its place is known.
      {"mul", "%x, %exp_1", "sigmoid", {}, {2}, true},
      {"foo", "%x, %exp_1", "sigmoid", {}, {2}, false},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.arguments) + " " + line.held);
    TracedModel traced({"w"});
    traced.use("w");
    traced.hold(line.held, line.shape, line.values);
    traced.add("Mul", {"x", line.held},
               call("r", std::string("aten.") + line.op, line.arguments));
    expectDoubts(traced, line.isDoubted
                             ? Wanted{{Doubt::Folded,
                                       {},
                                       "was merged with initializer 'sigmoid'"}}
                             : Wanted());
  }
  // What is left of the call that is gone is the other operand.
  TracedModel left({"w"});
  left.use("w");
  left.hold("sigmoid", {3}, {2, 2, 2});
  left.add("Mul", {"used_w", "sigmoid"}, call("r", "aten.foo", "%exp_1"));
  expectDoubts(left, {});
  // A parameter's own initializer is doubted as such.
  TracedModel own({"w"});
  own.use("w", {3}, {2, 2, 2});
  own.add("Mul", {"x", "w"}, call("r", "aten.mul", "%x, %exp_1"));
  expectDoubts(own, {{Doubt::Folded, {"w"}, "nothing tells whether"}});
}
