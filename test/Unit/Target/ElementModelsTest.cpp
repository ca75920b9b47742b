// The scalar code of ops on a builder that is not the CPU's (LaneBuilder.h),
// against the reference evaluator.

#include "../Evaluate/Rules.h"
#include "LaneBuilder.h"
#include "dialects/Interfaces/ElementSource.h"
#include "lib/Plan/Models.h"
#include "lib/Target/Element/Models.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {
class ElementModels : public RulesTest {
protected:
  using Operands = std::vector<std::pair<std::string, List>>;

  ElementModels() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect>();
    plan::registerKernelSourceModels(registry);
    element::registerElementSourceModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Each element of the op's result, as LaneBuilder computes it.
  List build(const Operands &operands) {
    auto function = *module->getOps<func::FuncOp>().begin();
    Operation *op = &function.front().front();
    OwningOpRef<ModuleOp> code = ModuleOp::create(UnknownLoc::get(&context));
    LaneBuilder lanes(code->getBody());
    lanes.hasScratch = hasScratch;
    for (auto [argument, operand] :
         llvm::zip_equal(function.getArguments(), operands))
      lanes.bind(argument,
                 makeTensor(cast<RankedTensorType>(argument.getType()),
                            operand.second));
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    List found;
    for (int64_t at = 0; at < type.getNumElements(); ++at) {
      auto index = lanes.delinearize(lanes.constantIndex(at), type.getShape());
      Value element = lanes.element(op->getResult(0), index);
      EXPECT_EQ(element.getType(), lanes.getComputeType(type.getElementType()));
      if (isa<FloatType>(type.getElementType())) {
        found.push_back(lanes.numberOf(element));
        continue;
      }
      Tensor one({}, type.getElementType());
      one.mutableInts()[0] =
          wrapToType(lanes.integerOf(element), type.getElementType());
      found.push_back(one.asDouble(0));
    }
    refused = lanes.refused;
    reductions = lanes.reductions;
    return found;
  }

  /// Holds it against the evaluator, with scratch and without.
  void check(StringRef text, const Operands &operands, StringRef type,
             double tolerance = 1e-12) {
    SCOPED_TRACE(text.str());
    List expected = evaluate(text, operands, type);
    ASSERT_EQ(message, "");
    for (bool has : {true, false}) {
      hasScratch = has;
      List found = build(operands);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i],
                    tolerance * (1 + std::abs(expected[i])))
            << i << (has ? "" : ", without scratch");
    }
  }

  bool hasScratch = true;
  std::vector<int64_t> refused;
  int64_t reductions = 0;
};

const List kSix = {1, -2, 0.5, 3, 2.25, -1};

TEST_F(ElementModels, RowsAreReductions) {
  for (const char *log : {"", " {log}"})
    check(std::string("nn.softmax %0 dim 1") + log, {{"2x3xf64", kSix}},
          "2x3xf64");
  check("nn.softmax %0 dim 0", {{"3x2xf64", kSix}}, "3x2xf64");
  check("nn.layer_norm %0, %1, %2 dim 1 epsilon 0.5",
        {{"2x3xf64", kSix}, {"3xf64", {1, 2, 3}}, {"3xf64", {4, 5, 6}}},
        "2x3xf64");
  check("nn.cross_entropy %0, %1", {{"2x3xf64", kSix}, {"2xi64", {2, -100}}},
        "2xf64");
  EXPECT_EQ(reductions, 4); // the greatest and the sum, of two rows
}

TEST_F(ElementModels, ReductionsOfEveryKind) {
  for (const char *kind : {"sum", "prod", "max", "min"}) {
    std::string op = std::string("nn.reduce ") + kind + " %0 dims ";
    check(op + "[1]", {{"2x3xf64", kSix}}, "2xf64");
    check(op + "[0, 1]", {{"2x3xf64", kSix}}, "f64");
    check(op + "[0]", {{"2x3xi8", {100, 3, -7, 100, -128, 5}}}, "3xi8");
    check(op + "[1]", {{"2x3xui8", {200, 3, 7, 100, 255, 5}}}, "2xui8");
  }
  EXPECT_EQ(reductions, 2);
}

/// -1 is the greatest of what has no sign.
TEST_F(ElementModels, UnsignedIntegersOf64Bits) {
  const List left = {-1, 7, -2, 1}, right = {2, -3, 3, 1};
  for (const char *op :
       {"add", "sub", "mul", "div", "mod", "min", "max", "and", "or"})
    check(std::string("nn.") + op + " %0, %1",
          {{"4xui64", left}, {"4xui64", right}}, "4xui64");
  for (const char *predicate : {"eq", "lt", "le", "gt", "ge"})
    check(std::string("nn.compare ") + predicate + " %0, %1",
          {{"4xui64", left}, {"4xui64", right}}, "4xi1");
  check("nn.cast %0", {{"4xui64", left}}, "4xf64");
  for (const char *kind : {"max", "min"})
    check(std::string("nn.reduce ") + kind + " %0 dims [0]", {{"4xui64", left}},
          "ui64");
  check("nn.top_k %0 k 2", {{"1x4xui64", left}}, "1x2xi64");
  check("nn.abs %0", {{"4xui64", left}}, "4xui64");
}

