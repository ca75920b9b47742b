// Where each send and receive stands in its rank's list, so that a step ends
// though nothing is buffered.

#ifndef ACCEL_LIB_PIPELINE_POSTTRANSFERS_H
#define ACCEL_LIB_PIPELINE_POSTTRANSFERS_H

#include "Simulate.h"

namespace accel::pipeline {

/// All ranks list their transfers in one order, that in which they would begin
/// if none waited for another; those that begin at the same time, and do not
/// need each other, are in one wave, and a rank's part of a wave is a group.
///
/// That ends by induction over waves: what a wave waits for, tasks and slots,
/// depends on earlier waves alone, and all ranks come to a wave once they are
/// through the one before. Between two ranks messages leave and arrive in the
/// same order, so that a transport may match them by order as well as by name,
/// also on a ring of two, where the rank before is the rank behind.
///
/// Grouping matters to time: the middle of 1F1B sends a value and receives a
/// gradient at once. What is grouped, and so the speed, depends on `costs`;
/// whether it ends does not. Requires what Execution does. Error: with these
/// slots no order ends, with the tasks and transfers that wait for each other.
llvm::Expected<Posting> postTransfers(const Schedule &schedule,
                                      llvm::ArrayRef<Edge> edges,
                                      const Slots &slots, const Costs &costs);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_POSTTRANSFERS_H
