// Adds up what batches give.

#include "Feed/LossSums.h"

#include <algorithm>

namespace accel::rt {

LossSums::LossSums(const Executable &executable) {
  if (executable.separateRows)
    for (const LossTerm &term : executable.separateRows->terms)
      sums.push_back({term});
}

double *LossSums::find(const std::string &output) {
  for (Sum &sum : sums) {
    if (sum.term.numerator == output)
      return &sum.numerator;
    if (sum.term.denominator == output)
      return &sum.denominator;
  }
  return nullptr;
}

void LossSums::clear() {
  losses = weights = 0;
  for (Sum &sum : sums)
    sum.numerators = sum.denominators = 0;
}

void LossSums::add(double loss, double weight) {
  losses += loss * weight;
  weights += weight;
  for (Sum &sum : sums) {
    sum.numerators += sum.numerator * weight;
    sum.denominators += sum.denominator * weight;
  }
}

double LossSums::value(double unit) const {
  if (sums.empty())
    return losses / weights;
  double loss = 0;
  for (const Sum &sum : sums) {
    const LossTerm &term = sum.term;
    if (term.denominator.empty()) {
      loss += sum.numerators / weights;
      continue;
    }
    // What is added to a denominator is there once, however many batches are.
    double denominator = sum.denominators / unit + term.plus;
    if (term.least)
      denominator = std::max(denominator, *term.least);
    loss += sum.numerators / unit / denominator;
  }
  return loss;
}

} // namespace accel::rt
