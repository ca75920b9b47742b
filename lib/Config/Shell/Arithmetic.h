// `$(( … ))` and `(( … ))`.

#ifndef ACCEL_LIB_CONFIG_SHELL_ARITHMETIC_H
#define ACCEL_LIB_CONFIG_SHELL_ARITHMETIC_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace accel::config::shell {

using ReadName = llvm::function_ref<std::optional<int64_t>(llvm::StringRef)>;
using WriteName = llvm::function_ref<void(llvm::StringRef, int64_t)>;

/// The value of an expression in C's operators over 64-bit integers, as Bash
/// has it, `=`, `+=`, `++` among them; none where a name has none, what is
/// written is no such expression, it divides by 0 or overflows.
std::optional<int64_t> evaluate(llvm::StringRef text, ReadName read,
                                WriteName write);

} // namespace accel::config::shell

#endif // ACCEL_LIB_CONFIG_SHELL_ARITHMETIC_H
