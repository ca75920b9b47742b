// Settings between the two tables that name them: what lib/Config calls a
// pass's, lib/Driver has an option for.

#include "lib/Driver/Settings.h"

#include "lib/Config/Settings.h"
#include "gtest/gtest.h"

using namespace accel;
using config::NamedSetting;

namespace {
TEST(Settings, OfAPassReachAnOption) {
  int count = 0;
  for (const NamedSetting &setting : config::namedSettings()) {
    bool ofPass = setting.reader == NamedSetting::Reader::Pass;
    EXPECT_EQ(driver::isPhaseSetting(setting.name), ofPass)
        << setting.name.str();
    if (!ofPass || !driver::isPhaseSetting(setting.name))
      continue;
    ++count;
    driver::PhaseOptions options;
    EXPECT_EQ(llvm::toString(driver::applySetting(options, setting.name, "["))
                  .find("expected "),
              0u)
        << setting.name.str();
  }
  EXPECT_GE(count, 2);
}

TEST(Settings, ArePutWhereTheirPassReadsThem) {
  driver::PhaseOptions options;
  EXPECT_FALSE(driver::applySetting(options, "zero_stage", "3"));
  EXPECT_FALSE(driver::applySetting(options, "zero.gather_once", "true"));
  EXPECT_EQ(options.place.shardStates.stage, 3);
  EXPECT_TRUE(options.decide.gatherOnce);
  EXPECT_FALSE(driver::applySetting(options, "zero.gather_once", "false"));
  EXPECT_FALSE(options.decide.gatherOnce);
  EXPECT_FALSE(options.fitMemory.gathersOpen);
  EXPECT_FALSE(driver::applySetting(options, "zero.gather_once", "auto"));
  EXPECT_FALSE(options.decide.gatherOnce);
  EXPECT_TRUE(options.fitMemory.gathersOpen);
  EXPECT_FALSE(driver::applySetting(options, "offload.optimizer", "cpu"));
  EXPECT_EQ(options.plan.offloaded.optimizer, "host");
  EXPECT_FALSE(driver::applySetting(options, "offload.optimizer", "auto"));
  EXPECT_EQ(options.plan.offloaded.optimizer, "auto");
  EXPECT_EQ(options.autocast.lists, "none");
  EXPECT_FALSE(driver::applySetting(options, "autocast.lists", "cuda"));
  EXPECT_EQ(options.autocast.lists, "cuda");
  EXPECT_TRUE(options.place.splitWeights.vocabulary);
  EXPECT_FALSE(driver::applySetting(options, "tp.vocabulary", "false"));
  EXPECT_FALSE(options.place.splitWeights.vocabulary);
}

TEST(Settings, AreOfTheTypeThatTheirRowSays) {
  auto wanted = [](llvm::StringRef name, llvm::StringRef value) {
    return config::describeMismatch(*config::findSetting(name), value);
  };
  EXPECT_EQ(wanted("zero_stage", "2"), "");
  EXPECT_EQ(wanted("zero_stage", "4"), "0, 1, 2 or 3");
  EXPECT_EQ(wanted("zero.gather_once", "yes"), "true, false or auto");
  EXPECT_EQ(wanted("dp_shard", "0"), "an integer of at least 1");
  EXPECT_EQ(wanted("dp_shard", "8"), "");
  EXPECT_EQ(wanted("optimizer.lr", "anything"), "");
  EXPECT_EQ(config::findSetting("zero.stage"), nullptr);
}
} // namespace
