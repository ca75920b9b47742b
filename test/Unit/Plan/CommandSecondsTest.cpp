// The time of copies: beside the computation, behind it, by cores and not.

#include "lib/Plan/CommandSeconds.h"
#include "lib/Cost/Machine.h"
#include "lib/Driver/InitAll.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
/// A body that computes for as long as 16000000 bytes take, beside a copy to
/// SPACE of BYTES, and then 8 bytes; run three times.
constexpr const char *kPlan = R"mlir(
plan.program @p stage 0 ranks 1 {
  plan.buffer @a : activation device 16000000 bytes
  plan.buffer @b : activation device 8 bytes
  plan.buffer @x : activation device BYTES bytes
  plan.buffer @y : activation SPACE BYTES bytes
  plan.body @f engine ENGINE {
    plan.copy @x[BYTESxi8] -> @y[BYTESxi8] on copies
    plan.record "there" on copies
    plan.fill @a[4000000xf32] with 1.0
    plan.wait "there"
    plan.fill @b[2xf32] with 1.0
  }
  plan.entry @step {
    plan.segment cpu { plan.run @f }
    plan.loop 2 {
      plan.segment cpu { plan.run @f micro_batch turn + 1 }
    }
  }
})mlir";

class CommandSeconds : public ::testing::Test {
protected:
  CommandSeconds() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  double getExposed(StringRef space, int64_t bytes, StringRef engine = "cpu") {
    std::string text = kPlan;
    for (auto [from, to] :
         {std::pair<StringRef, std::string>{"SPACE", space.str()},
          {"BYTES", std::to_string(bytes)},
          {"ENGINE", engine.str()}})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    if (!module)
      return -1;
    auto program = module->lookupSymbol<plan::ProgramOp>("p");
    plan::BufferTable buffers(program);
    SymbolTableCollection symbols;
    return plan::getExposedCopySeconds(*program.getOps<plan::EntryOp>().begin(),
                                       buffers, symbols);
  }

  MLIRContext context;
};

constexpr double kFill = 1.6e7 / cost::kMachine.rank.bytesPerSecond;
} // namespace

TEST_F(CommandSeconds, CoresCopyToTheHostInFull) {
  double copy = 2 * 1e6 / cost::kMachine.rank.bytesPerSecond;
  EXPECT_DOUBLE_EQ(getExposed("host", 1000000), 3 * copy);
}

TEST_F(CommandSeconds, DevicesCopyBesideTheComputation) {
  EXPECT_DOUBLE_EQ(getExposed("host", 1000000, "null"), 0);
  double copy = 2 * 1e7 / cost::kMachine.rank.bytesPerSecond;
  EXPECT_NEAR(getExposed("host", 10000000, "null"), 3 * (copy - kFill), 1e-12);
}

TEST_F(CommandSeconds, FilesAreWrittenBesideTheComputation) {
  double copy = cost::kMachine.storage.getSeconds(1e6);
  ASSERT_GT(copy, kFill);
  EXPECT_NEAR(getExposed("nvme", 1000000), 3 * (copy - kFill), 1e-12);
  EXPECT_DOUBLE_EQ(getExposed("nvme", 8), 0);
}

TEST_F(CommandSeconds, CopiesWithinAnArenaAreWork) {
  EXPECT_DOUBLE_EQ(getExposed("device", 1000000), 0);
}
