// Puts terms of sums over ranks first where values are added up, so that there
// is one sum over ranks of all of them.

#include "AxisTerms.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_JOINTERMSPASS
#include "lib/Parallel/Passes.h.inc"

/// What an addition adds up, additions that nothing else reads taken apart.
static void collect(Value value, bool isRoot, SmallVectorImpl<Value> &leaves) {
  auto add = value.getDefiningOp<nn::AddOp>();
  if (!add || (!isRoot && !value.hasOneUse())) {
    leaves.push_back(value);
    return;
  }
  collect(add.getLhs(), /*isRoot=*/false, leaves);
  collect(add.getRhs(), /*isRoot=*/false, leaves);
}

static Value addUp(OpBuilder &builder, Location loc, ArrayRef<Value> values) {
  Value sum = values.front();
  for (Value value : values.drop_front())
    sum = nn::AddOp::create(builder, loc, sum, value);
  return sum;
}

static void joinTerms(func::FuncOp entry, const AxisTerms &terms) {
  auto adds = llvm::to_vector(entry.front().getOps<nn::AddOp>());
  for (nn::AddOp root : adds) {
    // A norm adds up a number for each weight, and numbers are exchanged in
    // buckets: chains of them stay as they are.
    if (root.getType().getRank() == 0 ||
        (root->hasOneUse() && isa<nn::AddOp>(*root->user_begin())))
      continue; // part of another
    SmallVector<Value> leaves, joined, others;
    collect(root.getResult(), /*isRoot=*/true, leaves);
    for (Value leaf : leaves)
      (terms.contains(leaf) ? joined : others).push_back(leaf);
    if (joined.size() < 2 || others.empty())
      continue;
    OpBuilder builder(root);
    Location loc = root.getLoc();
    others.push_back(addUp(builder, loc, joined));
    root.replaceAllUsesWith(addUp(builder, loc, others));
  }
  // What was taken apart; later ones first.
  for (nn::AddOp add : llvm::reverse(adds))
    if (add.use_empty())
      add.erase();
}

namespace {
struct JoinTermsPass : impl::JoinTermsPassBase<JoinTermsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    StringRef axis = dist::MeshOp::kTensorAxis;
    if (!mesh || mesh.findAxisSize(axis).value_or(1) == 1)
      return;
    auto entries = nn::requireEntries(module);
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp entry : *entries)
      joinTerms(entry, AxisTerms(entry, mesh, axis));
  }
};
} // namespace
} // namespace accel::parallel
