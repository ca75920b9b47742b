// The meaning of the ops that only training uses, against literal values:
// gradients from PyTorch's autograd in float64, random numbers from the test
// vectors of Random123 and an implementation that reproduces all of them.

#include "Rules.h"

using namespace accel;
using namespace accel::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {
using TrainingRules = RulesTest;

TEST_F(TrainingRules, ScatterAdd) {
  // Equal indices all count; negative ones count from the end.
  EXPECT_THAT(evaluate("nn.scatter_add %0, %1, %2 dim 0",
                       {{"3x2xf64", {1, 2, 3, 4, 5, 6}},
                        {"4xi64", {2, 0, 2, -1}},
                        {"4x2xf64", {10, 20, 30, 40, 50, 60, 70, 80}}},
                       "3x2xf64"),
              ElementsAre(31, 42, 3, 4, 135, 166));
  EXPECT_THAT(evaluate("nn.scatter_add %0, %1, %2 dim 1",
                       {{"2x2xi64", {0, 0, 5, 5}},
                        {"1x3xi32", {0, 1, 0}},
                        {"2x1x3xi64", {1, 2, 3, 4, 5, 6}}},
                       "2x2xi64"),
              ElementsAre(4, 2, 15, 10));
  // Batches have indices of their own, also where a dimension lies between.
  EXPECT_THAT(evaluate("nn.scatter_add %0, %1, %2 dim 1 {batch_dims = 1 : i64}",
                       {{"2x3xf64", {1, 2, 3, 4, 5, 6}},
                        {"2x2xi64", {2, 2, 0, -2}},
                        {"2x2xf64", {10, 20, 30, 40}}},
                       "2x3xf64"),
              ElementsAre(1, 2, 33, 34, 45, 6));
  EXPECT_THAT(evaluate("nn.scatter_add %0, %1, %2 dim 2 {batch_dims = 1 : i64}",
                       {{"2x2x2xf64", {0, 0, 0, 0, 0, 0, 0, 0}},
                        {"2xi64", {1, 0}},
                        {"2x2xf64", {1, 2, 3, 4}}},
                       "2x2x2xf64"),
              ElementsAre(0, 1, 0, 2, 3, 0, 4, 0));
  evaluate("nn.scatter_add %0, %1, %2 dim 0",
           {{"3xf64", {0, 0, 0}}, {"1xi64", {3}}, {"1xf64", {1}}}, "3xf64");
  EXPECT_THAT(message, HasSubstr("3"));
}

class AttentionGradRules : public RulesTest {
protected:
  /// Two query heads that share a key head, with the output and the log-sum-exp
  /// that the forward gives. `mask` is empty without
  /// mask.
  void differentiate(llvm::StringRef attributes,
                     std::vector<std::pair<std::string, List>> mask = {}) {
    std::vector<std::pair<std::string, List>> operands = {
        {"1x2x2x2xf64", {-1.25, 0.5, -0.5, 1.25, 0.25, -0.75, 1, 0}},
        {"1x1x3x2xf64", {-0.5, 1.25, 0.25, -0.75, 1, 0}},
        {"1x1x3x1xf64", {0, -1, 0.75}}};
    std::vector<std::pair<std::string, List>> forward = operands;
    forward.insert(forward.end(), mask.begin(), mask.end());
    evaluate(("nn.attention %0, %1, %2 " +
              llvm::StringRef(mask.empty() ? "" : "mask %3 ") + attributes)
                 .str(),
             forward, "1x2x2x1xf64;1x2x2xf64");
    ASSERT_EQ(all.size(), 2u);
    operands.push_back({"1x2x2x1xf64", all[0]});
    operands.push_back({"1x2x2xf64", all[1]});
    operands.push_back({"1x2x2x1xf64", {-0.75, 1, 0, -1}});
    operands.insert(operands.end(), mask.begin(), mask.end());
    evaluate(("nn.attention_grad %0, %1, %2 output %3, %4 gradient %5 " +
              llvm::StringRef(mask.empty() ? "" : "mask %6 ") + attributes)
                 .str(),
             operands, "1x2x2x2xf64;1x1x3x2xf64;1x1x3x1xf64");
    ASSERT_EQ(all.size(), 3u);
  }
};

TEST_F(AttentionGradRules, Plain) {
  differentiate("{scale = 0.5}");
  EXPECT_THAT(all[0], Near(List{-0.024368676592340904, -0.0855499895349933,
                                0.05685347292245615, 0.05772257844323736, 0, 0,
                                -0.127568748920152, -0.1188359282995079}));
  EXPECT_THAT(all[1], Near(List{0.03082723965038871, -0.010728827116490787,
                                0.10572504022049445, -0.05705234957621805,
                                -0.1365522798708832, 0.06778117669270885}));
  EXPECT_THAT(all[2], Near(List{-0.024633200348534584, -0.33607936765491214,
                                -0.3892874319965529}));
}

TEST_F(AttentionGradRules, Causal) {
  differentiate("{causal, row_offset = 1, scale = 0.5}");
  EXPECT_THAT(all[0], Near(List{0.05609063218841959, -0.1495750191691189,
                                0.05685347292245615, 0.05772257844323736, 0, 0,
                                -0.127568748920152, -0.1188359282995079}));
  EXPECT_THAT(all[1], Near(List{0.09650193892988237, -0.03699870682828826,
                                0.10847448962944128, -0.05815212933979678,
                                -0.2049764285593237, 0.09515083616808503}));
  EXPECT_THAT(all[2], Near(List{-0.1181225841876822, -0.37156393530986864,
                                -0.26031348050244896}));
}

TEST_F(AttentionGradRules, Mask) {
  List expected = {-0.15744477293608197, -0.1652166424424872,
                   -0.4273385846214306};
  differentiate("{scale = 0.5}", {{"1x1x2x3xi1", {1, 0, 1, 1, 1, 1}}});
  EXPECT_THAT(all[0], Near(List{-0.07302858201245967, 0.06085715167704972,
                                0.05685347292245615, 0.05772257844323736, 0, 0,
                                -0.127568748920152, -0.1188359282995079}));
  EXPECT_THAT(all[1], Near(List{-0.05783959972786664, 0.024737908634811352,
                                0.2019588766101406, -0.0955458841320765,
                                -0.14411927688227394, 0.07080797549726514}));
  EXPECT_THAT(all[2], Near(expected));
  differentiate("{scale = 0.5}", {{"1x1x2x3xf64", {0, -INFINITY, 0, 0, 0, 0}}});
  EXPECT_THAT(all[2], Near(expected));
}

TEST_F(AttentionGradRules, RowsThatNumbersHideAreUniform) {
  // Beside -1e300 the logarithm of three is lost in the log-sum-exp.
  differentiate(
      "{scale = 0.5}",
      {{"1x1x2x3xf64", {-1e300, -1e300, -1e300, 0, -INFINITY, -INFINITY}}});
  EXPECT_THAT(all[2], Near(List{-0.25, -0.25, -0.25}));
}

TEST_F(AttentionGradRules, RowsWithoutKeysGiveNothing) {
  std::pair<std::string, List> mask = {"1x2x2x3xi1",
                                       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  differentiate("{scale = 0.5, zero_masked_rows}", {mask});
  EXPECT_THAT(all[0], ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(all[1], ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(all[2], ElementsAre(0, 0, 0));
  differentiate("{scale = 0.5}", {mask});
  EXPECT_TRUE(std::isnan(all[0][0]));
}

TEST_F(TrainingRules, RandomUniform) {
  // Random123's kat_vectors: philox4x32 10, all zeros: 6627e8d5 …
  List counters = {0, 1, -1, 5, 8589934595, 0, 123456789012};
  List keys = {0, 0, -1, 7, 0, 1099511627785, -4611686018427387904};
  List words = {6694888,  16311500, 5052631, 5680982,
                13804569, 5843379,  10528647};
  List expected;
  for (double word : words)
    expected.push_back(word / 16777216);
  EXPECT_EQ(evaluate("nn.random_uniform %0, %1",
                     {{"7xi64", counters}, {"7xi64", keys}}, "7xf32"),
            expected);
}

TEST_F(TrainingRules, GradientIsItsOperand) {
  mlir::OwningOpRef<mlir::ModuleOp> program =
      mlir::parseSourceString<mlir::ModuleOp>(R"(
        nn.state @w : tensor<2xf64> = dense<0.0>
        func.func @f(%g: tensor<2xf64>) {
          %r = nn.gradient %g of @w : tensor<2xf64>
          return
        })",
                                              &context);
  ASSERT_TRUE(program);
  auto function = *program->getOps<mlir::func::FuncOp>().begin();
  llvm::SmallVector<Tensor> results;
  ASSERT_TRUE(mlir::succeeded(
      evaluateOp(&function.front().front(),
                 {makeTensor(llvm::cast<mlir::RankedTensorType>(
                                 function.getArgument(0).getType()),
                             {3, -4})},
                 EvaluationMode::Float64, results)));
  EXPECT_THAT(listOf(results[0]), ElementsAre(3, -4));
}
} // namespace
