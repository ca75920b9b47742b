// Gives sums of gradients over data-parallel ranks the type that the module
// declares for them.

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_COMPRESSGRADIENTSPASS
#include "lib/Parallel/Passes.h.inc"

/// Whether an op that reads `operand` passes it on: what comes out is a sum,
/// a view or a piece of what goes in.
static bool passesOn(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (isa<nn::ScatterAddOp>(op))
    return operand.getOperandNumber() == 0; // onto which it adds
  return isa<nn::AddOp, nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
             nn::ConcatOp, nn::PadOp, dist::AccumulateOp, dist::AllReduceOp,
             dist::ReduceScatterOp, dist::AllGatherOp, dist::AllSliceOp>(op);
}

namespace {
/// One function.
class Compressor {
public:
  explicit Compressor(Type wire) : wire(wire) {}
  /// How many sums it has compressed.
  unsigned run(func::FuncOp function);

private:
  bool isForGradients(Value value);
  bool compress(Operation *sum);

  Type wire;
  llvm::DenseMap<Value, bool> known;
};
} // namespace

bool Compressor::isForGradients(Value value) {
  auto [found, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return found->second;
  bool all = !value.use_empty();
  for (OpOperand &use : value.getUses())
    all &= isa<nn::GradientOp>(use.getOwner()) ||
           (passesOn(use) && isForGradients(use.getOwner()->getResult(0)));
  return known[value] = all;
}

/// Whether ranks along an axis share the work on a sample.
static bool isTensorAxis(StringAttr axis) {
  return axis.getValue() == dist::MeshOp::kTensorAxis;
}

bool Compressor::compress(Operation *sum) {
  auto collective = cast<dist::CollectiveOpInterface>(sum);
  auto kind = sum->getAttrOfType<dist::ReductionAttr>("kind");
  Type element = getElementTypeOrSelf(sum->getResult(0));
  ArrayRef<StringAttr> axes = collective.getAxes().getNames();
  if (kind.getValue() != dist::Reduction::sum ||
      element.getIntOrFloatBitWidth() <= wire.getIntOrFloatBitWidth() ||
      llvm::all_of(axes, isTensorAxis) || !isForGradients(sum->getResult(0)))
    return false;
  if (llvm::any_of(axes, isTensorAxis)) {
    auto all = dyn_cast<dist::AllReduceOp>(sum);
    if (!all)
      return false;
    // What ranks of tp add up to is one rank's term.
    SmallVector<StringAttr> of[2];
    for (StringAttr axis : axes)
      of[isTensorAxis(axis)].push_back(axis);
    OpBuilder builder(sum);
    auto first = cast<dist::AllReduceOp>(builder.clone(*sum));
    auto over = [&](ArrayRef<StringAttr> names) {
      return dist::AxesAttr::get(sum->getContext(), names, /*open=*/false);
    };
    first.setAxesAttr(over(of[1]));
    all.setAxesAttr(over(of[0]));
    all.getInputMutable().assign(first.getResult());
  }
  sum->setAttr("wire", TypeAttr::get(wire));
  return true;
}

unsigned Compressor::run(func::FuncOp function) {
  llvm::SetVector<Value> work;
  for (auto gradient : function.front().getOps<nn::GradientOp>())
    work.insert(gradient.getInput());
  unsigned count = 0;
  for (size_t next = 0; next < work.size(); ++next) {
    Operation *op = work[next].getDefiningOp();
    if (!op)
      continue;
    if (isa<dist::AllReduceOp, dist::ReduceScatterOp>(op))
      count += compress(op);
    for (OpOperand &operand : op->getOpOperands())
      if (passesOn(operand))
        work.insert(operand.get());
  }
  return count;
}

namespace {
struct CompressGradientsPass
    : impl::CompressGradientsPassBase<CompressGradientsPass> {
  using Base::Base;

  void runInOrder() override {
    auto wire = getOperation()->getAttrOfType<TypeAttr>(kGradientWireAttr);
    if (!wire)
      return;
    unsigned count = 0;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        count += Compressor(wire.getValue()).run(function);
    if (count == 0)
      getOperation().emitWarning()
          << "comm_hook compresses nothing: no gradient is summed over "
             "data-parallel ranks";
  }
};
} // namespace
} // namespace accel::parallel
