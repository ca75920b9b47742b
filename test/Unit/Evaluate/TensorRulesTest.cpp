// The meaning of the ops that are not elementwise, against values worked out by
// hand or by PyTorch 2.13 in float64.

#include "test/Unit/Evaluate/Rules.h"

using namespace accel;
using namespace accel::test;
using ::testing::ElementsAre;
using TensorRules = RulesTest;

//===----------------------------------------------------------------------===//
// Linear
//===----------------------------------------------------------------------===//

TEST_F(TensorRules, Matmul) {
  List a = {1, 2, 3, 4, 5, 6}, b = {7, 8, 9, 10, 11, 12};
  EXPECT_THAT(
      evaluate("nn.matmul %0, %1", {{"2x3xf32", a}, {"3x2xf32", b}}, "2x2xf32"),
      ElementsAre(58, 64, 139, 154));
  EXPECT_THAT(evaluate("nn.matmul %0, %1 {transpose_lhs}",
                       {{"3x2xf32", a}, {"3x2xf32", b}}, "2x2xf32"),
              ElementsAre(89, 98, 116, 128));
  EXPECT_THAT(evaluate("nn.matmul %0, %1 {transpose_rhs}",
                       {{"2x3xf32", a}, {"2x3xf32", b}}, "2x2xf32"),
              ElementsAre(50, 68, 122, 167));
}

TEST_F(TensorRules, MatmulBatches) {
  List a = {1, 2, 3, 4}, b = {1, 10, 100, 1000};
  EXPECT_THAT(evaluate("nn.matmul %0, %1", {{"2x1x2xf32", a}, {"2x2x1xf32", b}},
                       "2x1x1xf32"),
              ElementsAre(21, 4300));
  EXPECT_THAT(evaluate("nn.matmul %0, %1", // one rhs for all batches
                       {{"2x1x2xf32", a}, {"2x1xf32", {1, 10}}}, "2x1x1xf32"),
              ElementsAre(21, 43));
}

TEST_F(TensorRules, GroupedMatmul) {
  List x = {1, 2, 3, 4, 5, 6}, w = {1, 2, 3, 4, 10, 20, 30, 40};
  List groups = {1, -1, 0};
  EXPECT_THAT(evaluate("nn.grouped_matmul %0, %1, %2",
                       {{"3x2xf32", x}, {"2x2x2xf32", w}, {"3xi64", groups}},
                       "3x2xf32"),
              ElementsAre(70, 100, 0, 0, 23, 34));
  EXPECT_THAT(evaluate("nn.grouped_matmul %0, %1, %2 {transpose_rhs}",
                       {{"3x2xf32", x}, {"2x2x2xf32", w}, {"3xi32", groups}},
                       "3x2xf32"),
              ElementsAre(50, 110, 0, 0, 17, 39));
}

/// Windows of two elements, two apart from one position to the next; the first
/// one begins outside.
TEST_F(TensorRules, Conv) {
  List x = {1, 2, 3, 4, 5, 6, 7, 8}, w = {1, 10, 100, 1000};
  const char *windows = "sizes [3] strides [2] dilations [1] low [1]";
  EXPECT_THAT(evaluate(std::string("nn.conv %0, %1 ") + windows,
                       {{"1x2x4xf32", x}, {"1x2x2xf32", w}}, "1x1x3xf32"),
              ElementsAre(10 + 5000, 2 + 30 + 600 + 7000, 4 + 800));
  // Each channel a group of its own.
  EXPECT_THAT(evaluate(std::string("nn.conv %0, %1 ") + windows,
                       {{"1x2x1x4xf32", x}, {"2x1x1x2xf32", w}}, "1x2x1x3xf32"),
              ElementsAre(10, 32, 4, 5000, 7600, 800));
  EXPECT_THAT(
      evaluate("nn.conv_input_grad %0, %1 sizes [4] strides [2] dilations [1] "
               "low [1]",
               {{"1x1x3xf32", {1, 2, 3}}, {"1x2x2xf32", w}}, "1x2x4xf32"),
      ElementsAre(10, 2, 20, 3, 1000, 200, 2000, 300));
  EXPECT_THAT(
      evaluate("nn.conv_weight_grad %0, %1 sizes [2] strides [2] dilations [1] "
               "low [1]",
               {{"1x2x4xf32", x}, {"1x1x3xf32", {1, 10, 100}}}, "1x2x2xf32"),
      ElementsAre(20 + 400, 1 + 30, 60 + 800, 5 + 70));
}

