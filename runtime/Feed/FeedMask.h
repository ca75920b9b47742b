// The task that fills a mask of the rows of a batch that count.

#ifndef ACCEL_RUNTIME_FEED_FEEDMASK_H
#define ACCEL_RUNTIME_FEED_FEEDMASK_H

#include "Data/SampleOrder.h"
#include "Data/TensorFile.h"
#include "accel-rt/Device.h"

namespace accel::rt {

/// Fills the piece of `read` at `coordinates`, of an input [batch] of bool:
/// true in rows that count (SampleOrder::numRows). Before each step,
/// `finishedSteps` says how many were finished; all references must outlive the
/// task.
std::unique_ptr<HostTask> feedMask(const SampleOrder &order,
                                   const ReadCommand &read,
                                   const Coordinates &coordinates,
                                   Memory &memory,
                                   const int64_t &finishedSteps);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_FEEDMASK_H
