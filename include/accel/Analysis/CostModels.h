// The Cost interface for the nn ops.

#ifndef ACCEL_ANALYSIS_COSTMODELS_H
#define ACCEL_ANALYSIS_COSTMODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::analysis {

/// Attaches a Cost model to every nn op that computes or moves elements.
/// Transcendental functions count as one operation per element, like an
/// addition: the figures rank ops, they do not predict time.
void registerCostModels(mlir::DialectRegistry &registry);

} // namespace accel::analysis

#endif // ACCEL_ANALYSIS_COSTMODELS_H
