// Marks what the backward computes again.

#include "Segments.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_MARKRECOMPUTEDPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
struct MarkRecomputedPass : impl::MarkRecomputedPassBase<MarkRecomputedPass> {
  using Base::Base;

  void runInOrder() override {
    func::FuncOp step = nn::findEntry(getOperation(), nn::EntryKind::step);
    llvm::Expected<RecomputePolicy> parsed = RecomputePolicy::parse(policy);
    if (!parsed) {
      getOperation().emitError() << llvm::toString(parsed.takeError());
      return signalPassFailure();
    }
    if (!step || parsed->kind == RecomputePolicy::Kind::None)
      return;
    FailureOr<std::vector<Segment>> segments =
        ForwardModules(step).find(*parsed);
    if (failed(segments))
      return signalPassFailure();
    Builder builder(&getContext());
    for (const Segment &segment : *segments)
      for (Operation *op : segment.members) {
        op->setAttr(dist::kRecomputeAttr, builder.getStringAttr(segment.name));
        if (segment.discards)
          op->setAttr(dist::kDiscardAttr, builder.getUnitAttr());
      }
  }
};
} // namespace
} // namespace accel::parallel
