// What a text has that it got on its way over a web page or a terminal: such
// files are refused by what is wrong with them, not by how a parser stumbles.

#ifndef ACCEL_LIB_CONFIG_COPIED_H
#define ACCEL_LIB_CONFIG_COPIED_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace accel::config {

/// Refuses a text that begins with a fence of Markdown, with a shell's prompt,
/// or with a section as TOML and INI write it.
llvm::Error refuseCopied(llvm::StringRef text, llvm::StringRef name);

/// ": U+00A0, a no-break space, stands in it: write a blank", of the first
/// letter of typesetting in a name; empty where there is none. Of dashes only
/// those at the front count.
std::string describeTypeset(llvm::StringRef name);

/// Whether a backslash at the front of `rest` was to join lines, and has blanks
/// between it and the line's end.
bool isParted(llvm::StringRef rest);

inline constexpr llvm::StringLiteral kParted =
    "a backslash with blanks behind it does not join its line with the next "
    "one: take the blanks out";

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_COPIED_H
