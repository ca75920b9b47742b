// The arguments of a command line as a document.

#ifndef ACCEL_LIB_CONFIG_PARSEARGUMENTS_H
#define ACCEL_LIB_CONFIG_PARSEARGUMENTS_H

#include "Document.h"
#include "llvm/ADT/ArrayRef.h"

namespace accel::config {

/// Whether the first thing that `text` says is an argument: `--name`.
bool looksLikeArguments(llvm::StringRef text);

/// Requires a text that looks like arguments. Parses `--name VALUE …`,
/// `--name=VALUE` and switches, which have no value, into a mapping from names,
/// dashes included. Refuses, with the line, what only a shell can tell:
/// variables, and arrays.
llvm::Expected<Document> parseArguments(llvm::StringRef text,
                                        llvm::StringRef name);

/// The same of words that a shell has split, each of which has a line.
llvm::Expected<Document> documentOfArguments(llvm::ArrayRef<std::string> words,
                                             llvm::ArrayRef<unsigned> lines,
                                             llvm::StringRef name);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_PARSEARGUMENTS_H
