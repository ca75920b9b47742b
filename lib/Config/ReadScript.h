// A shell script as the arguments that its one command of Python gets.

#ifndef ACCEL_LIB_CONFIG_READSCRIPT_H
#define ACCEL_LIB_CONFIG_READSCRIPT_H

#include "Document.h"

namespace accel::config {

/// Whether `text`, which comes from `name`, is a shell script, or a command of
/// Python's or torchrun's.
bool looksLikeScript(llvm::StringRef text, llvm::StringRef name);

/// Expands a script as a shell does, as far as it consists of assignments,
/// arrays and commands: quotes, comments, `$NAME`, `${NAME}`, `${NAME[@]}`,
/// `${NAME:-VALUE}`, `NAME+=`, `$((…))`. What only the shell knows ($1, unknown
/// names, $(…)) stays as it is written, to be refused where it is a number. The
/// result is the mapping that `parseArguments` makes of what stands behind the
/// name of the script, FILE.py, with `nproc_per_node` and `nnodes` where
/// torchrun has them. Refuses, with the line: no such command, or several;
/// arguments that an `if`, a loop, `&&` or `||` decides; ranks of torchrun's
/// that are no number.
llvm::Expected<Document> readScript(llvm::StringRef text, llvm::StringRef name);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_READSCRIPT_H
