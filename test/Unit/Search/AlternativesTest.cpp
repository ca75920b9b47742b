// Holds what is chosen of alternatives, each with a table of its own, against
// all choices of all alternatives.

#include "lib/Search/Alternatives.h"

#include "lib/Search/PolicyKnapsack.h"
#include "gtest/gtest.h"
#include <functional>
#include <random>

using namespace accel::search;

namespace {
struct Way {
  double seconds;
  StageTable table;
};
} // namespace

/// The least that any choice for every layer takes within the budget, by
/// listing; layers of a class are told apart.
static std::optional<double> listBest(const std::vector<Way> &ways,
                                      int64_t budget) {
  std::optional<double> best;
  for (const Way &way : ways) {
    std::function<void(size_t, int64_t, int64_t, int64_t, int64_t)> visit =
        [&](size_t number, int64_t layer, int64_t bytes, int64_t work,
            int64_t beside) {
          if (number == way.table.classes.size()) {
            double cost = way.seconds + double(work);
            if (bytes + beside <= budget && (!best || cost < *best))
              best = cost;
            return;
          }
          const LayerClass &each = way.table.classes[number];
          if (layer == each.layers)
            return visit(number + 1, 0, bytes, work, beside);
          for (const LayerClass::Choice &choice : each.choices)
            visit(number, layer + 1, bytes + choice.bytes, work + choice.work,
                  std::max(beside, way.table.besides[choice.policy]));
        };
    visit(0, 0, 0, 0, INT64_MIN);
  }
  return best;
}

TEST(AlternativesTest, IsTheBestOfAllChoicesOfAllWays) {
  std::mt19937 draw(3802);
  auto any = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(draw);
  };
  int found = 0, refused = 0, notSolved = 0, notTheFirst = 0;
  for (int number = 0; number < 400; ++number) {
    std::vector<Way> ways(any(1, 5));
    unsigned policies = any(1, 3);
    for (Way &way : ways) {
      way.seconds = double(any(0, 60));
      for (unsigned policy = 0; policy < policies; ++policy)
        way.table.besides.push_back(any(0, 100));
      for (int64_t classes = any(1, 2); classes > 0; --classes) {
        LayerClass each{any(1, 3), {}};
        for (unsigned policy = 0; policy < policies; ++policy)
          each.choices.push_back(
              {policy, any(0, 30), policy == 0 ? 0 : any(0, 20)});
        way.table.classes.push_back(each);
      }
    }
    std::vector<double> bounds;
    for (const Way &way : ways)
      bounds.push_back(way.seconds);
    std::optional<double> before;
    for (int64_t budget = 0; budget < 300; budget += 1 + any(0, 12)) {
      auto search =
          searchAlternatives(bounds, [&](size_t way) -> std::optional<double> {
            auto counts = choosePolicies(ways[way].table, budget);
            if (!counts)
              return std::nullopt;
            return ways[way].seconds + double(counts->work);
          });
      std::optional<double> best = listBest(ways, budget);
      ASSERT_EQ(search.best.has_value(), best.has_value())
          << "table " << number << ", " << budget;
      ++(best ? found : refused);
      if (!best) {
        // Whoever refuses has asked all.
        for (bool isSolved : search.isSolved)
          EXPECT_TRUE(isSolved);
        EXPECT_FALSE(before) << "table " << number << ", " << budget;
        continue;
      }
      EXPECT_EQ(*search.costs[*search.best], *best)
          << "table " << number << ", " << budget;
      for (size_t way = 0; way < ways.size(); ++way)
        if (!search.isSolved[way]) {
          ++notSolved;
          EXPECT_FALSE(search.costs[way]);
          EXPECT_GE(bounds[way], *best);
        } else {
          notTheFirst += bounds[way] < bounds[*search.best];
        }
      // More memory never takes more time.
      EXPECT_TRUE(!before || *best <= *before);
      before = best;
    }
  }
  // The tables are of all kinds.
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 300);
  EXPECT_GT(notSolved, 300);
  EXPECT_GT(notTheFirst, 100);
}
