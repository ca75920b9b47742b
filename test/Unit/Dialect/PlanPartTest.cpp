// A part has a list of names of axes for each dimension: its syntax can say
// nothing else, and whoever makes one is held to it.

#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace accel;

namespace {

std::string refuse(llvm::function_ref<ArrayAttr(Builder &)> makeAxes) {
  MLIRContext context;
  context.loadDialect<plan::PlanDialect>();
  Builder builder(&context);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto emit = [&] { return emitError(builder.getUnknownLoc()); };
  EXPECT_FALSE(plan::PartAttr::getChecked(
      emit, &context, llvm::ArrayRef<int64_t>{4}, makeAxes(builder)));
  return message;
}

TEST(PlanPart, HasNamesOfAxesForEachDimension) {
  EXPECT_EQ(refuse([](Builder &builder) { return builder.getArrayAttr({}); }),
            "expected a list of axes for each dimension (1), found 0");
  EXPECT_EQ(
      refuse([](Builder &builder) { return builder.getStrArrayAttr({"dp"}); }),
      "expected a list of names of axes for each dimension, found \"dp\"");
  EXPECT_EQ(refuse([](Builder &builder) {
              return builder.getArrayAttr({builder.getI64ArrayAttr({2})});
            }),
            "expected a list of names of axes for each dimension, found [2]");
}

} // namespace
