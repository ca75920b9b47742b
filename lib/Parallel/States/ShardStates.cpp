// Places the states of a training step as a ZeRO stage or an FSDP strategy
// says.

#include "GradientOps.h"
#include "NarrowedWeights.h"
#include "SharingAxes.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/GroupsAxis.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SHARDSTATESPASS
#include "lib/Parallel/Passes.h.inc"

std::optional<int64_t> findShardDim(ArrayRef<int64_t> shape, int64_t ranks) {
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size != 0 && size % ranks == 0)
      return dim;
  return std::nullopt;
}

namespace {
/// States that a step trains: what has a gradient.
using Trained = llvm::DenseSet<Attribute>;

/// One entry.
class StateSharder {
public:
  StateSharder(func::FuncOp entry, dist::MeshOp mesh, int64_t stage,
               const Trained &trained)
      : entry(entry), mesh(mesh), stage(stage), context(entry.getContext()),
        ops(entry), trained(trained) {
    for (StringRef axis : getSharingAxes(mesh))
      sharing.push_back(StringAttr::get(context, axis));
  }

  LogicalResult run() {
    SymbolTable symbols(entry->getParentOfType<ModuleOp>());
    llvm::DenseMap<Attribute, std::pair<Type, dist::ShardingAttr>> shardings;
    for (BlockArgument argument : entry.getArguments()) {
      auto name = entry.getArgAttrOfType<FlatSymbolRefAttr>(
          argument.getArgNumber(), nn::kStateAttr);
      if (!name)
        continue;
      auto state = symbols.lookup<nn::StateOp>(name.getAttr());
      if (state.getRole() != nn::StateRole::moment && !trained.contains(name))
        continue;
      FailureOr<dist::ConstraintOp> whole = findConstraint(argument);
      if (failed(whole))
        return failure();
      dist::ShardingAttr sharding = divide(*whole);
      shardings[name] = {argument.getType(), sharding};
      if (state.getRole() == nn::StateRole::moment)
        whole->setShardingAttr(sharding);
      else
        placeParameter(*whole, sharding);
    }
    // One that is not padded as its state is leaves the step whole.
    for (auto gradient : llvm::to_vector(entry.getOps<nn::GradientOp>()))
      if (auto [type, sharding] = shardings.lookup(gradient.getStateAttr());
          sharding)
        constrain(gradient.getResult(),
                  gradient.getType() == type
                      ? sharding
                      : dist::ShardingAttr::getReplicated(
                            sharding.getMesh(), gradient.getType().getRank()));
    return success();
  }

private:
  bool isSharing(StringAttr axis) { return llvm::is_contained(sharing, axis); }

  /// What stands on a state, each piece split over the sharing axes together,
  /// along the first dimension that their ranks divide; over what a user has
  /// placed, along that. Where no dimension can be split over all of them, over
  /// each for itself; as it is where there is none at all (numbers).
  dist::ShardingAttr divide(dist::ConstraintOp whole) {
    dist::ShardingAttr sharding = whole.getSharding();
    SmallVector<dist::AxesAttr> dims(sharding.getDims());
    SmallVector<int64_t> shape(whole.getType().getShape());
    for (auto [size, axes] : llvm::zip(shape, dims))
      size /= mesh.getGroupSize(axes);
    SmallVector<StringAttr> left(sharing);
    llvm::erase_if(left, [&](StringAttr axis) {
      return llvm::any_of(
          dims, [&](dist::AxesAttr axes) { return axes.contains(axis); });
    });
    auto split = [&](ArrayRef<StringAttr> axes) {
      int64_t ranks =
          mesh.getGroupSize(dist::AxesAttr::get(context, axes, /*open=*/false));
      std::optional<int64_t> dim;
      for (auto [index, given] : llvm::enumerate(dims))
        if (llvm::any_of(given.getNames(),
                         [&](StringAttr axis) { return isSharing(axis); }) &&
            shape[index] % ranks == 0)
          dim = index;
      if (!dim)
        dim = findShardDim(shape, ranks);
      if (!dim)
        return false;
      SmallVector<StringAttr> names(dims[*dim].getNames());
      llvm::append_range(names, axes);
      dims[*dim] = dist::AxesAttr::get(context, names, /*open=*/false);
      shape[*dim] /= ranks;
      return true;
    };
    if (!split(left))
      for (StringAttr axis : left)
        split(axis);
    return dist::ShardingAttr::get(context, sharding.getMesh(), dims);
  }

  void constrain(Value value, dist::ShardingAttr sharding) {
    OpBuilder builder(context);
    builder.setInsertionPointAfterValue(value);
    auto constraint =
        dist::ConstraintOp::create(builder, value.getLoc(), value, sharding);
    value.replaceAllUsesExcept(constraint.getResult(), constraint);
  }

