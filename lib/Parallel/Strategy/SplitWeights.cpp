// Tensor parallelism, found from structure: splits over the axis `tp` the
// dimensions of weights from which ranks gain most for what they exchange.

#include "ChooseDims.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Decision.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SPLITWEIGHTSPASS
#include "lib/Parallel/Passes.h.inc"

using Splits = DimChooser::Splits;

/// Says which dimensions would be split if their sizes allowed it; false if
/// there is one.
static bool reportDropped(func::FuncOp entry, DimChooser &chooser,
                          int64_t ranks, bool strict) {
  auto uneven = chooser.getUneven();
  for (const DimChooser::Uneven &each : uneven) {
    Location loc = each.argument.getLoc();
    int64_t whole =
        cast<RankedTensorType>(each.argument.getType()).getDimSize(each.dim);
    InFlightDiagnostic told = strict ? emitError(loc) : emitRemark(loc);
    told << "dimension " << each.dim << " of state "
         << getState(entry, each.argument) << " has size " << whole;
    if (each.size != whole)
      told << ", in " << each.size << " parts of " << whole / each.size
           << " that stay together";
    told << ", which the " << ranks << " ranks of '"
         << dist::MeshOp::kTensorAxis << "' do not divide: it stays whole";
  }
  return uneven.empty();
}

/// Says on the arguments of an entry what was chosen of their states.
static void split(func::FuncOp entry, const Splits &splits,
                  ArrayRef<StringRef> axes) {
  MLIRContext *context = entry.getContext();
  for (BlockArgument argument : entry.getArguments()) {
    auto found = splits.find(getState(entry, argument));
    dist::ConstraintOp constraint = findConstraint(argument);
    if (found == splits.end() || !constraint)
      continue;
    SmallVector<dist::AxesAttr> dims(constraint.getSharding().getDims());
    auto [dim, isShared] = found->second;
    dims[dim] =
        dist::AxesAttr::get(context, isShared ? axes.take_front() : axes);
    constraint.setShardingAttr(dist::ShardingAttr::get(
        context, constraint.getSharding().getMesh(), dims));
  }
}

namespace {
struct SplitWeightsPass : impl::SplitWeightsPassBase<SplitWeightsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (countTensorRanks(mesh) == 1)
      return;
    // A step reads all that others read, and has the most to split.
    func::FuncOp chosenOn = nn::findEntry(module, nn::EntryKind::step);
    auto found = nn::requireEntries(module);
    if (failed(found))
      return signalPassFailure();
    SmallVector<func::FuncOp> entries = std::move(*found);
    if (!chosenOn && !entries.empty())
      chosenOn = entries.front();
    if (!chosenOn)
      return;
    DimChooser chooser(chosenOn, mesh);
    Splits splits = chooser.run(vocabulary);
    if (cost::isAskedForDecisions(module))
      chooser.tell();
    if (!reportDropped(chosenOn, chooser, countTensorRanks(mesh), strict) &&
        strict)
      return signalPassFailure();
    for (func::FuncOp entry : entries)
      split(entry, splits, getTensorAxes(mesh));
  }
};
} // namespace
} // namespace accel::parallel
