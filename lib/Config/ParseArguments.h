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

/// A word that a shell has split.
struct Argument {
  std::string text;
  unsigned line = 0;
  std::string unknown; ///< why its text is not known; empty: it is
};

/// The same of such words.
llvm::Expected<Document> documentOfArguments(llvm::ArrayRef<Argument> words,
                                             llvm::StringRef name);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_PARSEARGUMENTS_H
