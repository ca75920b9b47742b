// Hundreds of wrong plans: each is changed in one place by a seed.

#include "PlanMutants.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

namespace {
const PlanSetting kPlanSettings[] = {
    {"forward", "", "", 1, 0, false},
    {"forward on two ranks", "dp=2", "", 1, 0, false},
    {"one rank, two micro-batches", "", "", 2, 0, true},
    {"DDP", "dp=2", "", 1, 0, true},
    {"ZeRO-1, two micro-batches", "dp=2", "", 2, 1, true},
    {"ZeRO-2, two micro-batches", "dp=2", "", 2, 2, true},
    {"ZeRO-3, bf16", "dp=2", "bf16", 1, 3, true},
    {"ZeRO-3, hybrid, two micro-batches", "dp_replicate=2,dp_shard=2", "", 2, 3,
     true},
    {"two of four micro-batches in flight", "", "", 4, 0, true, "1f1b:2"},
    // More turns than plan-verify follows.
    {"two of eight micro-batches in flight", "", "", 8, 0, true, "1f1b:2"},
    {"ZeRO-3, three of four in flight", "dp=2", "", 4, 3, true, "1f1b:3"},
    {"ZeRO-2, all micro-batches in flight", "dp=2", "", 2, 2, true, "gpipe"},
    {"ZeRO-1, inputs of all micro-batches at once", "dp=2", "", 4, 1, true,
     "1f1b:2", "null:staged"},
    {"tp", "tp=2", "", 1, 0, true},
    {"cp", "cp=2", "", 1, 0, true},
    {"sp, two micro-batches", "sp=2", "", 2, 0, true},
    {"dp x tp, ZeRO-1", "dp=2,tp=2", "", 2, 1, true},
    {"dp_shard x cp, ZeRO-3", "dp_shard=2,cp=2", "", 1, 3, true}};

const PlanSetting kPipelines[] = {
    {"two stages", "pp=2", "", 4, 0, true, "1f1b"},
    {"two stages, one micro-batch", "pp=2", "", 1, 0, true, "1f1b"},
    {"three stages with loops", "pp=3", "", 8, 0, true, "zb-h1"},
    {"three stages, one queue", "pp=3", "", 8, 0, true, "1f1b",
     "null:queues=1"},
    {"a V beside ZeRO-1", "dp_shard=2,pp=2", "", 4, 1, true, "zbv"}};
} // namespace

TEST_F(PlanMutantsTest, RejectsMutantsOfPlans) {
  MutantTally tally = tryPlans(kPlanSettings, 78);
  EXPECT_GE(tally.count(), 300);
  EXPECT_GE(tally.byProof, 150);
  EXPECT_GE(tally.differing.size(), 20u);
}

TEST_F(PlanMutantsTest, RejectsMutantsOfStages) {
  MutantTally tally = tryPlans(kPipelines, 62);
  EXPECT_GE(tally.count(), 100);
  EXPECT_GE(tally.byProof, 40);
  EXPECT_GE(tally.differing["wrong message"], 4);
  // Of one micro-batch every message has one run.
  EXPECT_GE(tally.differing["wrong run of a message"], 3);
}
