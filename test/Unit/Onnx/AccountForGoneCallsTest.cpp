// The rules of lib/Onnx/AccountForCalls.cpp for calls of which nothing is left,
// each with what it doubts and what it must not.
#include "TracedModel.h"

using namespace accel::onnxio;

namespace {
class AccountForGoneCallsTest : public TracedTest {
protected:
  using Wanted = std::vector<WantedDoubt>;
  static Wanted stopped() {
    return {{Doubt::Meaning, {}, "stopped a gradient"}};
  }
  static Wanted merged(const std::string &with = "used_w") {
    return {{Doubt::Meaning, {"w"}, "was merged with '" + with + "'"}};
  }
  static Wanted undone() {
    return {{Doubt::Meaning, {"w"}, "nothing tells what it did to 'used_w'"}};
  }
  static Wanted possible() {
    return {{Doubt::Possible, {}, "dropped 1 call that changed nothing"}};
  }

  /// `used_w`, which `users` calls take, and a call `neg(%<gone>)` whose node
  /// reads `used_w`: the argument is gone.
  static TracedModel lacking(const std::string &gone, unsigned users = 1) {
    TracedModel traced({"w"});
    traced.use("w", {2, 3}, {}, users);
    traced.add("Neg", {"used_w"}, call("neg", "aten.neg", "%" + gone));
    return traced;
  }
};
} // namespace

TEST_F(AccountForGoneCallsTest, aGradientThatWasStopped) {
  const char quote[] = "File \"m.py\", line 3, in forward\n  y = w.detach()";
  for (const char *gone : {"detach", "detach_3", "detach_"})
    expectDoubts(lacking(gone), stopped());
  for (const char *gone : {"clone", "copy", "alias", "view_1", "relu"})
    for (int node : {0, 1}) {
      // The lines of the call, and of the value in the argument's place.
      SCOPED_TRACE(gone + std::to_string(node));
      TracedModel quoted = lacking(gone);
      setTrace(quoted.graph().mutable_node(node), quote);
      expectDoubts(quoted, gone == std::string("relu") ? undone() : stopped());
    }
  // No optimizer lifted this constant: what is gone was never there.
  TracedModel raw = lacking("detach");
  addNode(raw.graph(), "Constant", {}, {"c"});
  expectDoubts(raw, {});
  // What an initializer was computed from is explained.
  TracedModel explained = lacking("used_w");
  explained.hold("val_1", {3});
  explained.foldedFrom("val_1", {"detach"});
  explained.add("Add", {"x", "val_1"}, call("add", "aten.add", "%x, %detach"));
  expectDoubts(explained, {});
}

TEST_F(AccountForGoneCallsTest, aCallOfAnAutogradFunction) {
  TracedModel traced = lacking("view");
  setTrace(traced.graph().mutable_node(1),
           "File \"m.py\", line 3, in forward\n  y = Twice.apply(w)");
  expectDoubts(traced,
               {
                   {Doubt::Meaning, {}, "the forward of an autograd function"},
               });
}

TEST_F(AccountForGoneCallsTest, aCopyOfAValueThatMayHaveBeenDetached) {
  const Wanted copied{
      {Doubt::Meaning, {"w"}, "made of 'used_w', which has other uses"}};
  auto taken = [](const char *gone, unsigned users) {
    TracedModel traced = lacking(gone, users);
    traced.add("Exp", {"used_w"}, call("exp", "aten.exp", "%used_w"));
    return traced;
  };
  expectDoubts(lacking("clone"), possible());
  expectDoubts(lacking("copy_1"),
               possible()); // of what is written into a slice
  expectDoubts(taken("clone", 2), copied);
  expectDoubts(taken("copy", 2), copied);
  expectDoubts(taken("view", 2), copied);
  expectDoubts(taken("alias", 2), copied);
  // Where composite operators are left, `detach` was not made `alias`.
  TracedModel composite = taken("alias", 2);
  composite.add("MatMul", {"x", "x"}, call("y", "aten.linear", "%x, %x"));
  expectDoubts(composite, possible());
  // The copy was not one of this value.
  expectDoubts(taken("clone", 1), merged());
  // No parameter, no gradient.
  TracedModel input({"w"});
  input.use("w");
  input.add("Abs", {"x"}, call("abs", "aten.abs", "%x", "", 2), "a");
  input.add("Neg", {"a"}, call("neg", "aten.neg", "%clone"));
  input.add("Exp", {"a"}, call("exp", "aten.exp", "%abs"));
  expectDoubts(input, {});
}

