// Holds what is chosen of small tables against all choices there are.

#include "lib/Search/PolicyKnapsack.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <random>

using namespace accel::search;

namespace {
struct Total {
  int64_t bytes, work;
};
} // namespace

/// Of every choice for every layer, one by one: layers of a class are told
/// apart here.
static std::vector<Total> listAll(const StageTable &table) {
  std::vector<Total> all;
  std::function<void(size_t, int64_t, int64_t, int64_t, int64_t)> visit =
      [&](size_t number, int64_t layer, int64_t bytes, int64_t work,
          int64_t beside) {
        if (number == table.classes.size()) {
          all.push_back({bytes + beside, work});
          return;
        }
        const LayerClass &each = table.classes[number];
        if (layer == each.layers)
          return visit(number + 1, 0, bytes, work, beside);
        for (const LayerClass::Choice &choice : each.choices)
          visit(number, layer + 1, bytes + choice.bytes, work + choice.work,
                std::max(beside, table.besides[choice.policy]));
      };
  visit(0, 0, 0, 0, INT64_MIN);
  return all;
}

static StageTable drawTable(std::mt19937 &draw, int64_t layers) {
  auto any = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(draw);
  };
  StageTable table;
  unsigned policies = any(1, 4);
  for (unsigned policy = 0; policy < policies; ++policy)
    table.besides.push_back(any(0, 3) ? 100 : any(-50, 200));
  // As many as can be listed.
  while (std::pow(policies, layers) > 6e5)
    --layers;
  while (layers > 0) {
    LayerClass each{any(1, layers), {}};
    layers -= each.layers;
    // Some tables have savings that cost nothing, equals, and dearer choices
    // that save nothing.
    int64_t most = any(0, 1) ? 40 : 4;
    int64_t unit = any(0, 3) ? 1 : 10'000'000'000'000'000 / 40 + any(0, 7);
    for (unsigned policy = 0; policy < policies; ++policy)
      if (policy == 0 || any(0, 3))
        each.choices.push_back(
            {policy, any(0, most), policy == 0 ? 0 : unit * any(0, most)});
    table.classes.push_back(each);
  }
  return table;
}

TEST(PolicyKnapsackTest, IsTheBestOfAllChoices) {
  std::mt19937 draw(38);
  for (int number = 0; number < 600; ++number) {
    StageTable table = drawTable(draw, 1 + number % 12);
    std::vector<Total> all = listAll(table);
    int64_t fewest = INT64_MAX, most = 0;
    for (Total total : all) {
      fewest = std::min(fewest, total.bytes);
      most = std::max(most, total.bytes);
    }
    EXPECT_EQ(getFewestBytes(table), fewest);
    EXPECT_FALSE(choosePolicies(table, fewest - 1));
    int64_t before = INT64_MAX;
    for (int64_t budget = fewest; budget <= most + 1;
         budget += 1 + (most - fewest) / 16) {
      std::optional<Total> best;
      for (Total total : all)
        if (total.bytes <= budget &&
            (!best || std::pair(total.work, total.bytes) <
                          std::pair(best->work, best->bytes)))
          best = total;
      auto found = choosePolicies(table, budget);
      ASSERT_TRUE(best && found) << "table " << number << ", " << budget;
      EXPECT_EQ(found->work, best->work)
          << "table " << number << ", " << budget;
      EXPECT_EQ(found->bytes, best->bytes)
          << "table " << number << ", " << budget;
      auto bound = boundWork(table, budget);
      ASSERT_TRUE(bound);
      EXPECT_LE(*bound, double(best->work) * (1 + 1e-12));
      // More memory never takes more work.
      EXPECT_LE(found->work, before);
      before = found->work;
    }
  }
}

/// The counts say what the totals are.
TEST(PolicyKnapsackTest, CountsAddUp) {
  std::mt19937 draw(83);
  for (int number = 0; number < 100; ++number) {
    StageTable table = drawTable(draw, 12);
    auto found =
        choosePolicies(table, getFewestBytes(table) + int64_t(draw() % 100));
    ASSERT_TRUE(found);
    int64_t bytes = 0, work = 0, beside = INT64_MIN;
    for (auto [each, counts] : llvm::zip_equal(table.classes, found->layers)) {
      int64_t layers = 0;
      for (auto [choice, count] : llvm::zip_equal(each.choices, counts)) {
        layers += count;
        bytes += count * choice.bytes;
        work += count * choice.work;
        if (count)
          beside = std::max(beside, table.besides[choice.policy]);
      }
      EXPECT_EQ(layers, each.layers);
    }
    EXPECT_EQ(bytes + beside, found->bytes);
    EXPECT_EQ(work, found->work);
  }
}

/// As many layers as models have: the bound keeps partial choices few.
TEST(PolicyKnapsackTest, IsQuickForManyLayers) {
  StageTable table{{{126,
                     {{0, 900'001, 0},
                      {1, 700'003, 1'000},
                      {2, 400'007, 5'003},
                      {3, 100'009, 30'011}}},
                    {126,
                     {{0, 800'011, 0},
                      {1, 650'017, 900},
                      {2, 420'013, 5'101},
                      {3, 90'001, 28'001}}}},
                   {50, 60, 70, 80}};
  int64_t fewest = getFewestBytes(table);
  for (int part = 0; part <= 40; ++part) {
    int64_t budget = fewest + part * (200'000'000 / 40);
    auto found = choosePolicies(table, budget);
    ASSERT_TRUE(found);
    EXPECT_LE(found->bytes, budget);
    // No better choice is more than one layer's step away from the bound.
    EXPECT_LE(double(found->work) - *boundWork(table, budget), 30'011);
  }
}

/// Without layers the first policy is all there is.
TEST(PolicyKnapsackTest, TakesStagesWithoutLayers) {
  StageTable table{{}, {7, 3}};
  EXPECT_EQ(getFewestBytes(table), 7);
  EXPECT_EQ(choosePolicies(table, 7)->bytes, 7);
  EXPECT_FALSE(choosePolicies(table, 6));
  EXPECT_FALSE(boundWork(table, 6));
}
