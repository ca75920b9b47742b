// Streams whose work is done by threads of the host, for devices whose tasks
// are HostTasks. Each stream but the first has a thread; the first is worked
// off by whoever joins, if it may be (StreamPlan::mayWorkInJoin), so that a
// call of one stream changes no thread. A capture is the list of what each
// stream does, with addresses and counts resolved up to the turn; replaying it
// enqueues one item a stream.

#ifndef ACCEL_RUNTIME_DEVICE_THREADSTREAMS_H
#define ACCEL_RUNTIME_DEVICE_THREADSTREAMS_H

#include "Base/Futex.h"
#include "accel-rt/Streams.h"

#include <memory>
#include <thread>

namespace accel::rt {

/// Starts the threads. `spin` bounds the looks of a wait before it sleeps
/// (spinLimit).
Status makeThreadStreams(const StreamPlan &plan, int spin,
                         StreamWatcher &watcher,
                         std::unique_ptr<Streams> &streams);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DEVICE_THREADSTREAMS_H