TEST_F(AccountForGoneCallsTest, anEqualCallOfWhateverArguments) {
  // `used_w` has all its users: what is gone is of another value.
  auto beside = [](const char *gone) {
    TracedModel traced = lacking(gone);
    traced.add("Exp", {"used_w"}, call("exp", "aten.exp", "%used_w"));
    return traced;
  };
  for (const char *gone : {"mul_1", "view", "exp_2"})
    expectDoubts(beside(gone), merged());
  // A computation of the same name may be either.
  TracedModel twin({"w"});
  twin.use("w");
  twin.add("Exp", {"used_w"}, call("exp", "aten.exp", "%used_w"), "e");
  twin.add("Neg", {"e"}, call("neg", "aten.neg", "%exp_1"));
  expectDoubts(twin, merged("exp"));
  // A second view is dropped, and the file shows that it took the first.
  TracedModel views({"w"});
  views.use("w");
  views.add("Reshape", {"used_w"}, call("view", "aten.view", "%used_w"), "v");
  views.add("Neg", {"v"}, call("neg", "aten.neg", "%view_1"));
  expectDoubts(views, possible());
  // One value at both places of a call.
  TracedModel both({"w"});
  both.use("w");
  both.add("Mul", {"used_w", "used_w"},
           call("mul", "aten.mul", "%used_w, %mul_1"));
  expectDoubts(both, merged());
  // Calls whose places no table knows, beside an axis or a constant.
  for (auto [op, name, isFloat, isDoubted] :
       {std::tuple("stack", "axis", false, true),
        std::tuple("stack", "axis", true, false),
        std::tuple("index_put", "axis", false, false)}) {
    TracedModel traced({"w"});
    traced.use("w");
    traced.hold(name, {1});
    if (!isFloat) {
      onnx::TensorProto &tensor =
          *traced.graph().mutable_initializer()->rbegin();
      tensor.set_data_type(onnx::TensorProto::INT64);
      tensor.clear_raw_data();
      tensor.clear_float_data();
      tensor.add_int64_data(0);
    }
    traced.add("Foo", {"used_w", name},
               call("r", std::string("aten.") + op, "%used_w, %mul_1"));
    expectDoubts(traced, isDoubted ? merged() : Wanted());
  }
}

TEST_F(AccountForGoneCallsTest, aStepThatTwoCallsShare) {
  auto shared = [](const char *second) {
    TracedModel traced({"w"});
    traced.use("w", {2, 3}, {}, 2);
    std::string first = call("index", "aten.index", "%used_w");
    traced.add("Transpose", {"used_w"}, first, "t");
    traced.hold("i", {1});
    traced.hold("j", {1});
    traced.add("GatherND", {"t", "i"}, first);
    traced.add("GatherND", {"t", "j"}, call("index_1", "aten.index", second));
    return traced;
  };
  expectDoubts(shared("%used_w, %clone"), {});
  expectDoubts(shared("%clone_1, %clone"),
               {{Doubt::Meaning, {"w"}, "argument 'clone_1'"},
                {Doubt::Meaning, {"w"}, "argument 'clone'"}});
}

/// x - w is one node of both; the second call's was of a buffer equal to `w`.
TEST_F(AccountForGoneCallsTest, aStepOfAnEqualBuffer) {
  for (auto [argument, isDoubted] :
       {std::pair("%p_w", false), std::pair("%b_m", true)}) {
    TracedModel traced({"w"}, "b_m: BUFFER target='m' persistent=True\n");
    traced.hold("w", {3});
    std::string first = call("lerp", "aten.lerp", "%x, %p_w");
    traced.add("Sub", {"x", "w"}, first, "s");
    traced.add("Mul", {"s", "s"}, first);
    traced.add("Exp", {"s"},
               call("lerp_1", "aten.lerp",
                    std::string("%clone, ") + argument + ", %x"));
    expectDoubts(traced,
                 isDoubted
                     ? Wanted{{Doubt::Meaning, {"w"}, "was merged with 'lerp'"}}
                     : Wanted());
  }
}

/// The buffer's product stands for the parameter's, too.
TEST_F(AccountForGoneCallsTest, aTwinOfABuffersCall) {
  TracedModel traced({"w"}, "b_m: BUFFER target='m' persistent=True\n");
  traced.use("w");
  traced.add("Mul", {"x", "w"}, call("mul", "aten.mul", "%x, %b_m"), "m");
  traced.add("Neg", {"m"}, call("neg", "aten.neg", "%mul_1"));
  expectDoubts(traced, {{Doubt::Meaning, {}, "was merged with 'mul'"}});
}

TEST_F(AccountForGoneCallsTest, whatTheOptimizerFused) {
  for (const char *op : {"RMSNormalization", "RotaryEmbedding", "Attention",
                         "LayerNormalization", "Gelu", "Neg"}) {
    SCOPED_TRACE(op);
    TracedModel traced = lacking("rsqrt");
    traced.graph().mutable_node(1)->set_op_type(op);
    expectDoubts(traced, op == std::string("Neg") ? undone() : Wanted());
  }
  for (const char *gone : {"bmm", "matmul_1", "mm", "relu"}) {
    SCOPED_TRACE(gone);
    TracedModel traced = lacking(gone);
    traced.graph().mutable_node(1)->set_op_type("MatMul");
    expectDoubts(traced, gone == std::string("relu") ? undone() : Wanted());
  }
}

