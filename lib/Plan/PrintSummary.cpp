// Prints what a plan adds up to.

#include "Passes.h"
#include "Summary.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_PRINTSUMMARYPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct PrintSummaryPass : impl::PrintSummaryPassBase<PrintSummaryPass> {
  using Base::Base;

  void runOnOperation() override {
    printPlanSummary(getOperation(), llvm::errs(), json);
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace accel::plan
