// The order of the passes that place and split: each says what it needs, what
// it leaves, and what it would break (`Order.def`), and that is checked when it
// runs, in a phase or alone.

#ifndef ACCEL_LIB_PARALLEL_ORDER_H
#define ACCEL_LIB_PARALLEL_ORDER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace accel::parallel {

/// A pass with a row in `Order.def`. It is refused, with the property, who
/// establishes it and the way out, where
/// - what it needs does not hold: it comes too early;
/// - something holds that it would break, which is the property of its row and
///   all behind it, that build on it: it comes too late;
/// - what it establishes holds: it has run.
///
/// A property holds where the program shows it (types with shardings); where
/// the module says so (`accel.established`, which a pass adds to), or has
/// reached the phase by whose end it does. A program that shows nothing and
/// says nothing, as the text of a test may, is believed to be one for the pass.
class OrderedPass : public mlir::OperationPass<mlir::ModuleOp> {
protected:
  using OperationPass::OperationPass;

  /// What the pass does, when it is its turn.
  virtual void runInOrder() = 0;

private:
  void runOnOperation() final;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_ORDER_H
