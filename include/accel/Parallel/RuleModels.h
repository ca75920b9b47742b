// The ShardingRule interface for the nn ops.

#ifndef ACCEL_PARALLEL_RULEMODELS_H
#define ACCEL_PARALLEL_RULEMODELS_H

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace accel::parallel {

/// Attaches a sharding rule to every nn op that functions contain.
void registerShardingRuleModels(mlir::DialectRegistry &registry);

/// The op groups, one per file of lib/Parallel/Rules.
void attachElementwiseRules(mlir::MLIRContext *context);
void attachShapeRules(mlir::MLIRContext *context);
void attachLinearRules(mlir::MLIRContext *context);
void attachReductionRules(mlir::MLIRContext *context);
void attachNormRules(mlir::MLIRContext *context);
void attachAttentionRules(mlir::MLIRContext *context);
void attachLossRules(mlir::MLIRContext *context);
void attachStateRules(mlir::MLIRContext *context);

} // namespace accel::parallel

#endif // ACCEL_PARALLEL_RULEMODELS_H
