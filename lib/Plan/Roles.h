// What the bytes of a plan are for, in the words of who trains a model.

#ifndef ACCEL_LIB_PLAN_ROLES_H
#define ACCEL_LIB_PLAN_ROLES_H

#include "Liveness.h"
#include <string>

namespace accel::plan {

/// "gradients", "gathered weights": what a buffer is for. `symbols` are those
/// of the module.
std::string describeRole(BufferOp buffer, Content content,
                         const mlir::SymbolTable &symbols);

/// The bytes of a program in some spaces by what they are for, when most of
/// each arena is alive, the most first; not what lies between buffers.
llvm::SmallVector<std::pair<std::string, int64_t>>
addRoles(ProgramOp program, const Liveness &liveness,
         const mlir::SymbolTable &symbols,
         llvm::function_ref<bool(Space)> isCounted);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_ROLES_H
