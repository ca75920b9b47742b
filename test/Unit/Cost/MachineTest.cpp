// The table of the target, and what is derived from it.

#include "lib/Cost/Exchange.h"
#include "lib/Cost/Flops.h"
#include "gtest/gtest.h"

using namespace accel::cost;

// Cuts and schedules hang on these to the last digit.
TEST(Machine, CountsInFlops) {
  EXPECT_EQ(kFlopsPerByteMoved, 16);
  EXPECT_EQ(kFlopsPerByteSent, 64);
  EXPECT_EQ(kFlopsPerMessage, 1e6);
  EXPECT_EQ(getSeconds(kMachine.rank.flopsPerSecond), 1);
}

TEST(Machine, IsARoofline) {
  Rank rank{100, 10, 0.5};
  EXPECT_EQ(rank.getSeconds(/*flops=*/200, /*bytes=*/10), 2.5);
  EXPECT_EQ(rank.getSeconds(/*flops=*/200, /*bytes=*/40), 4.5);
}

// A sum that all have is a sum of which each has a part, and a gather of parts.
TEST(Machine, SumsAndGathers) {
  Link link{1, 8};
  double ranks = 4, bytes = 32;
  EXPECT_EQ(getSeconds(Exchange::ReduceScatter, ranks, bytes, link), 1 + 3);
  EXPECT_EQ(getSeconds(Exchange::AllGather, ranks, bytes / ranks, link), 1 + 3);
  EXPECT_EQ(getSeconds(Exchange::AllReduce, ranks, bytes, link), 2 * (1 + 3));
  EXPECT_EQ(getSeconds(Exchange::AllToAll, ranks, bytes, link), 1 + 3);
  EXPECT_EQ(getSeconds(Exchange::Permute, ranks, bytes, link), 1 + 4);
  EXPECT_LT(getSeconds(Exchange::AllSlice, ranks, bytes, kMachine.collective),
            getSeconds(Exchange::Permute, ranks, 1, kMachine.collective));
}

// Two products of 2 · width flops a score, as matrix products count them.
TEST(Flops, OfAttentionAreThoseOfItsProducts) {
  int64_t queries = 5, keys = 7, width = 3, valueWidth = 2;
  int64_t scores = queries * keys;
  EXPECT_EQ(countAttentionFlops(scores, width, valueWidth),
            countProductFlops(width, scores) +
                countProductFlops(keys, queries * valueWidth) + 5 * scores);
  EXPECT_EQ(countAttentionGradFlops(scores, width, valueWidth),
            3 * countProductFlops(width, scores) +
                2 * countProductFlops(valueWidth, scores) + 6 * scores);
}
