// The loss of an evaluation from what its batches give.

#include "Feed/LossSums.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace accel::rt;

namespace {

/// Counts a batch whose terms' outputs, in their order, have these values.
void addLosses(LossSums &sums, const Executable &executable,
               std::initializer_list<double> values, double weight) {
  const double *value = values.begin();
  if (executable.separateRows)
    for (const LossTerm &term : executable.separateRows->terms)
      for (const std::string &name : {term.numerator, term.denominator})
        if (!name.empty())
          *sums.find(name) = *value++;
  sums.add(*value, weight);
}

Executable withTerms(std::vector<LossTerm> terms) {
  Executable executable;
  executable.separateRows.emplace().terms = std::move(terms);
  return executable;
}

TEST(LossSums, OfNoTermsAreTheMeanOfLosses) {
  Executable executable;
  LossSums sums(executable);
  EXPECT_EQ(sums.find("loss"), nullptr);
  addLosses(sums, executable, {3}, 1);
  addLosses(sums, executable, {4}, 1);
  EXPECT_EQ(sums.value(1), 3.5);
  sums.clear();
  // Of 4 rows 1, 2, 3, 4, and of 1: 5 four times, of which three are copies.
  addLosses(sums, executable, {2.5}, 4);
  addLosses(sums, executable, {5}, 4);
  addLosses(sums, executable, {5}, -3);
  EXPECT_EQ(sums.value(4), 3);
}

TEST(LossSums, CountEachLabelTheSame) {
  Executable executable = withTerms({{"n", "d"}});
  LossSums sums(executable);
  EXPECT_EQ(sums.find("loss"), nullptr);
  EXPECT_EQ(sums.find(""), nullptr);
  addLosses(sums, executable, {6, 3, 2}, 1);
  addLosses(sums, executable, {0, 0, NAN}, 1); // no label counts
  addLosses(sums, executable, {10, 1, 10}, 1);
  EXPECT_EQ(sums.value(1), 4);
  sums.clear();
  // Two rows more make no batch of 3: one copy is taken off, exactly.
  addLosses(sums, executable, {6, 3, 2}, 3);
  addLosses(sums, executable, {2 + 2 * 4, 2 + 2 * 1, 2.5}, 3);
  addLosses(sums, executable, {3 * 4, 3 * 1, 4}, -1);
  EXPECT_EQ(sums.value(3), 12. / 6);
}

TEST(LossSums, AddTermsAndConstantsOnce) {
  Executable executable =
      withTerms({{"n", "d", 0.5}, {"mean", ""}, {"m", "e", 1, 8.}});
  for (double unit : {1., 2.}) {
    LossSums sums(executable);
    addLosses(sums, executable, {2, 1, 7, 1, 2, 0}, unit);
    addLosses(sums, executable, {4, 0.5, 9, 3, 3, 0}, unit);
    EXPECT_EQ(sums.value(unit), 6 / 2. + 8 + 4 / 8.);
    addLosses(sums, executable, {0, 0, 8, 0, 4, 0}, unit); // above the least
    EXPECT_EQ(sums.value(unit), 6 / 2. + 8 + 4 / 10.);
  }
}

} // namespace