/// Of a diagonal matrix each singular value is iterated on by itself: with a, b
/// and c of 2, -1 and 1 it is 2s - s³ + s⁵. Each matrix of a batch, wide and
/// tall; one of one row, which is no diagonal, keeps its direction.
TEST_F(TensorRules, NewtonSchulz) {
  const char *op = "nn.newton_schulz %0 steps 1 coefficients [2.0, -1.0, 1.0]";
  auto f = [](double s) { return 2 * s - s * s * s + s * s * s * s * s; };
  List wide = {0.5, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0.25, 0};
  EXPECT_THAT(evaluate(op, {{"2x2x3xf64", wide}}, "2x2x3xf64"),
              ElementsAre(f(0.5), 0, 0, 0, f(1), 0, f(2), 0, 0, 0, f(0.25), 0));
  List tall = {0.5, 0, 0, 1, 0, 0};
  EXPECT_THAT(evaluate(op, {{"3x2xf64", tall}}, "3x2xf64"),
              ElementsAre(f(0.5), 0, 0, f(1), 0, 0));
  List twice =
      evaluate("nn.newton_schulz %0 steps 2 coefficients [2.0, -1.0, 1.0]",
               {{"1x1xf64", {0.5}}}, "1x1xf64");
  EXPECT_NEAR(twice[0], f(f(0.5)), 1e-15);
  // 0.3² + 0.4² = 0.5²
  List turned = evaluate(op, {{"1x2xf64", {0.3, 0.4}}}, "1x2xf64");
  EXPECT_NEAR(turned[0], 0.6 * f(0.5), 1e-15);
  EXPECT_NEAR(turned[1], 0.8 * f(0.5), 1e-15);
  // Coefficients are numbers of the matrices' type.
  EXPECT_THAT(
      evaluate("nn.newton_schulz %0 steps 1 coefficients [3.4445, 0.0, 0.0]",
               {{"1x1xbf16", {1}}}, "1x1xbf16"),
      ElementsAre(3.4375));
}

TEST_F(TensorRules, GroupedMatmulGrad) {
  List x = {1, 2, 3, 4, 5, 6, 7, 8}, y = {1, 10, 100, 1000};
  EXPECT_THAT(
      evaluate("nn.grouped_matmul_grad %0, %1, %2 num_groups 3",
               {{"4x2xf32", x}, {"4x1xf32", y}, {"4xi64", {2, 0, -1, 2}}},
               "3x2x1xf32"),
      ElementsAre(30, 40, 0, 0, 7001, 8002));
}

//===----------------------------------------------------------------------===//
// Norm
//===----------------------------------------------------------------------===//

TEST_F(TensorRules, Softmax) {
  List x = {1, 2, 3, 1, 1, 4};
  EXPECT_THAT(
      evaluate("nn.softmax %0 dim 1", {{"2x3xf64", x}}, "2x3xf64"),
      Near(List{0.09003057317038045, 0.2447284710547976, 0.6652409557748218,
                0.04527850074362907, 0.04527850074362907, 0.9094429985127419}));
  EXPECT_THAT(evaluate("nn.softmax %0 dim 0", {{"2x3xf64", x}}, "2x3xf64"),
              Near(List{0.5, 0.7310585786300049, 0.2689414213699951, 0.5,
                        0.2689414213699951, 0.7310585786300049}));
  EXPECT_THAT(
      evaluate("nn.softmax %0 dim 1 {log}", {{"2x3xf64", x}}, "2x3xf64"),
      Near(List{-2.4076059644443806, -1.4076059644443804, -0.4076059644443804,
                -3.094922956420961, -3.094922956420961, -0.09492295642096091}));
}

