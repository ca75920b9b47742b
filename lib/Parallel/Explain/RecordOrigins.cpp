// Writes down which pass asked for what: whoever comes after may change it.

#include "Origins.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_RECORDORIGINSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
struct RecordOriginsPass : impl::RecordOriginsPassBase<RecordOriginsPass> {
  using Base::Base;

  void runInOrder() override {
    Origins origins(getOperation());
    for (func::FuncOp entry : nn::getEntries(getOperation()))
      for (BlockArgument argument : entry.getArguments())
        for (Operation *user : argument.getUsers())
          if (auto constraint = dyn_cast<dist::ConstraintOp>(user))
            for (auto [dim, axes] :
                 llvm::enumerate(constraint.getSharding().getDims()))
              for (StringAttr axis : axes.getNames())
                origins.add(Origins::ofArgument(entry, argument.getArgNumber()),
                            dim, axis, by);
    origins.store();
  }
};
} // namespace
} // namespace accel::parallel
