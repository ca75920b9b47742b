// What the parent says of a rank: where it is, and why it does not end.

#ifndef ACCEL_RUNTIME_RUN_WHEREIS_H
#define ACCEL_RUNTIME_RUN_WHEREIS_H

#include "Control/Control.h"
#include "accel-rt/PlanFormat.h"

#include <sys/types.h>

namespace accel::rt {

/// "rank 2, in a gemm of node 'MatMul#17'", "rank 3, waiting for others, in a
/// collective (all_reduce over dp) of node …"; a rank whose streams are in
/// commands of their own is in all of them. `waits`: it waits for other ranks.
std::string whereIs(const Executable &plan, const RankControl &control,
                    int64_t rank, bool waits = false);

/// Whether a rank that has begun to wait can do nothing else: no stream of its
/// is in a command that waits for nobody.
bool canOnlyWait(const Executable &plan, const RankControl &control,
                 int64_t rank);

/// Whether a stream of the rank is in a command that passes messages.
bool isInMessage(const Executable &plan, const RankControl &control,
                 int64_t rank);

/// Of a process that is stopped, traced or stuck in the kernel: " (process 17,
/// in state T (stopped))"; empty for others.
std::string whyItStands(pid_t process);

/// Of a process that SIGKILL did not end: "process 17, traced by process 18".
std::string whyItLives(pid_t process);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_WHEREIS_H
