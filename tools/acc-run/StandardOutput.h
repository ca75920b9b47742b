// The standard output of a run: a reader that has gone, or a disk that is full,
// is an error, and a reader that is slow holds up nobody.

#ifndef ACCEL_TOOLS_ACC_RUN_STANDARDOUTPUT_H
#define ACCEL_TOOLS_ACC_RUN_STANDARDOUTPUT_H

#include "accel-rt/Status.h"

namespace accel::rt {

/// Writes out what was printed to stdout. Errors: it cannot be written, and
/// what was printed is lost. Requires that SIGPIPE is ignored.
Status flushStandardOutput();

/// Whether `fd` takes a line at once; also if writing there would fail.
bool takesLine(int fd);

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STANDARDOUTPUT_H
