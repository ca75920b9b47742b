// Puts fused dimensions that ranks split into the order in which each has its
// share of every part.

#include "DimClasses.h"
#include "TensorAxes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "lib/Parallel/States/GradientOps.h"
#include "lib/Parallel/States/SharingAxes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_INTERLEAVEPARTSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// What becomes of states, by their names; null: nothing.
using Orders = llvm::DenseMap<Attribute, dist::InterleavedAttr>;

/// One entry.
class Interleaver {
public:
  Interleaver(func::FuncOp entry, dist::MeshOp mesh, int64_t sharers)
      : entry(entry), mesh(mesh), axes(getTensorAxes(mesh)),
        ranks(countTensorRanks(mesh)), sharers(sharers), gradientOps(entry),
        plain(entry, nullptr, mesh), fused(entry, plain),
        classes(entry, &fused, mesh) {}

  /// Finds what to do, but for the classes of states in `kept`.
  Orders find(const llvm::DenseSet<Attribute> &kept);
  void apply();

private:
  Attribute getState(BlockArgument argument) {
    return entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr);
  }
  dist::InterleavedAttr getOrder(Value value);
  Value reshapeApart(OpBuilder &builder, Value value, unsigned dim);
  Value placeShares(OpBuilder &builder, Value value, unsigned dim);
  void cut(nn::SliceOp op, unsigned dim);
  void join(nn::ConcatOp op, unsigned dim);

  func::FuncOp entry;
  dist::MeshOp mesh;
  SmallVector<StringRef, 2> axes;
  int64_t ranks;
  int64_t sharers; ///< of states, which they pad if they must
  GradientOps gradientOps;
  DimClasses plain;
  FusedDims fused;
  DimClasses classes;
  llvm::DenseSet<unsigned> chosen; ///< of `classes`
};
} // namespace

/// Whether a dimension of a state's argument is split over axes before others.
static bool isSplitFirst(BlockArgument argument, unsigned dim,
                         ArrayRef<StringRef> axes) {
  auto constraint = argument.hasOneUse()
                        ? dyn_cast<dist::ConstraintOp>(*argument.user_begin())
                        : dist::ConstraintOp();
  if (!constraint)
    return false;
  auto names = constraint.getSharding().getDims()[dim].getNames();
  return names.size() >= axes.size() &&
         llvm::equal(names.take_front(axes.size()), axes);
}

/// Whether the elements along a dimension are not those along one of the
/// result.
static bool cutsDim(nn::ReshapeOp op, unsigned dim) {
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  return to.size() <= dim || from.take_front(dim + 1) != to.take_front(dim + 1);
}

Orders Interleaver::find(const llvm::DenseSet<Attribute> &kept) {
  chosen.clear();
  llvm::DenseSet<unsigned> refused;
  for (BlockArgument argument : entry.getArguments()) {
    Attribute state = getState(argument);
    if (!state)
      continue;
    for (unsigned dim = 0; dim < shapeOf(argument).size(); ++dim) {
      if (fused.getParts(argument, dim).empty())
        continue;
      unsigned number = classes.find(argument, dim);
      // Behind padding, shares would be others.
      bool isPadded = !findShardDim(shapeOf(argument), sharers);
      if (kept.contains(state) || isPadded ||
          classes.get(number).size % ranks != 0)
        refused.insert(number);
      else if (isSplitFirst(argument, dim, axes))
        chosen.insert(number);
    }
  }
  // Updates that cut the dimension into blocks of the program's order.
  for (auto blocks : entry.getOps<nn::ReshapeOp>())
    for (unsigned dim = 0; dim < shapeOf(blocks.getInput()).size(); ++dim)
      if (!gradientOps.contains(blocks) && cutsDim(blocks, dim) &&
          !fused.getParts(blocks.getInput(), dim).empty())
        refused.insert(classes.find(blocks.getInput(), dim));
  for (unsigned number : refused)
    chosen.erase(number);
  Orders orders;
  for (BlockArgument argument : entry.getArguments())
    if (Attribute state = getState(argument))
      orders[state] = getOrder(argument);
  return orders;
}

/// The order that a value comes in; null: that of the program.
dist::InterleavedAttr Interleaver::getOrder(Value value) {
  for (unsigned dim = 0; dim < shapeOf(value).size(); ++dim) {
    ArrayRef<int64_t> parts = fused.getParts(value, dim);
    if (!parts.empty() && chosen.contains(classes.find(value, dim)))
      return dist::InterleavedAttr::get(entry.getContext(), dim, parts, ranks,
                                        /*times=*/1);
  }
  return {};
}

