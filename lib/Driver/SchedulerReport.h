// `--report=scheduler`: the learning rate, and what else a schedule drives,
// over the steps.

#ifndef ACCEL_LIB_DRIVER_SCHEDULERREPORT_H
#define ACCEL_LIB_DRIVER_SCHEDULERREPORT_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace accel::driver {

struct CompileOptions;

/// What a schedule makes of the steps [1, n].
struct Curves {
  std::string title;       ///< the schedule's name
  int64_t steps = 0;       ///< n
  std::vector<int64_t> at; ///< steps that were evaluated, ascending
  struct Curve {
    std::string name;
    std::vector<double> values; ///< one for each of `at`
  };
  std::vector<Curve> curves;
};

/// Draws the curves as an SVG, light or dark as the reader's page: what is
/// called the same but for a group is in one frame.
void writeCurvesSvg(llvm::raw_ostream &out, const Curves &curves);

/// Evaluates the program that makes the hyperparameters of a step, and writes
/// it to the options' output: a chart and a table, JSON (`json`: every step),
/// or a picture where the name ends in `.svg`. Needs no model. `steps`: how
/// many; 0 as many as the schedule is long.
mlir::LogicalResult reportScheduler(const CompileOptions &options,
                                    int64_t steps);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_SCHEDULERREPORT_H
