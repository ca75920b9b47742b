// What acc-opt does with a file that is neither a model nor text: an executable
// says what it holds, and the bytes of no other are printed.

#ifndef ACCEL_TOOLS_ACC_OPT_INPUTFILE_H
#define ACCEL_TOOLS_ACC_OPT_INPUTFILE_H

#include "lib/Driver/Compile.h"

/// The first bytes of the file `path`; empty if it cannot be read.
std::string readHead(llvm::StringRef path);

/// Whether a file that begins with `head` is an executable of acc.
bool isExecutable(llvm::StringRef head);

/// Fails where a file that begins with `head` is neither text nor MLIR's
/// bytecode, with a sentence about what it seems to be.
mlir::LogicalResult checkText(llvm::StringRef path, llvm::StringRef head);

/// Prints the text of the phase `options.compileTo` that the executable
/// `options.input` keeps, or `--report=parameters` of what it keeps. Refuses
/// where none was named, and flags of compiling: that is done.
mlir::LogicalResult printPhase(const accel::driver::CompileOptions &options,
                               bool namesPhase);

#endif // ACCEL_TOOLS_ACC_OPT_INPUTFILE_H
