// The meaning of the elementwise ops against values worked out by hand.

#include "test/Unit/Evaluate/Rules.h"

using namespace accel;
using namespace accel::test;
using ::testing::ElementsAre;
using ElementwiseRules = RulesTest;

TEST_F(ElementwiseRules, Unary) {
  auto of = [&](llvm::StringRef name, double x) {
    List result = evaluate((name + " %0").str(), {{"f64", {x}}}, "f64");
    return result.empty() ? -1e99 : result[0];
  };
  EXPECT_EQ(of("nn.neg", 2), -2);
  EXPECT_EQ(of("nn.abs", -2.5), 2.5);
  EXPECT_DOUBLE_EQ(of("nn.exp", 1), 2.718281828459045);
  EXPECT_DOUBLE_EQ(of("nn.log", 10), 2.302585092994046);
  EXPECT_EQ(of("nn.sqrt", 9), 3);
  EXPECT_EQ(of("nn.rsqrt", 16), 0.25);
  EXPECT_EQ(of("nn.reciprocal", 8), 0.125);
  EXPECT_DOUBLE_EQ(of("nn.tanh", 1), 0.7615941559557649);
  EXPECT_DOUBLE_EQ(of("nn.erf", 0.5), 0.5204998778130465);
  EXPECT_DOUBLE_EQ(of("nn.sigmoid", 1), 0.7310585786300049);
  EXPECT_EQ(of("nn.relu", -3), 0);
  EXPECT_EQ(of("nn.relu", 3), 3);
  EXPECT_TRUE(std::isnan(of("nn.relu", NAN)));
  EXPECT_DOUBLE_EQ(of("nn.sin", 1), 0.8414709848078965);
  EXPECT_DOUBLE_EQ(of("nn.cos", 1), 0.5403023058681398);
  EXPECT_EQ(of("nn.floor", -1.5), -2);
  EXPECT_EQ(of("nn.round", 2.5), 2);
  EXPECT_EQ(of("nn.round", -1.5), -2);
  EXPECT_EQ(of("nn.round", 0.6), 1);
  EXPECT_EQ(of("nn.floor_power2", -3), -2);
  // torch.nn.functional.gelu(torch.tensor(1., dtype=float64), approximate=…)
  EXPECT_DOUBLE_EQ(of("nn.gelu erf", 1), 0.8413447460685429);
  EXPECT_DOUBLE_EQ(of("nn.gelu tanh", 1), 0.8411919906082768);
}

TEST_F(ElementwiseRules, IntegersWrapInTheirType) {
  EXPECT_THAT(evaluate("nn.neg %0", {{"2xi8", {-128, 5}}}, "2xi8"),
              ElementsAre(-128, -5));
  EXPECT_THAT(
      evaluate("nn.add %0, %1", {{"1xi8", {100}}, {"1xi8", {100}}}, "1xi8"),
      ElementsAre(-56));
  EXPECT_THAT(
      evaluate("nn.sub %0, %1", {{"1xui8", {3}}, {"1xui8", {5}}}, "1xui8"),
      ElementsAre(254));
  EXPECT_THAT(evaluate("nn.mul %0, %1",
                       {{"1xi32", {65536}}, {"1xi32", {65537}}}, "1xi32"),
              ElementsAre(65536));
}

