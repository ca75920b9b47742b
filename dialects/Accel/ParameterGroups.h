// The attribute of a module that says how its step updates each parameter; what
// it says stands in AccelDialect.td.

#ifndef ACCEL_DIALECTS_ACCEL_PARAMETERGROUPS_H
#define ACCEL_DIALECTS_ACCEL_PARAMETERGROUPS_H

#include "llvm/ADT/StringRef.h"

namespace accel {

inline constexpr llvm::StringLiteral kParameterGroupsAttr =
    "accel.parameter_groups";

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_PARAMETERGROUPS_H
