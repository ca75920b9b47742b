// What is predicted, as a module says it.

#include "lib/Cost/Prediction.h"

#include "dialects/Accel/Accel.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
class Prediction : public testing::Test {
protected:
  Prediction() { context.loadDialect<AccelDialect>(); }

  ModuleOp read(const std::string &decisions) {
    module = parseSourceString<ModuleOp>(
        "module attributes {accel.decisions = {" + decisions + "}} {}",
        &context);
    return *module;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(Prediction, IsAskedForAndTold) {
  ModuleOp module = read("");
  EXPECT_FALSE(cost::isAskedForPrediction(module));
  EXPECT_TRUE(cost::readPrediction(module)->empty());
  cost::askForPrediction(module);
  EXPECT_TRUE(cost::isAskedForPrediction(module));
  cost::tellPrediction(module, {{0, "device", 4096}, {1, "shared", 64}});
  // Who asks again does not lose what was told.
  cost::askForPrediction(module);
  auto told = cost::readPrediction(module);
  ASSERT_TRUE(succeeded(told));
  ASSERT_EQ(told->size(), 2u);
  EXPECT_EQ((*told)[1].stage, 1);
  EXPECT_EQ((*told)[1].space, "shared");
  EXPECT_EQ((*told)[1].bytes, 64);
}

TEST_F(Prediction, RefusesWhatIsNone) {
  for (const char *text : {"4", "{stage = 0 : i64, space = \"device\"}",
                           "{bytes = 4 : i64, stage = 0 : i64, space = "
                           "\"device\", of = 1 : i64}"}) {
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      said = diagnostic.str();
      return success();
    });
    EXPECT_TRUE(failed(
        cost::readPrediction(read("predicted = [" + std::string(text) + "]"))));
    EXPECT_NE(said.find("expected in 'predicted' of 'accel.decisions' a "
                        "'stage', a 'space' and its 'bytes', found"),
              std::string::npos)
        << said;
  }
}

TEST_F(Prediction, DiffersByPercentOfThePlan) {
  EXPECT_EQ(cost::getDifferencePercent(103, 100), 3);
  EXPECT_EQ(cost::getDifferencePercent(150, 200), -25);
  EXPECT_EQ(cost::getDifferencePercent(0, 0), 0);
}
