// One place that names every dialect, external model and pass of the project.

#include "InitAll.h"

#include "Passes.h"
#include "Targets.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "lib/Autodiff/Models.h"
#include "lib/Autodiff/Passes.h"
#include "lib/Equivalence/Passes.h"
#include "lib/Evaluate/Models.h"
#include "lib/Parallel/Models.h"
#include "lib/Parallel/Passes.h"
#include "lib/Plan/Models.h"
#include "lib/Plan/Passes.h"
#include "lib/Precision/Models.h"
#include "lib/Precision/Passes.h"
#include "lib/Search/Passes.h"
#include "lib/Stages/Passes.h"
#include "lib/Target/Element/Models.h"
#include "lib/Tasks/Passes.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"

void accel::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, AccelDialect, dist::DistDialect,
                  nn::NNDialect, plan::PlanDialect>();
  plan::registerCostModels(registry);
  autodiff::registerDifferentiableModels(registry);
  evaluate::registerEvaluateModels(registry);
  parallel::registerShardingRuleModels(registry);
  plan::registerKernelSourceModels(registry);
  precision::registerCastableModels(registry);
  element::registerElementSourceModels(registry);
  registry.addExtension(+[](mlir::MLIRContext *, plan::PlanDialect *dialect) {
    dialect->addInterface<TargetTable>(driver::targetRows());
  });
}

void accel::registerAllPasses() {
  // Of MLIR's passes those that the phases run. Others have not been tried on
  // bodies that are declared in one phase and dealt out in another:
  // remove-dead-values frees twice what it finds there.
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  autodiff::registerAutodiffPasses();
  driver::registerDriverPasses();
  parallel::registerParallelPasses();
  stages::registerStagesPasses();
  tasks::registerTasksPasses();
  plan::registerPlanPasses();
  precision::registerPrecisionPasses();
  search::registerSearchPasses();
  equivalence::registerEquivalencePasses();
  transforms::registerTransformsPasses();
}
