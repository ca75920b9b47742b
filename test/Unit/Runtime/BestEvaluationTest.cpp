// What is the best evaluation, and what counts as none better, by cases that
// were worked out with Transformers 5.24 (python/tests/test_stopping.py replays
// its code on real runs).

#include "State/BestEvaluation.h"

#include <gtest/gtest.h>

#include <vector>

using namespace accel::rt;

namespace {

struct EvaluationCase {
  double threshold;
  std::vector<double> values;
  std::vector<int64_t> withoutGain, best;
};

TEST(BestEvaluation, CountsAsTheTrainerDoes) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (const EvaluationCase &each : {
           EvaluationCase{
               0, {3, 2, 2, 2.5, 1}, {0, 0, 1, 2, 0}, {1, 2, 2, 2, 5}},
           // Small gains make a new best, and are none.
           EvaluationCase{0.5, {3, 2.75, 2.5, 1.5}, {0, 1, 2, 0}, {1, 2, 3, 4}},
           EvaluationCase{
               0, {nan, nan, 4, nan, 5}, {0, 1, 0, 1, 2}, {0, 0, 3, 3, 3}},
       }) {
    BestEvaluation best;
    for (size_t i = 0; i < each.values.size(); ++i) {
      auto step = static_cast<int64_t>(i + 1);
      EXPECT_EQ(best.add(step, each.values[i], each.threshold),
                each.best[i] == step);
      EXPECT_EQ(best.withoutGain, each.withoutGain[i]);
      EXPECT_EQ(best.step, each.best[i]);
      EXPECT_EQ(best.count, step);
    }
  }
}

} // namespace
