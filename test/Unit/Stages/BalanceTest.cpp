// Divisions of small rows, held against all that there are.

#include "lib/Stages/Balance.h"

#include "gtest/gtest.h"
#include <limits>
#include <random>

using namespace accel::stages;

namespace {
double getLength(const Row &row, const Row::Place &begin,
                 const Row::Place &end) {
  return row.work[end.at] - row.work[begin.at] + begin.sent + end.sent;
}

/// What a division comes to: its longest chunk, its largest, and the squares.
struct Sizes {
  double longest = 0, bytes = 0, squares = 0;
};

Sizes measure(const Row &row, const std::vector<size_t> &ends,
              const std::vector<double> &copies) {
  Sizes sizes;
  Row::Place begin{0, 0};
  for (size_t chunk = 0; chunk < copies.size(); ++chunk) {
    Row::Place end{row.work.size() - 1, 0};
    if (chunk < ends.size())
      for (const Row::Place &place : row.places)
        if (place.at == ends[chunk])
          end = place;
    double length = getLength(row, begin, end);
    sizes.longest = std::max(sizes.longest, length);
    sizes.squares += length * length;
    sizes.bytes =
        std::max(sizes.bytes,
                 row.states[end.at] - row.states[begin.at] +
                     copies[chunk] * (row.kept[end.at] - row.kept[begin.at]));
    begin = end;
  }
  return sizes;
}

/// All ways to take so many places in their order.
void listDivisions(const Row &row, size_t count, size_t from,
                   std::vector<size_t> &ends,
                   std::vector<std::vector<size_t>> &found) {
  if (ends.size() == count) {
    found.push_back(ends);
    return;
  }
  for (size_t place = from; place < row.places.size(); ++place) {
    ends.push_back(row.places[place].at);
    listDivisions(row, count, place + 1, ends, found);
    ends.pop_back();
  }
}

Row makeRow(std::mt19937 &random, size_t ops) {
  auto draw = [&](int most) {
    return double(std::uniform_int_distribution<>(0, most)(random));
  };
  Row row;
  double work = 0, states = 0, kept = 0;
  for (size_t op = 0; op <= ops; ++op) {
    row.work.push_back(work);
    row.states.push_back(states);
    row.kept.push_back(kept);
    if (op > 0 && op < ops && draw(3) > 0)
      row.places.push_back({op, draw(20)});
    work += draw(300);
    states += draw(2) ? 0 : draw(100);
    kept += draw(50);
  }
  return row;
}
} // namespace

TEST(Balance, IsTheBestOfAllDivisions) {
  std::mt19937 random(7);
  size_t decidedByBytes = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Row row = makeRow(random, 4 + trial % 8);
    size_t chunks = 1 + trial % 4;
    std::vector<double> copies;
    for (size_t chunk = 0; chunk < chunks; ++chunk)
      copies.push_back(double(chunks - chunk) / chunks);
    std::vector<std::vector<size_t>> all;
    std::vector<size_t> ends;
    listDivisions(row, chunks - 1, 0, ends, all);
    auto found = balance(row, copies);
    ASSERT_EQ(found.has_value(), !all.empty());
    if (!found)
      continue;
    double longest = std::numeric_limits<double>::infinity();
    for (const auto &division : all)
      longest = std::min(longest, measure(row, division, copies).longest);
    Sizes own = measure(row, *found, copies);
    EXPECT_LE(own.longest, longest * (1 + kAsLong));
    for (const auto &division : all) {
      Sizes other = measure(row, division, copies);
      if (other.longest > longest * (1 + kAsLong))
        continue;
      EXPECT_LE(own.bytes, other.bytes);
      if (own.bytes == other.bytes)
        EXPECT_LE(own.squares, other.squares);
      decidedByBytes += own.bytes < other.bytes;
    }
  }
  EXPECT_GT(decidedByBytes, 50u);
}

// Six alike before one that is as long as three: where the longest is given,
// the first chunk, which keeps the most, gets the fewest.
TEST(Balance, GivesWhoKeepsMostTheLeast) {
  Row row;
  for (int op = 0; op <= 7; ++op) {
    row.work.push_back(op < 7 ? 100 * op : 1000);
    row.states.push_back(10 * std::min(op, 6));
    row.kept.push_back(10 * std::min(op, 6));
    if (op > 0 && op < 7)
      row.places.push_back({size_t(op), 1});
  }
  EXPECT_EQ(balance(row, {1, 1, 1}), (std::vector<size_t>{3, 6}));
  EXPECT_EQ(balance(row, {6, 1, 1}), (std::vector<size_t>{2, 6}));
}

TEST(Balance, WantsAsManyPlacesAsEnds) {
  Row row{{0, 1, 2}, {0, 0, 0}, {0, 0, 0}, {{1, 0}}};
  EXPECT_EQ(balance(row, {1}), std::vector<size_t>());
  EXPECT_EQ(balance(row, {1, 1}), std::vector<size_t>{1});
  EXPECT_EQ(balance(row, {1, 1, 1}), std::nullopt);
}
