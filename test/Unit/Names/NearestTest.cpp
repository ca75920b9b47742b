// The names that messages suggest.

#include "lib/Names/Nearest.h"

#include <gtest/gtest.h>

using namespace accel;

TEST(NearestTest, CountsTwoForAnEditAndOneForALetterLeftOut) {
  EXPECT_EQ(nameDistance("stage", "stage"), 0u);
  EXPECT_EQ(nameDistance("Stage", "STAGE"), 0u);
  EXPECT_EQ(nameDistance("stoge", "stage"), 2u);
  EXPECT_EQ(nameDistance("stge", "stage"), 1u);
  EXPECT_EQ(nameDistance("staage", "stage"), 1u);
  EXPECT_EQ(nameDistance("", "ab"), 2u);
  EXPECT_EQ(nameDistance("abc", "xyz"), 6u);
}

TEST(NearestTest, TakesTwoLettersExchangedForOneEdit) {
  EXPECT_EQ(nameDistance("fspd", "fsdp"), 2u);
  EXPECT_EQ(nameDistance("ba", "ab"), 2u);
  EXPECT_EQ(nameDistance("ca", "abc"), 6u); // none is edited twice
  EXPECT_EQ(nearestName("fspd_config", {"fp8_config", "fsdp_config"}),
            "fsdp_config");
}

TEST(NearestTest, ComparesTheLastPartOfDottedNames) {
  EXPECT_EQ(nearestName("lr", {"seed", "optimizer.lr"}), "optimizer.lr");
  EXPECT_EQ(nearestName("zero_optimization.stage",
                        {"optimizer.type", "zero_stage", "seed"}),
            "zero_stage");
  EXPECT_EQ(nearestName("optimizer.stage", {"optimizer.type", "zero.stage"}),
            "zero.stage");
}

TEST(NearestTest, SuggestsNothingThatSharesNextToNothing) {
  EXPECT_FALSE(isNear("--rope-scaling-factor", "--lr"));
  EXPECT_FALSE(isNear("--manual-gc", "--min-lr"));
  EXPECT_TRUE(isNear("--num-expert", "--num-experts"));
  EXPECT_TRUE(isNear("hidden", "hidden_size")); // shortened
  EXPECT_EQ(nearestName("--manual-gc", {"--min-lr", "--lr"}), "");
  EXPECT_EQ(nearestName("stage", {}), "");
  EXPECT_EQ(suggestName("--manual-gc", {"--min-lr"}), "");
  EXPECT_EQ(suggestName("stoge", {"stage"}), ", the nearest is 'stage'");
}

TEST(NearestTest, AnotherNumberOfAShortWordIsAnotherThing) {
  EXPECT_FALSE(isNear("fp32", "fp16"));
  EXPECT_FALSE(isNear("bf32", "bf16"));
  EXPECT_FALSE(isNear("fp6", "fp8"));
  EXPECT_TRUE(isNear("bf-16", "bf16"));
  EXPECT_TRUE(isNear("m.h.2", "m.h.0"));
  EXPECT_TRUE(isNear("node_matmul_77", "node_matmul_7"));
}

TEST(NearestTest, ListsNamesUpToALimit) {
  EXPECT_EQ(listNames({}), "");
  EXPECT_EQ(listNames({"a", "b"}), "'a', 'b'");
  EXPECT_EQ(listNames({"a", "b", "c"}, 2), "'a', 'b', ...");
}
