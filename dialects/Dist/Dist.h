// The dist dialect for C++: include this to name any op or attribute of it.

#ifndef ACCEL_DIALECTS_DIST_DIST_H
#define ACCEL_DIALECTS_DIST_DIST_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace accel::dist {

class MeshOp;

/// Attribute of arguments and results of local functions: a LayoutAttr.
inline constexpr llvm::StringLiteral kLayoutAttr = "dist.layout";
/// Of arguments and results before that: an InterleavedAttr.
inline constexpr llvm::StringLiteral kInterleavedAttr = "dist.interleaved";
/// Attribute of reshards and collectives: the pass that put them there. Their
/// location is that of the op they serve.
inline constexpr llvm::StringLiteral kInsertedByAttr = "dist.inserted_by";
/// Attribute of attention whose keys and values go from rank to rank in a ring.
inline constexpr llvm::StringLiteral kRingAttr = "dist.ring";
/// Attributes of gathers of weights, and of sums that scatter gradients: the
/// unit that they belong to; of gathers the number of the gathering of that
/// unit as well, which keeps one in the forward and one in the backward from
/// being merged. What carries a number, casts in front of gathers among it,
/// runs once per micro-batch.
inline constexpr llvm::StringLiteral kUnitAttr = "dist.unit";
inline constexpr llvm::StringLiteral kInstanceAttr = "dist.instance";
/// Of an op of the forward, a string: the segment that the backward computes
/// again; `dist.discard` if what the forward reads of it is not kept either. Of
/// an op that computes it again: the segment, too.
inline constexpr llvm::StringLiteral kRecomputeAttr = "dist.recompute";
inline constexpr llvm::StringLiteral kDiscardAttr = "dist.discard";
inline constexpr llvm::StringLiteral kRecomputedAttr = "dist.recomputed";
/// Attributes of who asks for explanations, and of nobody else: of reshards and
/// collectives why each axis of the operand is there, a dictionary of strings
/// by axis; of modules where axes come from (`parallel::Origins`).
inline constexpr llvm::StringLiteral kReasonsAttr = "dist.reasons";
inline constexpr llvm::StringLiteral kOriginsAttr = "dist.origins";
/// Attribute of functions: a TaskAttr.
inline constexpr llvm::StringLiteral kTaskAttr = "dist.task";

} // namespace accel::dist

#include "dialects/Dist/DistDialect.h.inc"
#include "dialects/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.h.inc"
#include "dialects/Dist/DistInterfaces.h.inc"

namespace accel::dist {

/// The text of a list of axes, `{mb, dp, ?}`, and of a mesh's, `["dp" = 2]`, as
/// attributes and the ops' assembly formats write it.
mlir::ParseResult parseAxisList(mlir::AsmParser &parser, AxesAttr &axes);
void printAxisList(mlir::AsmPrinter &printer, AxesAttr axes);
inline void printAxisList(mlir::OpAsmPrinter &printer, mlir::Operation *,
                          AxesAttr axes) {
  printAxisList(printer, axes);
}
mlir::ParseResult parseMeshAxes(mlir::OpAsmParser &parser,
                                mlir::ArrayAttr &axes);
/// The micro-batch of a run: `3`, or of a turn `turn` and `turn + 1`.
mlir::ParseResult parseMicroBatch(mlir::OpAsmParser &parser,
                                  mlir::IntegerAttr &offset,
                                  mlir::UnitAttr &turn);
void printMicroBatch(mlir::OpAsmPrinter &printer, mlir::Operation *,
                     mlir::IntegerAttr offset, mlir::UnitAttr turn);
void printMeshAxes(mlir::OpAsmPrinter &printer, mlir::Operation *,
                   mlir::ArrayAttr axes);

} // namespace accel::dist

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

namespace accel::dist {

/// Checks a sharding of a tensor of `shape` against its mesh: every axis exists
/// and the axes of each dimension divide its size. Reports at `op`.
mlir::LogicalResult verifySharding(mlir::Operation *op, ShardingAttr sharding,
                                   llvm::ArrayRef<int64_t> shape);

/// The sharding of what terms that are partial over micro-batches add up to.
ShardingAttr getAccumulatedSharding(ShardingAttr term);

/// The element that changes nothing where others are combined with it: 0 of a
/// sum, the least number of a max, the largest of a min.
mlir::TypedAttr getIdentity(Reduction kind, mlir::Type element);

} // namespace accel::dist

#endif // ACCEL_DIALECTS_DIST_DIST_H
