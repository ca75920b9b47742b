// The ShardingRule interface for the nn ops.

#ifndef ACCEL_LIB_PARALLEL_MODELS_H
#define ACCEL_LIB_PARALLEL_MODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace accel::parallel {

/// Attaches a sharding rule to every nn op that functions contain.
void registerShardingRuleModels(mlir::DialectRegistry &registry);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_MODELS_H
