// The task that fills an input from an array of samples.

#ifndef ACCEL_RUNTIME_FEED_FEEDARRAY_H
#define ACCEL_RUNTIME_FEED_FEEDARRAY_H

#include "Data/SampleArray.h"
#include "Data/SampleOrder.h"
#include "accel-rt/Device.h"

namespace accel::rt {

/// Fills the piece of `read` at `coordinates`, whose samples lie along `dim`;
/// with `isIgnored` rows that do not count (SampleOrder::numRows) get -100,
/// which takes an input of i32 or i64.
/// Before each step, `finishedSteps` says how many were finished; all
/// references must outlive the task. `memory` is as PieceMover has it. Errors
/// of the task: the file cannot be read any more, or has a number that the
/// input's type has not.
std::unique_ptr<HostTask> feedArray(const SampleArray &array, size_t dim,
                                    const SampleOrder &order, bool isIgnored,
                                    const ReadCommand &read,
                                    const Coordinates &coordinates,
                                    Memory *memory,
                                    const int64_t &finishedSteps);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_FEEDARRAY_H
