// The interfaces that planning asks of nn ops: KernelSource and Cost.

#ifndef ACCEL_LIB_PLAN_MODELS_H
#define ACCEL_LIB_PLAN_MODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::plan {

/// Attaches a KernelSource model to every nn op but matmul and attention, which
/// are commands of their own.
void registerKernelSourceModels(mlir::DialectRegistry &registry);

/// Attaches a Cost model to every nn op that computes or moves elements.
/// Transcendental functions count as one operation per element, like an
/// addition: the figures rank ops, they do not predict time.
void registerCostModels(mlir::DialectRegistry &registry);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MODELS_H