TEST_F(ElementModels, SumsOfWhatComesBefore) {
  for (const char *how :
       {"", " {reverse}", " {exclusive}", " {exclusive, reverse}"})
    check(std::string("nn.cumsum %0 dim 1") + how, {{"2x3xf64", kSix}},
          "2x3xf64");
}

TEST_F(ElementModels, ChoosesTheGreatest) {
  for (const char *how : {"", " {smallest}"}) {
    check(std::string("nn.top_k %0 k 3") + how,
          {{"2x4xf64", {1, 5, 2, 5, -1, 7, 7, 7}}}, "2x3xi64");
    check(std::string("nn.top_k %0 k 2") + how,
          {{"1x4xui8", {1, 255, 128, 255}}}, "1x2xi64");
  }
}

TEST_F(ElementModels, ScattersInOrder) {
  check("nn.scatter_add %0, %1, %2 dim 0",
        {{"3x2xf64", kSix},
         {"4xi64", {2, 0, 2, -1}},
         {"4x2xf64", {1, 2, 3, 4, 5, 6, 7, 8}}},
        "3x2xf64");
}

TEST_F(ElementModels, MovesElements) {
  check("nn.gather %0, %1 dim 0", {{"3x2xf64", kSix}, {"2xi64", {2, -3}}},
        "2x2xf64");
  EXPECT_THAT(refused, IsEmpty());
  check("nn.gather_nd %0, %1", {{"3x2xf64", kSix}, {"2x2xi64", {0, 1, 2, 0}}},
        "2xf64");
  check("nn.concat %0, %1 dim 1",
        {{"2x1xf64", {8, 9}}, {"2x2xf64", {1, 2, 3, 4}}}, "2x3xf64");
  check("nn.pad %0, %1 low [1, 0] high [0, 2]",
        {{"1x2xi64", {1, 2}}, {"i64", {9}}}, "2x4xi64");
  check("nn.slice %0 starts [1, 2] sizes [1, 2] steps [1, -2]",
        {{"2x3xf64", kSix}}, "1x2xf64");
  check("nn.transpose %0 [1, 0]", {{"2x3xf64", kSix}}, "3x2xf64");
  check("nn.reshape %0", {{"2x3xf64", kSix}}, "3x2xf64");
}

TEST_F(ElementModels, RefusesByPosition) {
  evaluate("nn.gather %0, %1 dim 0", {{"3x2xf64", kSix}, {"2xi64", {0, 3}}},
           "2x2xf64");
  build({{"3x2xf64", kSix}, {"2xi64", {0, 3}}});
  EXPECT_THAT(refused, ElementsAre(1));
  evaluate("nn.cross_entropy %0, %1", {{"2x3xf64", kSix}, {"2xi64", {3, -1}}},
           "2xf64");
  build({{"2x3xf64", kSix}, {"2xi64", {3, -1}}});
  EXPECT_THAT(refused, ElementsAre(0, 1));
}

TEST_F(ElementModels, FunctionsAreTheTargets) {
  const List inputs = {0.5, 1.25, 2};
  for (const char *op :
       {"exp", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "erf",
        "sigmoid", "sin", "cos", "atan", "floor", "round", "abs", "neg", "relu",
        "gelu tanh", "gelu erf"})
    check(std::string("nn.") + op + " %0", {{"3xf64", inputs}}, "3xf64");
  for (const char *op :
       {"pow", "mod", "div", "add", "sub", "mul", "min", "max"})
    check(std::string("nn.") + op + " %0, %1",
          {{"3xf64", inputs}, {"3xf64", {3, 0.75, -1}}}, "3xf64");
  check("nn.cast %0", {{"3xf64", {1.7, -1.7, 0.3}}}, "3xf32", 1e-7);
  check("nn.cast %0", {{"3xf32", {1.703125, -1.7, 0.3}}}, "3xbf16", 1e-2);
  for (const char *type : {"i4", "ui4", "i2", "ui2"})
    check("nn.cast %0", {{"3xf64", {1.7, -1.7, 3.3}}},
          std::string("3x") + type);
  check("nn.bitcast %0", {{"2xf32", {1.5, -0.0}}}, "2xi32");
  check("nn.bitcast %0", {{"2xi64", {1e18, -1}}}, "2xui64");
  check("nn.random_uniform %0, %1", {{"2xi64", {1, 77}}, {"2xi64", {5, 6}}},
        "2xf32");
}
} // namespace
