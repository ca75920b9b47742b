// Arranges tensor-parallel ranks along two axes where they are more than key
// heads: one that key heads are split over, and one whose ranks share a head.

#include "TensorAxes.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SHAREKEYHEADSPASS
#include "lib/Parallel/Passes.h.inc"

llvm::SmallVector<StringRef, 2> getTensorAxes(dist::MeshOp mesh) {
  llvm::SmallVector<StringRef, 2> axes;
  for (StringRef axis :
       {StringRef(kKeyHeadsAxis), StringRef(dist::MeshOp::kTensorAxis)})
    if (mesh && mesh.findAxisSize(axis).value_or(1) > 1)
      axes.push_back(axis);
  return axes;
}

int64_t countTensorRanks(dist::MeshOp mesh) {
  int64_t ranks = 1;
  for (StringRef axis : getTensorAxes(mesh))
    ranks *= *mesh.findAxisSize(axis);
  return ranks;
}

/// Over how many parts of `ranks` ranks each key heads are split; 1 if ranks
/// need not share any, or cannot.
static int64_t countParts(ModuleOp module, int64_t ranks) {
  int64_t parts = 0;
  module.walk([&](nn::AttentionOp op) {
    int64_t queries = op.getQuery().getType().getDimSize(1),
            keys = op.getKey().getType().getDimSize(1);
    if (keys % ranks == 0)
      return;
    bool shares = ranks % keys == 0 && queries % ranks == 0;
    parts = shares && (parts == 0 || parts == keys) ? keys : 1;
  });
  return std::max<int64_t>(parts, 1);
}

/// Whether somebody has split something over the axis already.
static bool isUsed(ModuleOp module, StringRef axis) {
  WalkResult result = module.walk([&](dist::ConstraintOp op) {
    for (dist::AxesAttr axes : op.getSharding().getDims())
      if (axes.contains(axis))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

namespace {
struct ShareKeyHeadsPass : impl::ShareKeyHeadsPassBase<ShareKeyHeadsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    StringRef name = dist::MeshOp::kTensorAxis;
    int64_t ranks = mesh ? mesh.findAxisSize(name).value_or(1) : 1;
    int64_t parts = ranks == 1 ? 1 : countParts(module, ranks);
    if (parts == 1 || mesh.findAxisSize(kKeyHeadsAxis) || isUsed(module, name))
      return;
    SmallVector<Attribute> axes, links;
    for (auto [number, axis] :
         llvm::enumerate(mesh.getAxes().getAsRange<dist::AxisAttr>())) {
      bool isSplit = axis.getName() == name;
      if (isSplit)
        axes.push_back(
            dist::AxisAttr::get(&getContext(), kKeyHeadsAxis, parts));
      axes.push_back(
          isSplit ? dist::AxisAttr::get(&getContext(), name, ranks / parts)
                  : axis);
      // Either is the link that both come from.
      if (std::optional<ArrayAttr> given = mesh.getLinks())
        links.append(1 + isSplit, (*given)[number]);
    }
    mesh.setAxesAttr(ArrayAttr::get(&getContext(), axes));
    if (!links.empty())
      mesh.setLinksAttr(ArrayAttr::get(&getContext(), links));
  }
};
} // namespace
} // namespace accel::parallel
