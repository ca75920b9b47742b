// The table of targets: what it finds, makes once, and refuses.

#include "lib/Target/TargetTable.h"
#include "lib/Driver/InitAll.h"
#include "mlir/IR/Diagnostics.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace accel;

namespace {

class TargetTableTest : public ::testing::Test {
protected:
  explicit TargetTableTest(bool withTargets = true) {
    DialectRegistry registry;
    if (withTargets)
      registerAllDialects(registry);
    else
      registry.insert<plan::PlanDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }
  /// The target, or null.
  const Target *find(StringRef text, int64_t threads = 0) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    FailureOr<const Target *> target = findTarget(*module, text, threads);
    return succeeded(target) ? *target : nullptr;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string message;
};

TEST_F(TargetTableTest, MakesEachOnce) {
  const Target *first = find("");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->getText(), "cpu");
  EXPECT_EQ(find("cpu"), first);
  EXPECT_NE(find("cpu", /*threads=*/3), first);
  EXPECT_EQ(find("cpu:x86-64-v3")->getText(), "cpu:x86-64-v3");
  EXPECT_EQ(find("null")->getEngine(), plan::Engine::null);
}

TEST_F(TargetTableTest, NamesWhatThereIs) {
  for (int time = 0; time < 2; ++time) {
    message = "";
    EXPECT_EQ(find("gpu:3"), nullptr);
    EXPECT_EQ(message, "expected a target ('cpu' or 'cpu:NAME', 'null' or "
                       "'null:queues=N'), found 'gpu:3'");
  }
}

class WithoutTargets : public TargetTableTest {
protected:
  WithoutTargets() : TargetTableTest(/*withTargets=*/false) {}
};

TEST_F(WithoutTargets, SaysThatThereAreNone) {
  EXPECT_EQ(find("cpu"), nullptr);
  EXPECT_EQ(message, "expected a context with targets");
}

} // namespace
