// What may touch the bytes of space nvme, which are a file's.

#ifndef ACCEL_LIB_PLAN_CHECK_STOREDBYTES_H
#define ACCEL_LIB_PLAN_CHECK_STOREDBYTES_H

#include "lib/Plan/BufferTable.h"

namespace accel::plan {

/// Emits an error for an arena nvme that does not say which file it is, and for
/// a command that does something else with it than to read a state's first
/// value, or to copy bytes that follow each other to it or from it.
mlir::LogicalResult checkStoredBytes(ProgramOp program,
                                     const BufferTable &buffers);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_CHECK_STOREDBYTES_H
