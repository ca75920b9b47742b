// Runs a program's entries in thought: streams as queues, events between them,
// and for every byte of the arenas who wrote it and who read it. What
// plan-verify proves of the IR (lib/Plan/Check/Replay.cpp), proved of the file.

#ifndef ACCEL_RUNTIME_FORMAT_REPLAY_H
#define ACCEL_RUNTIME_FORMAT_REPLAY_H

#include "Format/Tables.h"

namespace accel::rt {

/// Checks that every wait ends, that commands of different streams that touch
/// the same bytes are ordered (one of them writing), that collectives have one
/// order, and that every read finds what was last written through its own
/// buffer: constants, what `load` has left, what the call wrote before. Calls
/// come in any order, so each entry is followed from what `load` has left, and
/// twice; what any of them reads of that must outlive all of them, and but for
/// states unchanged. `program` must have passed the checks of places.
Status replay(const Tables &tables, const Program &program);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FORMAT_REPLAY_H
