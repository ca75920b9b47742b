// Groups of random graphs are joined where no path leads out of them and back,
// and nowhere else: held against a search of all paths.

#include "lib/Plan/Fusion/GroupOrder.h"

#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace accel::plan;

namespace {
/// The same, by searching everything.
class Slow {
public:
  explicit Slow(const std::vector<llvm::SmallVector<unsigned, 4>> &readers)
      : readers(readers), group(readers.size()) {
    for (unsigned node = 0; node < group.size(); ++node)
      group[node] = node;
  }

  bool same(unsigned a, unsigned b) const { return group[a] == group[b]; }

  bool reads(unsigned a, unsigned b) const {
    for (unsigned node = 0; node < group.size(); ++node)
      for (unsigned reader : readers[node])
        if (same(node, a) && same(reader, b))
          return true;
    return false;
  }

  bool join(unsigned a, unsigned b) {
    std::set<unsigned> reached; // groups, from a's readers outside of both
    std::vector<unsigned> work{group[a]};
    while (!work.empty()) {
      unsigned from = work.back();
      work.pop_back();
      for (unsigned node = 0; node < group.size(); ++node) {
        if (group[node] != from)
          continue;
        for (unsigned reader : readers[node]) {
          if (same(reader, b) && from != group[a])
            return false;
          if (!same(reader, b) && !same(reader, a) &&
              reached.insert(group[reader]).second)
            work.push_back(group[reader]);
        }
      }
    }
    unsigned old = group[a], now = group[b];
    for (unsigned &each : group)
      if (each == old)
        each = now;
    return true;
  }

private:
  std::vector<llvm::SmallVector<unsigned, 4>> readers;
  std::vector<unsigned> group;
};

/// From each node edges to some of the next `reach`: near ones, as in a chain
/// of blocks, or any, as between forward and backward.
std::vector<llvm::SmallVector<unsigned, 4>> makeGraph(std::mt19937 &random,
                                                      unsigned nodes,
                                                      unsigned reach,
                                                      unsigned edges) {
  std::vector<llvm::SmallVector<unsigned, 4>> readers(nodes);
  for (unsigned node = 0; node + 1 < nodes; ++node)
    for (unsigned edge = random() % (edges + 1); edge > 0; --edge)
      readers[node].push_back(node + 1 +
                              random() % std::min(reach, nodes - node - 1));
  return readers;
}

TEST(GroupOrderTest, JoinsWhereNoPathLeadsOutAndBack) {
  std::mt19937 random(1);
  int joined = 0, refused = 0;
  for (int round = 0; round < 1000; ++round) {
    unsigned nodes = 5 + random() % 40;
    auto readers = makeGraph(random, nodes, 1 + random() % nodes, 3);
    // Labels next to each other are made anew again and again.
    GroupOrder order(readers, round % 2 ? 1 : 1 << 24);
    Slow slow(readers);
    for (unsigned tries = 0; tries < 3 * nodes; ++tries) {
      unsigned a = random() % nodes, b = random() % nodes;
      if (slow.same(a, b) || !slow.reads(a, b))
        continue;
      bool expected = slow.join(a, b);
      ASSERT_EQ(order.join(a, b), expected)
          << "round " << round << ": " << a << " and " << b;
      ++(expected ? joined : refused);
    }
  }
  EXPECT_GT(joined, 1000);
  EXPECT_GT(refused, 500);
}

} // namespace
