// JSON as DeepSpeed reads it: Hjson, which is JSON with comments, commas that
// may be too many or too few, and names and words without quotes.

#ifndef ACCEL_LIB_CONFIG_PARSEJSON_H
#define ACCEL_LIB_CONFIG_PARSEJSON_H

#include "Document.h"

namespace accel::config {

/// Whether `text`, which comes from `name`, is to be read as JSON: a file whose
/// name says so, and a text that opens with a brace before a quoted key, or
/// with a comment that YAML has not.
bool looksLikeJson(llvm::StringRef text, llvm::StringRef name);

/// Requires a text without zero bytes. Takes what the Python package hjson
/// takes, and tells where that goes beyond JSON (`Document::beyondJson`).
/// Refuses, with line and column: malformed text, a key that is said twice in
/// one object (as DeepSpeed does), nesting deeper than `deepest`.
llvm::Expected<Document> parseJson(llvm::StringRef text, llvm::StringRef name,
                                   unsigned deepest);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_PARSEJSON_H
