// A shell script as the arguments that its one command of Python gets.

#ifndef ACCEL_LIB_CONFIG_READSCRIPT_H
#define ACCEL_LIB_CONFIG_READSCRIPT_H

#include "Document.h"

#include <map>

namespace accel::config {

/// Whether `text`, which comes from `name`, is a shell script, or a command of
/// Python's or a launcher's.
bool looksLikeScript(llvm::StringRef text, llvm::StringRef name);

/// Whether the script has a place for the variable, or the argument of that
/// number: it names it, or takes all arguments, or sources what may name it.
bool hasPlaceFor(llvm::StringRef variable, llvm::StringRef text);

/// Runs a script as Bash does, as far as it needs nothing of the machine
/// (docs/Config.md, "Scripts"), with variables and arguments (by their numbers)
/// that are `given`. What only the machine knows ($1, names that are not set,
/// $(…)) stays as it is written, to be refused where it is a number. The result
/// is the mapping that `parseArguments` makes of what stands behind the name of
/// the script, FILE.py, with `nproc_per_node` and `nnodes` where the launcher
/// has them. Refuses, with the line: no such command, or several; arguments
/// that something decides which is not known; ranks that are no number.
llvm::Expected<Document>
readScript(llvm::StringRef text, llvm::StringRef name,
           const std::map<std::string, std::string> &given);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_READSCRIPT_H
