// The rules of lib/Onnx/AccountForCalls.cpp for initializers and parameters,
// each with what it doubts and what it must not. Calls that are gone:
// AccountForGoneCallsTest.cpp.
#include "TracedModel.h"

using namespace accel::onnxio;

namespace {
class AccountForCallsTest : public TracedTest {
protected:
  using Wanted = std::vector<WantedDoubt>;
};
} // namespace

//===-- Initializers ------------------------------------------------------===//

TEST_F(AccountForCallsTest, callsThatMakeConstants) {
  for (const char *op : {"zeros",
                         "ones",
                         "full",
                         "empty",
                         "arange",
                         "eye",
                         "tril_indices",
                         "triu_indices",
                         "linspace",
                         "scalar_tensor",
                         "lift_fresh_copy",
                         "zeros_like",
                         "ones_like",
                         "full_like",
                         "empty_like",
                         "new_zeros",
                         "new_ones",
                         "new_full",
                         "new_empty",
                         "scalar_tensor_default",
                         "relu",
                         "randn"}) {
    SCOPED_TRACE(op);
    bool isConstant = op != std::string("relu") && op != std::string("randn");
    TracedModel traced({"w"});
    traced.use("w");
    traced.hold(op, {3});
    traced.add("Mul", {"x", op},
               call("mul_9", "aten.mul", std::string("%x, %") + op));
    expectDoubts(
        traced,
        isConstant
            ? Wanted()
            : Wanted{{Doubt::Folded, {}, "stands for a call that is gone"}});
    // Of what such a call takes only the shape counts.
    TracedModel model({"w"});
    model.use("w");
    model.add("Shape", {"x"}, call("r", std::string("aten.") + op, "%p_w"));
    expectDoubts(
        model, isConstant ? Wanted()
                          : Wanted{{Doubt::Folded,
                                    {"w"},
                                    "is an argument of the traced call 'r'"}});
  }
}

TEST_F(AccountForCallsTest, anInitializerThatStandsForACallThatIsGone) {
  TracedModel told = TracedModel({"w"});
  told.use("w");
  told.hold("exp_1", {3});
  told.foldedFrom("exp_1", {"val_3"});
  told.add("Mul", {"x", "exp_1"}, call("mul_9", "aten.mul", "%x, %exp_1"));
  expectDoubts(told, {});
  // A buffer is what its name says.
  TracedModel buffer({"w"}, "b_m: BUFFER target='m' persistent=True\n");
  buffer.use("w");
  buffer.hold("m", {3});
  buffer.add("Mul", {"x", "m"}, call("mul_9", "aten.mul", "%x, %b_m"));
  expectDoubts(buffer, {});
}

TEST_F(AccountForCallsTest, anInitializerComputedFromParameters) {
  TracedModel traced({"v", "w"});
  traced.use("v");
  traced.use("w");
  traced.hold("exp", {2, 3});
  traced.foldedFrom("exp", {"v", "w"});
  traced.add("Mul", {"x", "exp"}, call("mul_9", "aten.mul", "%x, %exp"));
  expectDoubts(traced, {{Doubt::Folded,
                         {"v", "w"},
                         "initializer 'exp' was computed by the exporter from "
                         "parameters 'v', 'w', and would not follow them"}});
}

/// A parameter's initializer where the call says something else: by what it
/// says.
TEST_F(AccountForCallsTest, aParameterOrAConstantOfEqualValue) {
  const struct {
    const char *op, *arguments;
    bool isDoubted;
  } lines[] = {
      {"mul", "%x, 1.0", false},
      {"mul", "%x, %b_m", false},
      {"mul", "%x, %ones", false},
      {"mul", "%x, %exp", true},
      {"foo", "%x, 1.0", false},
      {"foo", "%x, %b_m", false},
      {"foo", "%x, %ones", false},
      {"foo", "%x, %exp", true},
      // What is left of the call that is gone is the other operand.
      {"foo", "%exp", false},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.arguments);
    bool isLeft = line.arguments == std::string("%exp");
    TracedModel traced({"w"}, "b_m: BUFFER target='m' persistent=True\n");
    traced.use("w");
    traced.add("Mul", {isLeft ? "used_w" : "x", "w"},
               call("r", std::string("aten.") + line.op, line.arguments));
    expectDoubts(traced,
                 isLeft ? Wanted{{Doubt::Meaning,
                                  {"w"},
                                  "nothing tells what it did to 'used_w'"}}
                 : line.isDoubted
                     ? Wanted{{Doubt::Folded,
                               {"w"},
                               "nothing tells whether operand 1 is parameter "
                               "'w' or a constant of equal value"}}
                     : Wanted());
  }
  // Another parameter is the argument, and no operand is it.
  TracedModel other({"v", "w"});
  other.use("v");
  other.use("w");
  other.add("Mul", {"x", "w"}, call("r", "aten.foo", "%x, %p_v"));
  expectDoubts(other,
               {{Doubt::Folded, {"w"}, "nothing tells whether"},
                {Doubt::Folded, {"v"}, "no operand of its nodes is it"}});
  // One number at two places of a call: once by its place, once unknown.
  TracedModel twice({"s"});
  twice.hold("s", {}, {2});
  std::string add = call("add", "aten.add", "%x, %p_s");
  twice.add("Add", {"x", "s"}, add);
  twice.add("Mul", {"o_0", "s"}, add);
  expectDoubts(twice, {{Doubt::Folded, {"s"}, "nothing tells whether"}});
  // And where no place is known; the argument itself is not doubted again.
  TracedModel unknown({"s"});
  unknown.use("s", {}, {2});
  unknown.add("Clip", {"s", "s"}, call("r", "aten.foo", "%p_s"));
  expectDoubts(unknown, {{Doubt::Folded, {"s"}, "whether operand 0"},
                         {Doubt::Folded, {"s"}, "whether operand 1"}});
}

