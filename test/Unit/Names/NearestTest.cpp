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

TEST(NearestTest, ListsNamesUpToALimit) {
  EXPECT_EQ(listNames({}), "");
  EXPECT_EQ(listNames({"a", "b"}), "'a', 'b'");
  EXPECT_EQ(listNames({"a", "b", "c"}, 2), "'a', 'b', ...");
}