TEST_F(ElementwiseRules, Binary) {
  List x = {7, -7, 7, -7}, y = {2, 2, -2, -2};
  auto ints = [&](llvm::StringRef name) {
    return evaluate((name + " %0, %1").str(), {{"4xi32", x}, {"4xi32", y}},
                    "4xi32");
  };
  auto floats = [&](llvm::StringRef name) {
    return evaluate((name + " %0, %1").str(), {{"4xf32", x}, {"4xf32", y}},
                    "4xf32");
  };
  EXPECT_THAT(ints("nn.div"), ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(ints("nn.mod"), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(ints("nn.pow"), ElementsAre(49, 49, 0, 0));
  EXPECT_THAT(ints("nn.min"), ElementsAre(2, -7, -2, -7));
  EXPECT_THAT(ints("nn.max"), ElementsAre(7, 2, 7, -2));
  EXPECT_THAT(floats("nn.div"), ElementsAre(3.5, -3.5, -3.5, 3.5));
  EXPECT_THAT(floats("nn.mod"), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(floats("nn.sub"), ElementsAre(5, -9, 9, -5));
  EXPECT_THAT(floats("nn.mul"), ElementsAre(14, -14, -14, 14));
  EXPECT_THAT(
      evaluate("nn.pow %0, %1", {{"1xf32", {2}}, {"1xf32", {0.5}}}, "1xf32"),
      ElementsAre(std::sqrt(2.0)));
}

TEST_F(ElementwiseRules, NanWinsMinAndMax) {
  for (const char *name : {"nn.min %0, %1", "nn.max %0, %1"}) {
    List result =
        evaluate(name, {{"2xf32", {NAN, 1}}, {"2xf32", {1, NAN}}}, "2xf32");
    ASSERT_EQ(result.size(), 2u);
    EXPECT_TRUE(std::isnan(result[0]));
    EXPECT_TRUE(std::isnan(result[1]));
  }
}

TEST_F(ElementwiseRules, DivisionByZeroIsRefused) {
  EXPECT_THAT(
      evaluate("nn.div %0, %1", {{"1xi64", {1}}, {"1xi64", {0}}}, "1xi64"),
      ElementsAre());
  EXPECT_EQ(message,
            "'nn.div' op expected no division by 0, found a divisor of 0");
  EXPECT_THAT(
      evaluate("nn.mod %0, %1", {{"1xi64", {1}}, {"1xi64", {0}}}, "1xi64"),
      ElementsAre());
}

TEST_F(ElementwiseRules, Booleans) {
  List x = {0, 0, 1, 1}, y = {0, 1, 0, 1};
  EXPECT_THAT(evaluate("nn.and %0, %1", {{"4xi1", x}, {"4xi1", y}}, "4xi1"),
              ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(evaluate("nn.or %0, %1", {{"4xi1", x}, {"4xi1", y}}, "4xi1"),
              ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(evaluate("nn.not %0", {{"2xi1", {0, 1}}}, "2xi1"),
              ElementsAre(1, 0));
  EXPECT_THAT(evaluate("nn.is_nan %0", {{"2xf32", {1, NAN}}}, "2xi1"),
              ElementsAre(0, 1));
}

TEST_F(ElementwiseRules, DynamicCodes) {
  EXPECT_THAT(evaluate("nn.dynamic_encode %0",
                       {{"6xf32", {0, 1, 2, -1, 1e-9, 0.9966}}}, "6xui8"),
              ElementsAre(0, 255, 255, 0, 0, 254));
  EXPECT_THAT(evaluate("nn.dynamic_encode %0 {is_signed}",
                       {{"4xf32", {0, 1, -1, 1e-9}}}, "4xui8"),
              ElementsAre(127, 255, 0, 127));
  EXPECT_THAT(evaluate("nn.dynamic_decode %0 {is_signed}",
                       {{"3xui8", {127, 255, 0}}}, "3xf32"),
              ElementsAre(0, 1, -0x1.fc6666p-1));
}

TEST_F(ElementwiseRules, CompareAndSelect) {
  List x = {1, 2, 3}, y = {2, 2, 2};
  auto compare = [&](llvm::StringRef predicate, const char *type) {
    return evaluate(("nn.compare " + predicate + " %0, %1").str(),
                    {{type, x}, {type, y}}, "3xi1");
  };
  for (const char *type : {"3xf32", "3xi64"}) {
    EXPECT_THAT(compare("eq", type), ElementsAre(0, 1, 0));
    EXPECT_THAT(compare("ne", type), ElementsAre(1, 0, 1));
    EXPECT_THAT(compare("lt", type), ElementsAre(1, 0, 0));
    EXPECT_THAT(compare("le", type), ElementsAre(1, 1, 0));
    EXPECT_THAT(compare("gt", type), ElementsAre(0, 0, 1));
    EXPECT_THAT(compare("ge", type), ElementsAre(0, 1, 1));
  }
  EXPECT_THAT(evaluate("nn.select %0, %1, %2",
                       {{"3xi1", {1, 0, 1}}, {"3xf32", x}, {"3xf32", y}},
                       "3xf32"),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(evaluate("nn.select %0, %1, %2",
                       {{"3xi1", {1, 0, 0}}, {"3xi8", x}, {"3xi8", y}}, "3xi8"),
              ElementsAre(1, 2, 2));
}

TEST_F(ElementwiseRules, Cast) {
  EXPECT_THAT(
      evaluate("nn.cast %0", {{"4xf32", {-1.7, 1.7, 300, NAN}}}, "4xi8"),
      ElementsAre(-1, 1, 127, 0));
  EXPECT_THAT(evaluate("nn.cast %0", {{"2xf32", {-3, 300}}}, "2xui8"),
              ElementsAre(0, 255));
  EXPECT_THAT(evaluate("nn.cast %0", {{"2xi64", {257, -1}}}, "2xi8"),
              ElementsAre(1, -1));
  EXPECT_THAT(evaluate("nn.cast %0", {{"3xf32", {0, 0.5, -2}}}, "3xi1"),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(evaluate("nn.cast %0", {{"2xi64", {256, 0}}}, "2xi1"),
              ElementsAre(1, 0));
  EXPECT_THAT(evaluate("nn.cast %0", {{"1xi1", {1}}}, "1xf32"), ElementsAre(1));
}

TEST_F(ElementwiseRules, OwnTypesRoundAndFloat64DoesNot) {
  auto third = [&](const char *type, EvaluationMode mode) {
    return evaluate("nn.div %0, %1", {{type, {1}}, {type, {3}}}, type, mode)[0];
  };
  EXPECT_EQ(third("1xf32", EvaluationMode::Float64), 1.0 / 3);
  EXPECT_EQ(third("1xf32", EvaluationMode::OwnTypes), 1.0f / 3.0f);
  EXPECT_EQ(third("1xf16", EvaluationMode::OwnTypes), 0.333251953125);
  EXPECT_EQ(third("1xbf16", EvaluationMode::OwnTypes), 0.333984375);
  EXPECT_EQ(third("1xf64", EvaluationMode::OwnTypes), 1.0 / 3);
}
