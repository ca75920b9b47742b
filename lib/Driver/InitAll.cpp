// One place that names every dialect, external model and pass of the project.

#include "accel/InitAll.h"

#include "accel/Analysis/CostModels.h"
#include "accel/Autodiff/Differentiate.h"
#include "accel/Autodiff/Passes.h"
#include "accel/Driver/Passes.h"
#include "accel/Evaluate/Models.h"
#include "accel/Parallel/Passes.h"
#include "accel/Parallel/RuleModels.h"
#include "accel/Pipeline/Passes.h"
#include "accel/Plan/KernelModels.h"
#include "accel/Plan/Passes.h"
#include "accel/Precision/Passes.h"
#include "accel/Search/Passes.h"
#include "accel/Target/CPU/ElementModels.h"
#include "accel/Target/CPU/Target.h"
#include "accel/Target/Null/Target.h"
#include "accel/Transforms/Passes.h"
#include "accel/Verify/Passes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

void accel::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, dist::DistDialect, nn::NNDialect,
                  plan::PlanDialect>();
  analysis::registerCostModels(registry);
  autodiff::registerDifferentiableModels(registry);
  evaluate::registerEvaluateModels(registry);
  parallel::registerShardingRuleModels(registry);
  plan::registerKernelSourceModels(registry);
  precision::registerCastableModels(registry);
  cpu::registerElementSourceModels(registry);
  // The first is what is compiled for unless --target says otherwise.
  registry.addExtension(+[](mlir::MLIRContext *, plan::PlanDialect *dialect) {
    dialect->addInterface<TargetTable>(std::vector<TargetTable::Row>{
        cpu::getTargetRow(), null::getTargetRow()});
  });
}

void accel::registerAllPasses() {
  mlir::registerTransformsPasses();
  autodiff::registerAutodiffPasses();
  driver::registerDriverPasses();
  parallel::registerParallelPasses();
  pipeline::registerPipelinePasses();
  plan::registerPlanPasses();
  precision::registerPrecisionPasses();
  search::registerSearchPasses();
  verify::registerVerifyPasses();
  transforms::registerTransformsPasses();
}
