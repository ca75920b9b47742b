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
  // Where no call reads it there is no argument that it could be.
  TracedModel alone({"w"});
  alone.use("w");
  alone.hold("exp_1", {3});
  addNode(alone.graph(), "Neg", {"exp_1"}, {"n"});
  expectDoubts(alone, {});
  // Integers take no part in training.
  TracedModel integer({"w"});
  integer.use("w");
  onnx::TensorProto *tensor = integer.graph().add_initializer();
  tensor->set_name("exp_1");
  tensor->set_data_type(onnx::TensorProto::INT64);
  tensor->add_dims(1);
  tensor->set_raw_data(std::string(8, '\1'));
  integer.add("Mul", {"x", "exp_1"}, call("mul_9", "aten.mul", "%x, %exp_1"));
  expectDoubts(integer, {});
  // What explains the argument must be made of it.
  for (auto [from, isExplained] :
       {std::pair("detach", true), std::pair("val_2", false)}) {
    TracedModel traced({"w"});
    traced.use("w");
    traced.hold("val_1", {3});
    traced.foldedFrom("val_1", {from});
    traced.add("Add", {"x", "val_1"}, call("add", "aten.add", "%x, %detach"));
    expectDoubts(traced,
                 isExplained
                     ? Wanted()
                     : Wanted{{Doubt::Meaning, {}, "stopped a gradient"}});
  }
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
  TracedModel one({"w"});
  one.use("w");
  one.hold("exp", {2, 3});
  one.foldedFrom("exp", {"w"});
  one.add("Mul", {"x", "exp"}, call("mul_9", "aten.mul", "%x, %exp"));
  expectDoubts(one, {{Doubt::Folded,
                      {"w"},
                      "from parameter 'w', and would not follow it in"}});
}

/// A gone argument may be the parameter's operand, unless an operand is left
/// that no argument is.
TEST_F(AccountForCallsTest, whatIsLeftOfACallThatIsGone) {
  const struct {
    /// The other operand of Sub, and how the call names it.
    const char *operand, *argument;
    bool isDoubted;
  } lines[] = {
      {"used_w", "%used_w", true},   {"used_w", "1.0", false},
      {"named_other", "%h", true},   {"named_other", "1.0", false},
      {"no_call", "%no_call", true}, {"no_call", "1.0", false},
      {"renamed", "%x", true},       {"renamed", "1.0", false},
  };
  for (const auto &line : lines) {
    SCOPED_TRACE(std::string(line.operand) + " as " + line.argument);
    TracedModel traced({"w"});
    traced.graph().mutable_input(0)->set_name("renamed");
    traced.hold("w", {2, 3});
    traced.add("Mul", {"renamed", "w"}, call("used_w", "aten.mul", "%x, %p_w"),
               "used_w");
    traced.add("Neg", {"renamed"}, call("h", "aten.neg", "%x"), "named_other");
    addNode(traced.graph(), "Neg", {"renamed"}, {"no_call"});
    traced.add("Sub", {line.operand, "w"},
               call("r", "aten.foo", std::string(line.argument) + ", %exp"));
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    // What the gone call did to what is left is doubted elsewhere.
    EXPECT_EQ(llvm::any_of(table->doubts,
                           [](const Doubt &doubt) {
                             return doubt.kind == Doubt::Folded;
                           }),
              line.isDoubted);
  }
  // Nor where another initializer is what is gone.
  TracedModel held({"w"});
  held.use("w");
  held.hold("exp", {3});
  held.foldedFrom("exp", {"val_1"});
  held.add("Sub", {"exp", "w"}, call("r", "aten.foo", "%exp, 2.0"));
  expectDoubts(held, {});
  // The place of a literal is known, whatever else is gone.
  TracedModel literal({"w"});
  literal.use("w");
  literal.add("Mul", {"w", "w"}, call("r", "aten.mul", "%exp, 1.0"));
  expectDoubts(literal, {{Doubt::Folded, {"w"}, "operand 0"}});
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
      {"foo", "%p_w, %p_w", true},      {"foo", "'x', %p_w", true},
      {"foo", "%x, '%p_w'", false},     {"foo", "%x, \"%p_w\"", false},
      {"foo", "%x, 'a%p_w'", false},    {"foo", "%x, 'a\\'%p_w'", false},
      {"type_as", "%p_w", true},        {"type_as", "%x, %p_w", false},
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

/// A doubt about one call says nothing of another.
TEST_F(AccountForCallsTest, eachCallIsAskedForItsOwn) {
  TracedModel traced({"w"});
  traced.use("w");
  traced.add("Mul", {"x", "w"}, call("r", "aten.foo", "%x, %exp"));
  traced.add("Neg", {"x"}, call("s", "aten.foo", "%x, %p_w"));
  expectDoubts(traced, {{Doubt::Folded, {"w"}, "nothing tells whether"},
                        {Doubt::Folded, {"w"}, "of the traced call 's'"}});
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
