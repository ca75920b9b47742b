// Lack of memory or threads ends acc-opt with an error, and by no signal.

#ifndef ACCEL_TOOLS_ACC_OPT_RESOURCES_H
#define ACCEL_TOOLS_ACC_OPT_RESOURCES_H

#include "llvm/Support/LogicalResult.h"

/// Makes way for llvm::InitLLVM, which installs a handler of its own.
void leaveToLLVM();

/// Makes what LLVM and the standard library abort for errors, and asks
/// beforehand for what libraries take without checking that they got it. Fails,
/// and says so, if that is not there. After llvm::InitLLVM.
llvm::LogicalResult guardResources();

#endif // ACCEL_TOOLS_ACC_OPT_RESOURCES_H
