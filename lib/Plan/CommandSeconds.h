// How long the commands of a plan take, by the table of the target
// (lib/Cost/Machine.h).

#ifndef ACCEL_LIB_PLAN_COMMANDSECONDS_H
#define ACCEL_LIB_PLAN_COMMANDSECONDS_H

#include "BufferTable.h"

namespace accel::plan {

/// Of one execution of a command: by all bytes that it reads and writes, or by
/// its arithmetic, whichever takes longer. Records and waits take none.
double getCommandSeconds(CommandOpInterface command, const BufferTable &buffers,
                         mlir::SymbolTableCollection &symbols);

/// Of a copy of so many bytes between the device and `space`.
double getCopySeconds(int64_t bytes, Space space);

/// By how much one call of an entry takes longer for copies between arenas than
/// if they took no time. Bodies are played one after another, the streams of
/// each beside each other, ordered by its records and waits; of bodies that
/// cores compute, cores copy from memory to memory, which counts in full.
double getExposedCopySeconds(EntryOp entry, const BufferTable &buffers,
                             mlir::SymbolTableCollection &symbols);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_COMMANDSECONDS_H
