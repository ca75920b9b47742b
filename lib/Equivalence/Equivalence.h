// The independent proof that one rank's program computes the pieces of what the
// whole program computes.

#ifndef ACCEL_LIB_EQUIVALENCE_EQUIVALENCE_H
#define ACCEL_LIB_EQUIVALENCE_EQUIVALENCE_H

#include "mlir/IR/BuiltinOps.h"

namespace accel::equivalence {

/// Derives, for each value of `local` (a module in phase `local`), which piece
/// of which value of `logical` (the same program in phase `train`) it holds, or
/// which term of a sum over which axes, and fails with one located error where
/// an op does not follow: its operands hold nothing that the logical program
/// computes with, a sum is missing or made twice, a piece is another rank's.
///
/// Shares no code with placement, planning or localisation: it knows what ops
/// of `nn` mean for pieces (lib/Equivalence/OpMaps.cpp), what collectives move,
/// and what a schedule runs. It believes dist.layout of arguments (which the
/// runtime reads). Where `logical` has been placed (phase `dist` or `decided`),
/// its types count for shapes alone, not for shardings.
mlir::LogicalResult verifyEquivalence(mlir::ModuleOp logical,
                                      mlir::ModuleOp local);

/// That `padded`, whose dimensions have elements behind those of `logical` and
/// which nothing has split yet, computes the same.
mlir::LogicalResult verifyPadding(mlir::ModuleOp logical,
                                  mlir::ModuleOp padded);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_EQUIVALENCE_H
