// The plan dialect for C++: include this to name any op or attribute of it.

#ifndef ACCEL_DIALECTS_PLAN_PLAN_H
#define ACCEL_DIALECTS_PLAN_PLAN_H

#include "dialects/Dist/Dist.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

namespace accel::plan {
/// Unit attribute of a func.func that is a kernel's meaning.
inline constexpr llvm::StringLiteral kKernelAttr = "plan.kernel";
/// Integer attribute of a kernel: into how many rows, in row-major order, each
/// result is cut. The first dimensions of each result have that product.
inline constexpr llvm::StringLiteral kRowsAttr = "plan.rows";
/// Attribute of commands: an array of views of bytes that nobody reads after
/// it.
inline constexpr llvm::StringLiteral kReleasesAttr = "plan.releases";
/// String attribute of commands that stand for no op of the model: the pass
/// that inserted them.
inline constexpr llvm::StringLiteral kInsertedByAttr = "plan.inserted_by";
/// Attributes of gathers of weights, and of collectives that scatter gradients:
/// the unit whose they are, and the number of the gathering (`dist.unit`,
/// `dist.instance`).
inline constexpr llvm::StringLiteral kUnitAttr = "plan.unit";
inline constexpr llvm::StringLiteral kInstanceAttr = "plan.instance";
/// The entry that runs once, after the arenas are made. All others have the
/// names of their kinds: step, eval, forward.
inline constexpr llvm::StringLiteral kLoadEntry = "load";
} // namespace accel::plan

#include "dialects/Plan/PlanDialect.h.inc"
#include "dialects/Plan/PlanEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.h.inc"

namespace accel::plan {
/// What a command does with the bytes of a view. None: it names them only.
enum class Access { None, Read, Write, Both };
class CommandOpInterface;
namespace detail {
/// The views that are read, or those that are written.
llvm::SmallVector<ViewAttr> selectViews(CommandOpInterface command, Access how);
/// Calls `visit` on a view, or on each of a list.
inline void visitViews(ViewAttr view, Access access,
                       llvm::function_ref<void(ViewAttr, Access)> visit) {
  if (view)
    visit(view, access);
}
inline void visitViews(mlir::ArrayAttr views, Access access,
                       llvm::function_ref<void(ViewAttr, Access)> visit) {
  for (auto view : views.getAsRange<ViewAttr>())
    visit(view, access);
}
} // namespace detail
} // namespace accel::plan

#include "dialects/Plan/PlanInterfaces.h.inc"
#include "dialects/Plan/PlanSyntax.h"
#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

#endif // ACCEL_DIALECTS_PLAN_PLAN_H