//===-- Parameters that are gone ------------------------------------------===//

/// native_dropout(constant, ratio, mode)[0], of which one draw is kept.
TEST_F(AccountForCallsTest, aConstantThatMayBeADraw) {
  for (auto [name, from, isDoubted] :
       {std::tuple("getitem", 3, true), std::tuple("getitem_2", 3, true),
        std::tuple("getitem", 2, false), std::tuple("exp", 3, false)}) {
    SCOPED_TRACE(std::string(name) + " " + std::to_string(from));
    TracedModel traced({"w"});
    traced.use("w");
    traced.hold(name, {3});
    const std::vector<std::string> values{"c", "val_0", "val_1"};
    traced.foldedFrom(name, {values.begin(), values.begin() + from});
    traced.add("Mul", {"x", name},
               call("r", "aten.mul", std::string("%x, %") + name));
    expectDoubts(
        traced, isDoubted
                    ? Wanted{{Doubt::Meaning, {}, "one draw of random numbers"}}
                    : Wanted());
  }
}

TEST_F(AccountForCallsTest, aParameterThatNoOperandIs) {
  const struct {
    const char *op, *arguments;
    bool isDoubted;
  } lines[] = {
      {"foo", "%x, %p_w", true},        {"foo", "%x, [1, %p_w]", true},
      {"foo", "%x, '%p_w'", false},     {"type_as", "%x, %p_w", false},
      {"expand_as", "%x, %p_w", false}, {"expand_as", "%p_w, %x", true},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.arguments);
    TracedModel traced({"w"});
    traced.use("w");
    traced.add("Neg", {"x"},
               call("r", std::string("aten.") + line.op, line.arguments));
    expectDoubts(
        traced, line.isDoubted
                    ? Wanted{{Doubt::Folded,
                              {"w"},
                              "parameter 'w' is an argument of the traced call "
                              "'r'"}}
                    : Wanted());
  }
}

/// Equal nodes of two calls are one, of the first.
TEST_F(AccountForCallsTest, aNodeSharedByTwoCalls) {
  for (bool isShared : {true, false}) {
    TracedModel traced({"w"});
    traced.use("w");
    traced.add("Transpose", {isShared ? "w" : "x"},
               call("linear", "aten.linear", isShared ? "%x, %p_w" : "%x, %x"));
    traced.add("MatMul", {"x", "o_1"},
               call("linear_1", "aten.linear", "%x, %p_w"));
    expectDoubts(traced, isShared
                             ? Wanted()
                             : Wanted{{Doubt::Folded, {"w"}, "'linear_1'"}});
  }
}

/// The second and later arguments of these are sizes, and of some all are.
TEST_F(AccountForCallsTest, sizesAreNoTensors) {
  const struct {
    const char *op, *arguments;
  } lines[] = {
      {"view", "%x, [%mul_8, 3]"},
      {"_unsafe_view", "%x, [%mul_8]"},
      {"reshape", "%x, [%mul_8]"},
      {"expand", "%x, [%mul_8]"},
      {"slice", "%x, 0, 0, %mul_8"},
      {"repeat", "%x, [%mul_8]"},
      {"full_like", "%x, %mul_8"},
      {"new_full", "%x, [%mul_8], 1"},
      {"new_zeros", "%x, [%mul_8]"},
      {"new_ones", "%x, [%mul_8]"},
      {"narrow", "%x, 0, 0, %mul_8"},
      {"unflatten", "%x, 0, [%mul_8]"},
      {"constant_pad_nd", "%x, [%mul_8]"},
      {"roll", "%x, [%mul_8]"},
      {"split", "%x, %mul_8"},
      {"chunk", "%x, %mul_8"},
      {"full", "[%mul_8], 1"},
      {"zeros", "[%mul_8]"},
      {"ones", "[%mul_8]"},
      {"empty", "[%mul_8]"},
      {"arange", "%mul_8"},
      {"arange", "0, %mul_8"},
      {"full", "[2], %mul_8"},
  };
  // A tensor `mul_8` that is gone may have been times a parameter of 1.
  auto reading = [](const char *op, const char *arguments) {
    TracedModel traced({"s"});
    traced.use("s", {}, {1});
    traced.add("Neg", {"x"}, call("r", std::string("aten.") + op, arguments));
    return traced;
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.arguments);
    expectDoubts(reading(line.op, line.arguments), {});
  }
  expectDoubts(reading("foo", "%x, %mul_8"),
               {{Doubt::Folded, {"s"}, "it may have computed with"}});
  expectDoubts(reading("view", "%mul_8, [2]"),
               {{Doubt::Folded, {"s"}, "it may have computed with"}});
}
