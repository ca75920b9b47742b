// Sequence parallelism: sums over `tp` are left in pieces of rows, on which the
// ranks go on where every row is worked on by itself.

#include "AxisTerms.h"
#include "TensorAxes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SCATTERSUMSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One entry.
class SumScatterer {
public:
  SumScatterer(func::FuncOp entry, dist::MeshOp mesh, StringRef axis)
      : entry(entry), mesh(mesh), terms(entry, mesh, axis) {}
  void run();

private:
  dist::ShardingAttr getPieces(Value value);

  func::FuncOp entry;
  dist::MeshOp mesh;
  AxisTerms terms;
};
} // namespace

/// The value in pieces of rows over the axis: of the first of its dimensions
/// that can be cut once more, where all before it are cut as far as they go (or
/// a range of rows would not be one of the rows that are counted with them).
/// Null if there is none, or nothing but numbers.
dist::ShardingAttr SumScatterer::getPieces(Value value) {
  MLIRContext *context = entry.getContext();
  auto type = cast<RankedTensorType>(value.getType());
  const Propagation::Entry &known = terms.getPropagation().lookup(value);
  llvm::SmallVector<StringRef, 2> tensorAxes = getTensorAxes(mesh);
  AxisLists dims;
  for (const Propagation::Dim &dim : known.dims)
    dims.push_back(dim.axes);
  // Split by columns already, or by the key heads that ranks share: its rows
  // are whole.
  if (llvm::any_of(dims, [&](const AxisList &axes) {
        return llvm::any_of(axes, [&](StringAttr axis) {
          return llvm::is_contained(tensorAxes, axis.getValue());
        });
      }))
    return {};
  int64_t ranks = countTensorRanks(mesh);
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim) {
    int64_t rest = type.getDimSize(dim) /
                   mesh.getGroupSize(
                       dist::AxesAttr::get(context, dims[dim], /*open=*/false));
    if (rest == 1 || rest % ranks != 0)
      continue;
    for (StringRef each : tensorAxes)
      dims[dim].push_back(StringAttr::get(context, each));
    // Open, so that it is a wish: what weights ask for comes first.
    return dist::ShardingAttr::get(
        context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
        llvm::map_to_vector(dims, [&](const AxisList &axes) {
          return dist::AxesAttr::get(context, axes, /*open=*/true);
        }));
  }
  return {};
}

void SumScatterer::run() {
  for (Value value : terms.getTerms()) {
    if (llvm::all_of(value.getUsers(),
                     [&](Operation *user) { return terms.isCarried(user); }))
      continue;
    dist::ShardingAttr pieces = getPieces(value);
    if (!pieces)
      continue;
    OpBuilder builder(entry.getContext());
    builder.setInsertionPointAfterValue(value);
    auto constraint =
        dist::ConstraintOp::create(builder, value.getLoc(), value, pieces);
    value.replaceAllUsesExcept(constraint.getResult(), constraint);
  }
}

namespace {
struct ScatterSumsPass : impl::ScatterSumsPassBase<ScatterSumsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    StringRef axis = dist::MeshOp::kTensorAxis;
    if (!enabled)
      return;
    if (!mesh || mesh.findAxisSize(axis).value_or(1) == 1) {
      module.emitError() << "expected an axis 'tp' of several ranks on the "
                            "mesh with 'sequence_parallelism': they share rows";
      return signalPassFailure();
    }
    for (func::FuncOp entry : nn::getEntries(module))
      SumScatterer(entry, mesh, axis).run();
  }
};
} // namespace
} // namespace accel::parallel
