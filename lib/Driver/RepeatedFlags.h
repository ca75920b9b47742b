// Flags of which LLVM's command line would take the last, and forget the
// others.

#ifndef ACCEL_LIB_DRIVER_REPEATEDFLAGS_H
#define ACCEL_LIB_DRIVER_REPEATEDFLAGS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace accel::driver {

/// Fails with a sentence for each flag that takes one value and has been given
/// two that differ. Requires that llvm::cl has parsed `arguments`, main's own.
llvm::Error checkRepeatedFlags(llvm::ArrayRef<char *> arguments);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_REPEATEDFLAGS_H
