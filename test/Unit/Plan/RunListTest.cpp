// The analyses of a plan look at as many executions for a million turns of a
// loop as for two: counted, since seconds would tell of the machine.

#include "dialects/Plan/RunList.h"
#include "lib/Plan/Order/CommandOrder.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

namespace {
constexpr const char *kListPlan = R"mlir(
plan.program @p stage 0 ranks 1 {
  plan.buffer @a : activation device 4 bytes
  plan.body @f engine cpu {
    plan.fill @a[1xf32] with 1.0
    plan.record "filled"
    plan.wait "filled" on comm
  }
  plan.entry @step {
    plan.segment cpu { plan.run @f }
    plan.loop TURNS {
      plan.segment cpu { plan.run @f micro_batch turn + 1 }
      plan.segment cpu { plan.run @f micro_batch turn + 2 }
    }
  }
})mlir";

class RunList : public ::testing::Test {
protected:
  RunList() { context.loadDialect<plan::PlanDialect>(); }

  /// Null if the text is refused.
  plan::ProgramOp parse(int64_t turns) {
    std::string text = kListPlan;
    text.replace(text.find("TURNS"), 5, std::to_string(turns));
    module = parseSourceString<ModuleOp>(text, &context);
    return module ? module->lookupSymbol<plan::ProgramOp>("p")
                  : plan::ProgramOp();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(RunList, ListsTurnByTurn) {
  plan::ProgramOp program = parse(3);
  ASSERT_TRUE(program);
  plan::EntryOp entry = *program.getOps<plan::EntryOp>().begin();
  SmallVector<int64_t> batches, turns;
  for (const plan::RunTurn &run : plan::listRuns(entry)) {
    batches.push_back(run.getMicroBatch());
    turns.push_back(run.turn);
  }
  EXPECT_EQ(batches, (SmallVector<int64_t>{0, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(turns, (SmallVector<int64_t>{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(plan::ProofTurns(program).listRuns(entry).size(), 7u);
  int64_t calls = 0;
  entry.walk([&](plan::RunOp run) { calls += run.getTrips(); });
  EXPECT_EQ(calls, 7);
}

TEST_F(RunList, AnalysesDoNotUnroll) {
  // A run is three commands; of the last turn but one the last two.
  std::pair<int64_t, size_t> known[] = {
      {2, 15}, {3, 21}, {4, 25}, {64, 25}, {1000000, 25}};
  for (auto [turns, executions] : known) {
    plan::ProgramOp program = parse(turns);
    ASSERT_TRUE(program);
    FailureOr<plan::CommandOrder> order = plan::CommandOrder::compute(program);
    ASSERT_TRUE(succeeded(order));
    EXPECT_EQ(order->getExecutions().size(), executions) << turns << " turns";
  }
}
