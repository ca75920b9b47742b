// Which evaluation of a training run was the best one, and for how many there
// has been none that is better: what --keep-best and early stopping go by, and
// what a checkpoint remembers for them. As the Trainer of Transformers 5 keeps
// it (TrainerState.best_metric, EarlyStoppingCallback).

#ifndef ACCEL_RUNTIME_STATE_BESTEVALUATION_H
#define ACCEL_RUNTIME_STATE_BESTEVALUATION_H

#include <cmath>
#include <cstdint>
#include <limits>

namespace accel::rt {

/// What an evaluation tells, and is the better the smaller it is.
inline constexpr const char *kEvaluationMetric = "eval_loss";

struct BestEvaluation {
  int64_t count = 0; ///< Evaluations so far.
  /// The least value, and the step before it; 0: none was a number.
  double value = std::numeric_limits<double>::infinity();
  int64_t step = 0;
  /// Evaluations in a row that were not better by more than the threshold.
  int64_t withoutGain = 0;

  /// Takes the `found` of the evaluation after `atStep`; returns whether it is
  /// the best so far. A gain that is not greater than `threshold` makes a new
  /// best value, and counts as none.
  bool add(int64_t atStep, double found, double threshold) {
    bool isBest = found < value; // not if it is no number
    bool isGain = count == 0 || (isBest && std::abs(found - value) > threshold);
    withoutGain = isGain ? 0 : withoutGain + 1;
    ++count;
    if (isBest) {
      value = found;
      step = atStep;
    }
    return isBest;
  }
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_BESTEVALUATION_H
