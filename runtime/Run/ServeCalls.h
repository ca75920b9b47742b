// A rank's life, after loading, where another program calls it: it waits for a
// call, does its part, and counts itself among those that have.

#ifndef ACCEL_RUNTIME_RUN_SERVECALLS_H
#define ACCEL_RUNTIME_RUN_SERVECALLS_H

#include "Run/Train.h"

namespace accel::rt {

class ThreadPool;

/// Answers calls until one of them is CallKind::End. Requires Job::server, and
/// that `parts.io` transfers for all entries; `pool` is the rank's. Errors end
/// the run; a call that is refused, and a step whose loss or norm is not
/// finite, do not: the state is as it was before.
Status serveCalls(const RankParts &parts, ThreadPool &pool);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_SERVECALLS_H