/// With the ranks' shares as a dimension.
Value Interleaver::reshapeApart(OpBuilder &builder, Value value, unsigned dim) {
  // By itself, so that `dropUnits` finds what one rank has of it.
  ArrayRef<int64_t> shape = shapeOf(value);
  return nn::ReshapeOp::create(
      builder, value.getLoc(),
      RankedTensorType::get(withDim(shape, dim, {ranks, shape[dim] / ranks}),
                            getElementTypeOrSelf(value.getType())),
      value);
}

/// Asks for a share of a part on each rank: all of them would else join whole
/// parts in the ranks' order, and each throw away what others have.
Value Interleaver::placeShares(OpBuilder &builder, Value value, unsigned dim) {
  MLIRContext *context = entry.getContext();
  SmallVector<dist::AxesAttr> dims(
      shapeOf(value).size(),
      dist::AxesAttr::get(context, ArrayRef<StringRef>(), /*open=*/true));
  dims[dim] = dist::AxesAttr::get(context, axes);
  auto name = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  return dist::ConstraintOp::create(
      builder, value.getLoc(), value,
      dist::ShardingAttr::get(context, name, dims));
}

void Interleaver::cut(nn::SliceOp op, unsigned dim) {
  OpBuilder builder(op);
  auto each = [&](ArrayRef<int64_t> numbers, int64_t ofRanks, int64_t by) {
    return withDim(numbers, dim, {ofRanks, numbers[dim] / by});
  };
  Value made = nn::SliceOp::create(
      builder, op.getLoc(), reshapeApart(builder, op.getInput(), dim),
      each(op.getStarts(), 0, ranks), each(op.getSizes(), ranks, ranks),
      each(op.getSteps(), 1, 1));
  op.replaceAllUsesWith(
      reshape(builder, op.getLoc(), made, shapeOf(op.getResult())));
  op.erase();
}

void Interleaver::join(nn::ConcatOp op, unsigned dim) {
  OpBuilder builder(op);
  SmallVector<Value> parts;
  for (Value input : op.getInputs())
    parts.push_back(
        reshapeApart(builder, placeShares(builder, input, dim), dim));
  Value made = nn::ConcatOp::create(builder, op.getLoc(), parts, dim + 1);
  op.replaceAllUsesWith(
      reshape(builder, op.getLoc(), made, shapeOf(op.getResult())));
  op.erase();
}

void Interleaver::apply() {
  for (BlockArgument argument : entry.getArguments())
    if (dist::InterleavedAttr order = getOrder(argument))
      entry.setArgAttr(argument.getArgNumber(), dist::kInterleavedAttr, order);
  for (OpOperand &operand : entry.front().getTerminator()->getOpOperands())
    if (dist::InterleavedAttr order = getOrder(operand.get()))
      entry.setResultAttr(operand.getOperandNumber(), dist::kInterleavedAttr,
                          order);
  llvm::SmallSetVector<std::pair<Operation *, unsigned>, 8> ops;
  for (const FusedDims::Link &link : fused.getLinks())
    if (chosen.contains(classes.find(link.whole, link.dim)))
      ops.insert({link.op, link.dim});
  for (auto [op, dim] : ops)
    if (auto slice = dyn_cast<nn::SliceOp>(op))
      cut(slice, dim);
    else
      join(cast<nn::ConcatOp>(op), dim);
}

namespace {
struct InterleavePartsPass
    : impl::InterleavePartsPassBase<InterleavePartsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (countTensorRanks(mesh) == 1)
      return;
    int64_t sharers = stage > 0 ? countSharers(mesh) : 1;
    auto functions = nn::requireEntries(module);
    if (failed(functions))
      return signalPassFailure();
    std::vector<std::unique_ptr<Interleaver>> entries;
    for (func::FuncOp entry : *functions)
      entries.push_back(std::make_unique<Interleaver>(entry, mesh, sharers));
    // A state comes in one order to all entries.
    llvm::DenseSet<Attribute> kept;
    for (bool isNew = true; isNew;) {
      isNew = false;
      Orders known;
      for (auto &entry : entries)
        for (auto [state, order] : entry->find(kept)) {
          auto [found, first] = known.insert({state, order});
          if (!first && found->second != order)
            isNew |= kept.insert(state).second;
        }
    }
    for (auto &entry : entries)
      entry->apply();
  }
};
} // namespace
} // namespace accel::parallel
