// What a tool writes: tried before the work whose result it takes, never in the
// place of what is read, and kept only if all of it arrived.

#ifndef ACCEL_LIB_DRIVER_OUTPUTFILE_H
#define ACCEL_LIB_DRIVER_OUTPUTFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include <string>

namespace accel::driver {

/// Why `output` cannot be written, or must not be: because it is one of
/// `inputs`, under whatever name. Empty: nothing speaks against it. "-" is
/// stdout, or stdin. Of an executable (`replaces`) a temporary is made beside
/// it, which is then given its name.
std::string whyNotWrite(llvm::StringRef output, bool replaces,
                        llvm::ArrayRef<std::string> inputs);

/// Keeps what was written to a file; why not, if some of it did not arrive (the
/// disk is full): then the file is gone.
std::string keepOutput(llvm::ToolOutputFile &output);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_OUTPUTFILE_H
