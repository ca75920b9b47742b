// What a module says of the program that it was traced as: attributes that
// torch.autocast's lists go by.

#ifndef ACCEL_NN_CALLS_H
#define ACCEL_NN_CALLS_H

#include "llvm/ADT/StringRef.h"

namespace accel::nn {

/// Of a module whose import was asked for it: the traced calls of the nodes
/// that locations name, `{node_pow_1 = "%pow_1 = pow"}` (the value that a call
/// is in the traced program, and its operator without an overload; "" where
/// nodes of one name differ). `nn-autocast` reads and removes it.
inline constexpr llvm::StringLiteral kCallsAttr = "nn.calls";
/// Of a module whose types are those of a list of torch.autocast: its name.
inline constexpr llvm::StringLiteral kAutocastAttr = "nn.autocast";

} // namespace accel::nn

#endif // ACCEL_NN_CALLS_H
