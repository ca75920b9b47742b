// The groups under which `acc-opt --help` lists its flags.

#ifndef ACCEL_TOOLS_ACC_OPT_FLAGCATEGORIES_H
#define ACCEL_TOOLS_ACC_OPT_FLAGCATEGORIES_H

#include "llvm/Support/CommandLine.h"

extern llvm::cl::OptionCategory modelFlags, trainingFlags, layoutFlags,
    configFlags, outputFlags, reportFlags;

/// Whether it is one of those; other flags are LLVM's.
bool isOurCategory(const llvm::cl::OptionCategory *category);

#endif // ACCEL_TOOLS_ACC_OPT_FLAGCATEGORIES_H