TEST_F(TensorRules, SoftmaxOfLargeValuesAndOfNothing) {
  EXPECT_THAT(
      evaluate("nn.softmax %0 dim 0", {{"2xf64", {1000, 1000}}}, "2xf64"),
      ElementsAre(0.5, 0.5));
  List masked = evaluate("nn.softmax %0 dim 0",
                         {{"2xf64", {-INFINITY, -INFINITY}}}, "2xf64");
  EXPECT_TRUE(std::isnan(masked[0]));
}

TEST_F(TensorRules, LayerNorm) {
  List x = {1, 2, 3, 1, 1, 4};
  EXPECT_THAT(
      evaluate(
          "nn.layer_norm %0, %1, %2 dim 1 epsilon 1.0e-5",
          {{"2x3xf64", x}, {"3xf64", {1, 2, 3}}, {"3xf64", {0.1, 0.2, 0.3}}},
          "2x3xf64"),
      Near(List{-1.1247356859083901, 0.2, 3.9742070577251707,
                -0.6071050134262237, -1.2142100268524474, 4.542630080557342}));
  EXPECT_THAT(
      evaluate("nn.layer_norm %0, %1 dim 0 epsilon 0.5",
               {{"2x3xf64", x}, {"2x3xf64", {1, 2, 3, 4, 5, 6}}}, "2x3xf64"),
      Near(List{-0.7385489458759964, 0.0, 2.215646837627989,
                -2.9541957835039856, -3.692744729379982, 8.862587350511957}));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

class AttentionRules : public RulesTest {
protected:
  List attend(llvm::StringRef rest,
              std::vector<std::pair<std::string, List>> mask = {}) {
    std::vector<std::pair<std::string, List>> operands = {
        {"1x1x2x2xf64", {1, 0, 0, 1}},
        {"1x1x3x2xf64", {1, 2, 3, 4, -1, 0.5}},
        {"1x1x3x1xf64", {1, 2, 4}}};
    operands.insert(operands.end(), mask.begin(), mask.end());
    return evaluate(("nn.attention %0, %1, %2 " + rest).str(), operands,
                    "1x1x2x1xf64;1x1x2xf64");
  }
};

TEST_F(AttentionRules, Plain) {
  EXPECT_THAT(attend("{scale = 0.5}"),
              Near(List{1.935332675285963, 1.986811851176561}));
}

TEST_F(AttentionRules, FloatMaskIsAdded) {
  EXPECT_THAT(attend("mask %3 {scale = 0.5}",
                     {{"1x1x2x3xf64", {0.5, -1, -INFINITY, 0, 0, 0}}}),
              Near(List{1.3775406687981455, 1.986811851176561}));
}

TEST_F(AttentionRules, BoolMaskLetsThrough) {
  EXPECT_THAT(
      attend("mask %3 {scale = 0.5}", {{"1x1x2x3xi1", {1, 0, 1, 0, 1, 0}}}),
      Near(List{1.8068242641099852, 2}));
  // One row for both queries.
  EXPECT_THAT(attend("mask %3 {scale = 0.5}", {{"1x1x1x3xi1", {0, 1, 0}}}),
              Near(List{2, 2}));
}

TEST_F(AttentionRules, CausalCountsFromTheOffsets) {
  List all = {1.935332675285963, 1.986811851176561};
  List behindOneKey = {1.731058578630005, all[1]};
  // Row 0 sees key 0 alone.
  List first = attend("{causal, scale = 0.5}");
  EXPECT_EQ(first[0], 1);
  EXPECT_NEAR(first[1], 1 + 1 / (1 + std::exp(-1)), 1e-12);
  EXPECT_THAT(attend("{causal, row_offset = 1, scale = 0.5}"),
              Near(behindOneKey));
  EXPECT_THAT(attend("{causal, row_offset = 8, column_offset = 7, scale = "
                     "0.5}"),
              Near(behindOneKey));
  EXPECT_THAT(attend("{causal, row_offset = 2, scale = 0.5}"), Near(all));
  // Row 0 stands before key 0, row 1 sees it alone.
  EXPECT_THAT(attend("{causal, column_offset = 1, scale = 0.5, "
                     "zero_masked_rows}"),
              ElementsAre(0, 1));
  // Rows 5, 8 and keys 0, 3, 6; rows 2, 5; keys 2, 5, 8 of rows 0, 3.
  EXPECT_THAT(attend("{causal, row_offset = 5, scale = 0.5, stride = 3}"),
              Near(behindOneKey));
  EXPECT_THAT(attend("{causal, row_offset = 2, scale = 0.5, stride = 3}"),
              Near(first));
  EXPECT_THAT(attend("{causal, column_offset = 2, scale = 0.5, stride = 3, "
                     "zero_masked_rows}"),
              ElementsAre(0, 1));
}

TEST_F(AttentionRules, LogSumExp) {
  // Scores 0.5, 1.5, -0.5 and 1, 2, 0.25.
  attend("{scale = 0.5}");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(
      all[1],
      Near(List{std::log(std::exp(0.5) + std::exp(1.5) + std::exp(-0.5)),
                std::log(std::exp(1.0) + std::exp(2.0) + std::exp(0.25))}));
  // What is hidden adds nothing; of nothing it is -inf, zeros or not.
  attend("{causal, column_offset = 1, scale = 0.5}");
  EXPECT_EQ(all[1][0], -INFINITY);
  EXPECT_EQ(all[1][1], 1);
  EXPECT_TRUE(std::isnan(all[0][0]));
  attend("mask %3 {scale = 0.5, zero_masked_rows}",
         {{"1x1x2x3xi1", {0, 0, 0, 1, 0, 0}}});
  EXPECT_EQ(all[1][0], -INFINITY);
  EXPECT_EQ(all[1][1], 1);
}

TEST_F(AttentionRules, RowsWithoutKeys) {
  List mask = {0, 0, 0, 0, 1, 0};
  EXPECT_THAT(
      attend("mask %3 {scale = 0.5, zero_masked_rows}", {{"1x1x2x3xi1", mask}}),
      ElementsAre(0, 2));
  List plain = attend("mask %3 {scale = 0.5}", {{"1x1x2x3xi1", mask}});
  EXPECT_TRUE(std::isnan(plain[0]));
  EXPECT_EQ(plain[1], 2);
}

TEST_F(AttentionRules, ScoresCountFromLevels) {
  // Scores are lost beside -1e30, but not how many they are.
  List mask = {-1e30, -1e30, -1e30, -INFINITY, 1, 0.5, 1, 0};
  List plain = attend("mask %3 {scale = 0.5}",
                      {{"1x1x2x3xf64", {-1e30, -1e30, -INFINITY, 0.5, 1, 0}}});
  EXPECT_EQ(all[1][0], -1e30);
  double second = all[1][1];
  EXPECT_THAT(attend("mask %3 {scale = 0.5}", {{"1x1x2x4xf64", mask}}),
              Near(plain));
  EXPECT_THAT(all[1], Near(List{std::log(2.0), second - 1}));
}

TEST_F(AttentionRules, GroupedQueries) {
  EXPECT_THAT(evaluate("nn.attention %0, %1, %2 {scale = 1.0}",
                       {{"1x4x1x1xf64", {1, 2, 3, 4}},
                        {"1x2x2x1xf64", {0, 1, 0, -1}},
                        {"1x2x2x1xf64", {1, 2, 3, 5}}},
                       "1x4x1x1xf64;1x4x1xf64"),
              Near(List{1.731058578630005, 1.8807970779778822,
                        3.0948517463551344, 3.0359724199241835}));
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

TEST_F(TensorRules, MoveElements) {
  List x = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(evaluate("nn.reshape %0", {{"2x3xi8", x}}, "3x2xi8"),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(evaluate("nn.transpose %0 [1, 0]", {{"2x3xi8", x}}, "3x2xi8"),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(
      evaluate("nn.transpose %0 [2, 0, 1]", {{"1x2x3xf32", x}}, "3x1x2xf32"),
      ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(evaluate("nn.broadcast %0", {{"2x1xf32", {1, 2}}}, "2x2x3xf32"),
              ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(evaluate("nn.broadcast %0", {{"f32", {7}}}, "2xf32"),
              ElementsAre(7, 7));
  EXPECT_THAT(evaluate("nn.slice %0 starts [1, 2] sizes [1, 2] steps [1, -2]",
                       {{"2x3xf32", x}}, "1x2xf32"),
              ElementsAre(5, 3));
  EXPECT_THAT(evaluate("nn.concat %0, %1 dim 1",
                       {{"2x1xf32", {8, 9}}, {"2x2xf32", {1, 2, 3, 4}}},
                       "2x3xf32"),
              ElementsAre(8, 1, 2, 9, 3, 4));
  EXPECT_THAT(evaluate("nn.pad %0, %1 low [1, 0] high [0, 2]",
                       {{"1x2xi64", {1, 2}}, {"i64", {9}}}, "2x4xi64"),
              ElementsAre(9, 9, 9, 9, 1, 2, 9, 9));
}

TEST_F(TensorRules, Gather) {
  List table = {0, 1, 10, 11, 20, 21};
  EXPECT_THAT(evaluate("nn.gather %0, %1 dim 0",
                       {{"3x2xf32", table}, {"2xi64", {2, -3}}}, "2x2xf32"),
              ElementsAre(20, 21, 0, 1));
  EXPECT_THAT(evaluate("nn.gather %0, %1 dim 1",
                       {{"3x2xf32", table}, {"1xi32", {1}}}, "3x1xf32"),
              ElementsAre(1, 11, 21));
  EXPECT_THAT(evaluate("nn.gather %0, %1 dim 0",
                       {{"3x2xf32", table}, {"1xi64", {3}}}, "1x2xf32"),
              ElementsAre());
  EXPECT_EQ(message, "'nn.gather' op expected indices in [-3, 2], found 3");
  EXPECT_THAT(evaluate("nn.gather %0, %1 dim 0",
                       {{"3x2xf32", table}, {"1xi64", {-4}}}, "1x2xf32"),
              ElementsAre());
}

TEST_F(TensorRules, GatherNd) {
  // The examples of ONNX's GatherND.
  List data = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(evaluate("nn.gather_nd %0, %1",
                       {{"2x2xi32", {0, 1, 2, 3}}, {"2x2xi64", {0, 0, 1, 1}}},
                       "2xi32"),
              ElementsAre(0, 3));
  EXPECT_THAT(evaluate("nn.gather_nd %0, %1",
                       {{"2x2x2xi32", data}, {"2x2xi64", {0, 1, 1, 0}}},
                       "2x2xi32"),
              ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(evaluate("nn.gather_nd %0, %1 {batch_dims = 1}",
                       {{"2x2x2xi32", data}, {"2x1xi64", {1, 0}}}, "2x2xi32"),
              ElementsAre(2, 3, 4, 5));
}

//===----------------------------------------------------------------------===//
// Reduction
//===----------------------------------------------------------------------===//

TEST_F(TensorRules, Reduce) {
  List x = {1, 2, 3, 4, 5, -6};
  auto reduce = [&](llvm::StringRef kind, llvm::StringRef dims,
                    const char *type) {
    return evaluate(("nn.reduce " + kind + " %0 dims " + dims).str(),
                    {{std::string("2x3x") + type, x}},
                    (dims == "[0]"   ? "3x"
                     : dims == "[1]" ? "2x"
                                     : "") +
                        std::string(type));
  };
  for (const char *type : {"f32", "i32"}) {
    EXPECT_THAT(reduce("sum", "[1]", type), ElementsAre(6, 3));
    EXPECT_THAT(reduce("sum", "[0]", type), ElementsAre(5, 7, -3));
    EXPECT_THAT(reduce("max", "[1]", type), ElementsAre(3, 5));
    EXPECT_THAT(reduce("min", "[0, 1]", type), ElementsAre(-6));
    EXPECT_THAT(reduce("prod", "[1]", type), ElementsAre(6, -120));
  }
  EXPECT_THAT(
      evaluate("nn.reduce sum %0 dims [0]", {{"2xi8", {100, 100}}}, "i8"),
      ElementsAre(-56));
  EXPECT_TRUE(std::isnan(evaluate("nn.reduce max %0 dims [0]",
                                  {{"3xf32", {1, NAN, 2}}}, "f32")[0]));
}

TEST_F(TensorRules, TopK) {
  double nan = std::nan(""), infinity = INFINITY;
  List x = {1, 3, 2, 3, -infinity, nan, infinity, nan};
  EXPECT_THAT(evaluate("nn.top_k %0 k 3", {{"2x4xf64", x}}, "2x3xi64"),
              ElementsAre(1, 3, 2, 1, 3, 2)); // equal ones as they stand
  EXPECT_THAT(
      evaluate("nn.top_k %0 k 4 {smallest}", {{"2x4xf64", x}}, "2x4xi64"),
      ElementsAre(0, 2, 1, 3, 0, 2, 1, 3));
  EXPECT_THAT(evaluate("nn.top_k %0 k 2", {{"1x3xi64", {-5, 7, 7}}}, "1x2xi64"),
              ElementsAre(1, 2));
}

TEST_F(TensorRules, Cumsum) {
  List x = {1, 2, 3, 4, 5, 6};
  auto cumsum = [&](llvm::StringRef rest) {
    return evaluate(("nn.cumsum %0 " + rest).str(), {{"2x3xi64", x}},
                    "2x3xi64");
  };
  EXPECT_THAT(cumsum("dim 1"), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(cumsum("dim 0"), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(cumsum("dim 1 {exclusive}"), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(cumsum("dim 1 {reverse}"), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(cumsum("dim 1 {exclusive, reverse}"),
              ElementsAre(5, 3, 0, 11, 6, 0));
}

//===----------------------------------------------------------------------===//
// State, Loss
//===----------------------------------------------------------------------===//

TEST_F(TensorRules, ConstantAndIota) {
  EXPECT_THAT(evaluate("nn.constant dense<[1.5, -2.0]>", {}, "2xf32"),
              ElementsAre(1.5, -2));
  EXPECT_THAT(evaluate("nn.constant dense<true>", {}, "2xi1"),
              ElementsAre(1, 1));
  EXPECT_THAT(
      evaluate("nn.iota {dim = 1 : i64, start = 5 : i64}", {}, "2x3xi64"),
      ElementsAre(5, 6, 7, 5, 6, 7));
  EXPECT_THAT(evaluate("nn.iota {dim = 0 : i64}", {}, "2x2xf32"),
              ElementsAre(0, 0, 1, 1));
}

TEST_F(TensorRules, CrossEntropy) {
  List logits = {1, 2, 3, 1, 1, 4};
  EXPECT_THAT(evaluate("nn.cross_entropy %0, %1",
                       {{"2x3xf64", logits}, {"2xi64", {2, 0}}}, "2xf64"),
              Near(List{0.4076059644443804, 3.094922956420961}));
  EXPECT_THAT(evaluate("nn.cross_entropy %0, %1",
                       {{"2x3xf64", logits}, {"2xi64", {-100, 0}}}, "2xf64"),
              Near(List{0, 3.094922956420961}));
  EXPECT_THAT(evaluate("nn.cross_entropy %0, %1",
                       {{"2x3xf64", logits}, {"2xi64", {3, 0}}}, "2xf64"),
              ElementsAre());
  EXPECT_EQ(message, "'nn.cross_entropy' op expected labels in [0, 2] or "
                     "-100, found 3");
}

TEST_F(TensorRules, EveryOpHasAMeaning) {
  // nn.dropout and nn.rng get one with the step's number, nn.batch_norm with
  // the entry.
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "nn" &&
        name.getStringRef() != nn::DropoutOp::getOperationName() &&
        name.getStringRef() != nn::RngOp::getOperationName() &&
        name.getStringRef() != nn::BatchNormOp::getOperationName() &&
        !name.hasTrait<mlir::OpTrait::ZeroResults>())
      EXPECT_TRUE(name.hasInterface<EvaluateOpInterface>())
          << name.getStringRef().str();
}
