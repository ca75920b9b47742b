// Registration of everything that acc's tools know: dialects, the external
// models that let nn ops take part in each phase, and passes.

#ifndef ACCEL_LIB_DRIVER_INITALL_H
#define ACCEL_LIB_DRIVER_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel {

/// Our dialects, the upstream ones that our IR uses, and all external models.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Our passes, and the upstream ones that are useful on our IR (canonicalize,
/// cse, symbol-dce …). Upstream's own list would bring eight foreign `acc-*`.
void registerAllPasses();

} // namespace accel

#endif // ACCEL_LIB_DRIVER_INITALL_H