  FailureOr<dist::ConstraintOp> findConstraint(BlockArgument argument) {
    if (argument.hasOneUse())
      if (auto found = dyn_cast<dist::ConstraintOp>(*argument.user_begin()))
        return found;
    return entry.emitError() << "expected one constraint on the state of "
                                "argument "
                             << argument.getArgNumber();
  }

  dist::ShardingAttr without(dist::ShardingAttr from,
                             function_ref<bool(StringAttr)> drop) {
    auto dims = llvm::map_to_vector(from.getDims(), [&](dist::AxesAttr axes) {
      return dist::AxesAttr::get(
          context,
          llvm::filter_to_vector(axes.getNames(),
                                 [&](StringAttr axis) { return !drop(axis); }),
          /*open=*/axes.getOpen());
    });
    return dist::ShardingAttr::get(context, from.getMesh(), dims);
  }

  /// In stage 3 at rest in pieces, which the update reads; forward and backward
  /// read it whole, by way of what their group keeps.
  void placeParameter(dist::ConstraintOp whole, dist::ShardingAttr sharding) {
    whole.setShardingAttr(without(
        whole.getSharding(), [&](StringAttr axis) { return isSharing(axis); }));
    if (stage < 3)
      return;
    OpBuilder builder(whole);
    auto pieces = dist::ConstraintOp::create(builder, whole.getLoc(),
                                             whole.getInput(), sharding);
    dist::ShardingAttr ofGroup = without(
        sharding, [](StringAttr axis) { return axis == dist::kGroupsAxis; });
    whole.getInputMutable().assign(
        ofGroup == sharding ? pieces
                            : dist::ConstraintOp::create(
                                  builder, whole.getLoc(), pieces, ofGroup));
    whole.getResult().replaceUsesWithIf(
        pieces, [&](OpOperand &use) { return !ops.contains(use.getOwner()); });
    roundPieces(whole, pieces, ofGroup);
  }

  /// What is read scaled and rounded (fp8) is made of the pieces, so that its
  /// few bits are what is gathered; the largest magnitude, of which the scale
  /// may be made, is the largest of all pieces' own.
  void roundPieces(dist::ConstraintOp whole, dist::ConstraintOp pieces,
                   dist::ShardingAttr ofGroup) {
    NarrowedReads narrowed = findNarrowedReads(whole.getResult(), ops);
    for (OpOperand *read : narrowed.reads)
      read->set(pieces);
    for (Operation *op : narrowed.rounded) {
      dist::ShardingAttr sharding = pieces.getSharding();
      constrain(op->getResult(0), sharding);
      auto own = cast<dist::ConstraintOp>(*op->getUsers().begin());
      if (ofGroup != sharding) {
        constrain(own.getResult(), ofGroup);
        own = cast<dist::ConstraintOp>(*own->getUsers().begin());
      }
      constrain(own.getResult(), whole.getSharding());
    }
    for (Operation *op : narrowed.reduced) {
      OpBuilder builder(context);
      builder.setInsertionPointAfter(op);
      Value result = op->getResult(0);
      auto everywhere = dist::ConstraintOp::create(
          builder, op->getLoc(), result,
          dist::ShardingAttr::getReplicated(
              whole.getSharding().getMesh(),
              cast<RankedTensorType>(result.getType()).getRank()));
      everywhere.setAlone(true);
      result.replaceAllUsesExcept(everywhere.getResult(), everywhere);
    }
  }

  func::FuncOp entry;
  dist::MeshOp mesh;
  int64_t stage;
  MLIRContext *context;
  GradientOps ops;
  SmallVector<StringAttr> sharing; ///< axes over which states are shared
  const Trained &trained;
};

struct ShardStatesPass : impl::ShardStatesPassBase<ShardStatesPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    if (stage < 0 || stage > 3) {
      module.emitError() << "expected a ZeRO stage from 0 to 3, found "
                         << stage.getValue();
      return signalPassFailure();
    }
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (stage == 0 || !mesh)
      return;
    if (countSharers(mesh) == 1)
      return; // one shard is the whole
    WalkResult whole = module.walk([&](nn::CompleteOp op) {
      // Those that say why round what they complete: in pieces, too.
      if (op->hasAttr(nn::kReasonAttr))
        return WalkResult::advance();
      op.emitError() << "comm_hook=power_sgd compresses gradients that all "
                        "ranks need whole, found zero_stage "
                     << stage.getValue();
      return WalkResult::interrupt();
    });
    if (whole.wasInterrupted())
      return signalPassFailure();
    // A state lies in one way, whichever entry reads it.
    Trained trained;
    module.walk([&](nn::GradientOp gradient) {
      trained.insert(gradient.getStateAttr());
    });
    for (func::FuncOp entry : nn::getEntries(module))
      if (failed(StateSharder(entry, mesh, stage, trained).run()))
        return signalPassFailure();
    module->setAttr(kZeroStageAttr,
                    Builder(&getContext()).getI64IntegerAttr(stage));
  }
};
} // namespace
} // namespace accel::parallel
