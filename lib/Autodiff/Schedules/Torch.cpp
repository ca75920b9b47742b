// PyTorch's schedules that multiply the rate by a factor, and its cosines
// (torch/optim/lr_scheduler.py of 2.13, in closed form).

#include "lib/Autodiff/Schedules/Builders.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

Number autodiff::buildStepLR(const Course &course) {
  return course.base *
         pow(course.get("gamma"), floor(course.n / course.get("step_size")));
}

Number autodiff::buildMultiStepLR(const Course &course) {
  Number factor = course.known(1);
  double gamma = course.get("gamma"), power = 1;
  for (double milestone : course.rule.values.list("milestones")) {
    power *= gamma;
    factor = ifLess(course.n, milestone, factor, course.known(power));
  }
  return course.base * factor;
}

Number autodiff::buildExponentialLR(const Course &course) {
  return course.base * pow(course.get("gamma"), course.n);
}

Number autodiff::buildConstantLR(const Course &course) {
  return ifLess(course.n, course.get("total_iters"),
                course.known(course.base * course.get("factor")),
                course.known(course.base));
}

Number autodiff::buildLinearLR(const Course &course) {
  double first = course.get("start_factor"), last = course.get("end_factor"),
         length = course.get("total_iters");
  return course.base *
         (first + (last - first) * min(course.n, length) / length);
}

Number autodiff::buildPolynomialLR(const Course &course) {
  double length = course.get("total_iters");
  return course.base *
         pow(1 - min(course.n, length) / length, course.get("power"));
}

Number autodiff::buildCosineAnnealingLR(const Course &course) {
  double least = course.get("eta_min");
  return least + (course.base - least) * wave(course.n / course.get("T_max"));
}

Number autodiff::buildWarmRestarts(const Course &course) {
  double least = course.get("eta_min"), first = course.get("T_0"),
         factor = course.get("T_mult");
  Number progress = mod(course.n, first) / first;
  if (factor > 1) {
    // Periods T_0 · T_mult^i: which one it is follows from their sum, and the
    // logarithm may be a little less than a whole number.
    Number begun = course.n * ((factor - 1) / first) + 1;
    Number period = floor(log(begun) * (1 / std::log(factor)) + 1e-12);
    Number scale = pow(factor, period);
    Number start = first * (scale - 1) / (factor - 1);
    progress = (course.n - start) / (first * scale);
  }
  return least + (course.base - least) * wave(progress);
}
