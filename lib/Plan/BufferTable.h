// The buffers and bodies of a program by name: each in one step, where a search
// of the program's text would take as many as it has ops.

#ifndef ACCEL_LIB_PLAN_BUFFERTABLE_H
#define ACCEL_LIB_PLAN_BUFFERTABLE_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

/// Of one program. Requires that nothing is renamed, added or erased while it
/// is used, but through it.
class BufferTable {
public:
  explicit BufferTable(ProgramOp program);

  /// The buffer that a view or another buffer names; null if there is none.
  BufferOp lookup(ViewAttr view) const;
  BufferOp lookup(mlir::FlatSymbolRefAttr name) const;
  /// The buffer whose bytes `buffer` has: the last that it is an alias of.
  BufferOp getRoot(BufferOp buffer) const;
  /// What a run runs; null if the program has no such body.
  BodyOp getBody(RunOp run) const;

  /// Puts a buffer behind the others, in front of the bodies, and renames it if
  /// its name is taken.
  void insert(BufferOp buffer);

private:
  mlir::SymbolTable symbols;
  mlir::Operation *last; ///< arena or buffer; null if there is none
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_BUFFERTABLE_H
