// acc-opt's flags of training.

#ifndef ACCEL_TOOLS_ACC_OPT_TRAINFLAGS_H
#define ACCEL_TOOLS_ACC_OPT_TRAINFLAGS_H

#include "lib/Driver/Compile.h"

/// Puts the training flags into `options`. Fails with one sentence for one that
/// is out of range or can change nothing, as `options` are otherwise.
llvm::Error readTrainFlags(accel::driver::CompileOptions &options);

#endif // ACCEL_TOOLS_ACC_OPT_TRAINFLAGS_H
