// What the backward of a micro-batch finds of its forward, counted on a plan.

#ifndef ACCEL_LIB_REPORT_KEPTINFLIGHT_H
#define ACCEL_LIB_REPORT_KEPTINFLIGHT_H

#include "dialects/Plan/Plan.h"

namespace accel::report {

/// What micro-batches that have begun and not ended keep for what is to come.
struct KeptInFlight {
  int64_t microBatches = 1; ///< as many as are in flight together, at most
  int64_t bytesEach = 0;    ///< activations that one of them keeps
};
KeptInFlight countKept(plan::ProgramOp program);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_KEPTINFLIGHT_H
