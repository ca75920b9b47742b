// What the entries of a program share: states and constants, each with one
// buffer, and the body that reads the former at load.

#ifndef ACCEL_LIB_PLAN_LOWER_SHAREDPROGRAM_H
#define ACCEL_LIB_PLAN_LOWER_SHAREDPROGRAM_H

#include "Lowering.h"

namespace accel::plan {

struct SharedProgram {
  mlir::ModuleOp module;
  const Target &target;
  const mlir::SymbolTable &symbols; ///< of the module, without its programs
  ProgramOp program;
  EntryOp load;
  BodyOp loadBody;
  mlir::OpBuilder &commands; ///< where the next command goes
  Lowering &lowering;
  llvm::StringMap<BufferOp> states = {};

  /// A body at the end of the program, its name made unique.
  BodyOp createBody(mlir::Location loc, llvm::StringRef name);

  /// A state has one buffer, whichever tasks read and write it; its first value
  /// is read at load.
  BufferOp getStateBuffer(mlir::FlatSymbolRefAttr state, mlir::Location loc,
                          mlir::RankedTensorType type, PartAttr part);
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LOWER_SHAREDPROGRAM_H