TEST_F(AccountForGoneCallsTest, anOutputOfTheOptimizersOwnNodes) {
  auto halves = [](const char *other) {
    TracedModel traced({"w"});
    traced.use("w", {2, 3}, {}, 2);
    addNode(traced.graph(), "Split", {"used_w"}, {"s_0", "s_1"});
    traced.add("Neg", {"s_0"}, call("neg", "aten.neg", "%getitem"));
    traced.add("Exp", {"s_0"},
               call("exp", "aten.exp", std::string("%") + other));
    return traced;
  };
  expectDoubts(halves("getitem"), {});
  expectDoubts(halves("getitem_3"),
               {{Doubt::Meaning, {"w"}, "was merged with 'getitem'"}});
  expectDoubts(halves("view"), {});
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
  for (const char *gone : {"add_1", "sub", "relu"})
    for (bool isFloat : {true, false}) {
      SCOPED_TRACE(gone);
      TracedModel traced = lacking(gone);
      addValue(traced.graph().mutable_value_info(), "used_w")
          ->mutable_type()
          ->mutable_tensor_type()
          ->set_elem_type(isFloat ? onnx::TensorProto::FLOAT
                                  : onnx::TensorProto::INT64);
      expectDoubts(traced, isFloat && gone != std::string("relu")
                               ? Wanted{{Doubt::Meaning, {}, "less than 1e-8"}}
                               : undone());
    }
  // Python's sum() begins with 0 + x, and adds up.
  for (auto [op, line, isSum] :
       {std::tuple("add", "sum(f(x) for f in self.fs)", true),
        std::tuple("add", "y + sum([a, b])", true),
        std::tuple("sqrt", "sum([x]).sqrt()", false),
        std::tuple("add", "(x + 1e-9).sum()", false),
        std::tuple("add", "cumsum(x) + y", false)}) {
    SCOPED_TRACE(line);
    TracedModel traced({"w"});
    traced.use("w");
    traced.add("Foo", {"used_w", "x"},
               call("r", std::string("aten.") + op, "%add_1, %x"));
    addValue(traced.graph().mutable_value_info(), "used_w")
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(onnx::TensorProto::FLOAT);
    setTrace(traced.graph().mutable_node(1),
             std::string("File \"m.py\", line 3, in forward\n  y = ") + line);
    expectDoubts(traced, isSum
                             ? Wanted()
                             : Wanted{{Doubt::Meaning, {}, "less than 1e-8"}});
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
       {std::tuple("%p_b", "exp_5", true), std::tuple("%p_b", "view", false),
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
    // A move is dropped, where the same operator is merged.
    expectDoubts(
        traced, isDoubted ? Wanted{{Doubt::Folded,
                                    {"a"},
                                    "the exporter merged it with 'exp'"}}
                : gone == std::string("view")
                    ? possible()
                    : Wanted{{Doubt::Meaning, {"a"}, "was merged with 'exp'"}});
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
  TracedModel left = lacking("exp_1");
  left.hold("sigmoid", {3}, {2, 2, 2});
  *left.graph().mutable_node(1)->add_input() = "sigmoid";
  expectDoubts(left, undone());
  // A parameter's own initializer is doubted as such.
  TracedModel own({"w"});
  own.use("w", {3}, {2, 2, 2});
  own.add("Mul", {"x", "w"}, call("r", "aten.mul", "%x, %exp_1"));
  expectDoubts(own, {{Doubt::Folded, {"w"}, "nothing tells whether"}});
}

TEST_F(AccountForGoneCallsTest, anOutputWhoseCallIsGone) {
  auto putOut = [](const char *what) {
    TracedModel traced({"w"});
    traced.use("w");
    onnx::StringStringEntryProto &signature =
        *traced.graph().mutable_metadata_props(0);
    signature.set_value(signature.value() + what + ": USER_OUTPUT\n");
    addValue(traced.graph().mutable_output(), "used_w");
    return traced;
  };
  expectDoubts(putOut("used_w"), {});
  expectDoubts(putOut("detach"), stopped());
  expectDoubts(putOut("relu"), undone());
  expectDoubts(putOut("div"), possible());
}

TEST_F(AccountForGoneCallsTest, theDropsAreCounted) {
  TracedModel traced({"w"});
  traced.use("w", {2, 3}, {}, 5);
  for (const char *gone : {"div_1", "div_2", "div_3", "div_4", "div_4"})
    traced.add(
        "Neg", {"used_w"},
        call(std::string("neg_") + gone, "aten.neg", std::string("%") + gone));
  expectDoubts(traced, {{Doubt::Possible,
                         {},
                         "dropped 4 calls that changed nothing ('div_1', "
                         "'div_2', 'div_3', …)"}});
}
