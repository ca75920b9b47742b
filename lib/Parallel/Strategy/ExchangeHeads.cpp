// Ulysses: ranks that have some positions of all heads exchange them for all
// positions of some heads, around each attention.

#include "dialects/Dist/Dist.h"
#include "dialects/NN/AttentionDims.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/FactorAxes.h"
#include "lib/Parallel/Propagation/Propagation.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_EXCHANGEHEADSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {

/// One entry.
class HeadExchanger {
public:
  HeadExchanger(func::FuncOp entry, dist::MeshOp mesh)
      : entry(entry), mesh(mesh), table(entry),
        axis(StringAttr::get(entry.getContext(), dist::MeshOp::kUlyssesAxis)) {}
  void run();

private:
  template <typename AttentionLike> void exchange(AttentionLike op);
  AxisLists axesOf(Value value) {
    AxisLists dims;
    for (const Propagation::Dim &dim : table.lookup(value).dims)
      dims.push_back(dim.axes);
    return dims;
  }
  int64_t countRanks(ArrayRef<StringAttr> axes) {
    return mesh.getGroupSize(
        dist::AxesAttr::get(entry.getContext(), axes, /*open=*/false));
  }
  Value place(OpBuilder &builder, Value value, const AxisLists &dims) {
    auto mesh = FlatSymbolRefAttr::get(this->mesh.getSymNameAttr());
    return dist::ConstraintOp::create(builder, value.getLoc(), value,
                                      getSharding(mesh, dims), /*alone=*/true);
  }

  func::FuncOp entry;
  dist::MeshOp mesh;
  Propagation table; ///< as it is without exchanges
  StringAttr axis;
};
} // namespace

template <typename AttentionLike>
void HeadExchanger::exchange(AttentionLike op) {
  AxisLists rows = axesOf(op.getQuery());
  if (!llvm::is_contained(rows[nn::kRowDim], axis))
    return;
  // Of the key heads, which groups of the others share.
  int64_t groups = op.getKey().getType().getDimSize(nn::kHeadDim),
          parts = countRanks(rows[nn::kHeadDim]) * countRanks(axis);
  if (groups % parts != 0) {
    if (isa<nn::AttentionOp>(op))
      op.emitRemark() << "keys and values are gathered: " << parts
                      << " ranks cannot share " << groups << " key heads";
    return;
  }
  // Gradients of such keys would be parts of sums over the other axes, whole
  // over this one.
  if (int64_t keys = op.getKey().getType().getDimSize(nn::kRowDim),
      ranks = countRanks(rows[nn::kRowDim]);
      keys % ranks != 0 && rows[nn::kRowDim].size() > 1) {
    if (isa<nn::AttentionOp>(op))
      op.emitRemark() << "keys and values are gathered: " << ranks
                      << " ranks cannot share " << keys << " keys";
    return;
  }
  AxisLists heads = rows;
  heads[nn::kHeadDim].push_back(axis);
  llvm::erase(heads[nn::kRowDim], axis);
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (value == op.getMask())
      continue; // is cut as the scores are
    AxisLists dims = heads;
    if (value == op.getKey() || value == op.getValue())
      dims[nn::kRowDim].clear();
    dims.resize(cast<RankedTensorType>(value.getType()).getRank());
    // What the forward made is there already.
    if (auto made = value.getDefiningOp<dist::ConstraintOp>();
        made && made.getAlone() &&
        made.getInput().template getDefiningOp<nn::AttentionOp>())
      operand.set(made.getInput());
    else if (!value.template getDefiningOp<nn::AttentionOp>())
      operand.set(place(builder, value, dims));
  }
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    AxisLists dims = rows;
    auto type = cast<RankedTensorType>(result.getType());
    dims.resize(type.getRank());
    // Gradients of keys that do not divide are whole, as the keys are.
    if (type.getRank() > nn::kRowDim &&
        type.getDimSize(nn::kRowDim) % countRanks(dims[nn::kRowDim]) != 0)
      dims[nn::kRowDim].clear();
    Value back = place(builder, result, dims);
    result.replaceAllUsesExcept(back, back.getDefiningOp());
  }
}

void HeadExchanger::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : entry.front())
    if (isa<nn::AttentionOp, nn::AttentionGradOp>(op))
      ops.push_back(&op);
  for (Operation *op : ops)
    if (auto attention = dyn_cast<nn::AttentionOp>(op))
      exchange(attention);
    else
      exchange(cast<nn::AttentionGradOp>(op));
}

namespace {
struct ExchangeHeadsPass : impl::ExchangeHeadsPassBase<ExchangeHeadsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (!mesh || mesh.findAxisSize(dist::MeshOp::kUlyssesAxis).value_or(1) == 1)
      return;
    for (func::FuncOp entry : nn::getEntries(module))
      HeadExchanger(entry, mesh).run();
  }
};
} // namespace
} // namespace accel::parallel
