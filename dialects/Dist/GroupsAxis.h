// The axis along which groups of ranks stand that each keep a copy of the
// parameters.

#ifndef ACCEL_DIALECTS_DIST_GROUPSAXIS_H
#define ACCEL_DIALECTS_DIST_GROUPSAXIS_H

#include "llvm/ADT/StringRef.h"

namespace accel::dist {

/// Major to `dp_shard`, which `dist-annotate` makes two axes of where ranks
/// keep second copies (hpZ). What is gathered over it is such a copy.
inline constexpr llvm::StringLiteral kGroupsAxis = "dp_groups";

} // namespace accel::dist

#endif // ACCEL_DIALECTS_DIST_GROUPSAXIS_H
