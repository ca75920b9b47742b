// The loss of an evaluation over all of its batches, from what each batch
// gives: the mean of their losses; or, where the loss is made of sums over rows
// (SeparateRows::terms), that of all rows' sums, in which a label counts the
// same in whichever batch it is.

#ifndef ACCEL_RUNTIME_FEED_LOSSSUMS_H
#define ACCEL_RUNTIME_FEED_LOSSSUMS_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt {

class LossSums {
public:
  /// Keeps references into `executable`.
  explicit LossSums(const Executable &executable);

  /// Where the value of an output of terms goes; null: it is of none.
  double *find(const std::string &output);
  void clear();
  /// Counts a batch of this loss, whose terms stand where `find` said, `weight`
  /// times; a negative weight takes it off.
  void add(double loss, double weight);
  /// Of all that was counted, where each batch counts `unit` times.
  double value(double unit) const;

private:
  struct Sum {
    const LossTerm &term;
    double numerator = 0, denominator = 0; ///< Of the last batch.
    double numerators = 0, denominators = 0;
  };
  std::vector<Sum> sums;
  double losses = 0, weights = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_LOSSSUMS_H
