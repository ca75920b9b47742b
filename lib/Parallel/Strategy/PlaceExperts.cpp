// Expert parallelism: which states are matrices of groups, and their places.

#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PLACEEXPERTSPASS
#include "lib/Parallel/Passes.h.inc"

static constexpr unsigned kGroups = 0; ///< the dimension of groups

static int64_t countGroups(Value matrices) {
  auto type = cast<RankedTensorType>(matrices.getType());
  return type.getRank() == 0 ? 1 : type.getDimSize(kGroups);
}

/// The argument that matrices of groups are made of, group by group; null if it
/// is something else.
static BlockArgument findArgument(Value matrices) {
  while (Operation *op = matrices.getDefiningOp()) {
    auto transpose = dyn_cast<nn::TransposeOp>(op);
    auto reshape = dyn_cast<nn::ReshapeOp>(op);
    bool keepsGroups =
        isa<nn::CastOp, dist::ConstraintOp>(op) ||
        (reshape &&
         countGroups(reshape.getInput()) == countGroups(reshape.getResult())) ||
        (transpose && transpose.getPermutation()[kGroups] == kGroups);
    if (!keepsGroups)
      return {};
    matrices = op->getOperand(0);
  }
  return dyn_cast<BlockArgument>(matrices);
}

/// Whether what is chosen (nn.top_k) has a part in a value: which rows it has,
/// or with what they are weighed.
static bool isOfChoice(Value value) {
  llvm::SetVector<Operation *> before;
  if (Operation *op = value.getDefiningOp())
    before.insert(op);
  for (size_t i = 0; i < before.size(); ++i) {
    if (isa<nn::TopKOp>(before[i]))
      return true;
    for (Value operand : before[i]->getOperands())
      if (Operation *op = operand.getDefiningOp())
        before.insert(op);
  }
  return false;
}

namespace {
struct PlaceExpertsPass : impl::PlaceExpertsPassBase<PlaceExpertsPass> {
  using Base::Base;

  void runInOrder() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    int64_t ranks =
        mesh ? mesh.findAxisSize(dist::MeshOp::kExpertAxis).value_or(1) : 1;
    if (ranks == 1)
      return;
    llvm::SetVector<Attribute> experts = findExperts();
    if (experts.empty())
      tell(mesh.getLoc())
          << "mesh axis 'ep' of size " << ranks
          << " splits the batch alone: the model has no experts "
             "whose matrices are one parameter";
    llvm::SmallDenseSet<Attribute> uneven;
    for (func::FuncOp entry : nn::getEntries(getOperation())) {
      for (auto gradient : llvm::to_vector(entry.getOps<nn::GradientOp>()))
        if (experts.contains(gradient.getStateAttr()) &&
            gradient.getType().getDimSize(kGroups) % ranks == 0)
          split(mesh, gradient);
      for (BlockArgument argument : entry.getArguments()) {
        auto name = entry.getArgAttrOfType<FlatSymbolRefAttr>(
            argument.getArgNumber(), nn::kStateAttr);
        if (!name || !experts.contains(getParameter(name)))
          continue;
        // A number beside moments, as NAdam's product of its rates, is of all.
        auto type = cast<RankedTensorType>(argument.getType());
        if (type.getRank() == 0)
          continue;
        int64_t count = type.getDimSize(kGroups);
        if (count % ranks == 0)
          split(argument);
        else if (uneven.insert(getParameter(name)).second)
          tell(argument.getLoc())
              << "the " << count << " experts of '" << name.getValue()
              << "' are whole on each of the " << ranks
              << " ranks that were to share them (ep): "
              << "expected a multiple";
      }
    }
  }

private:
  InFlightDiagnostic tell(Location loc) {
    if (!strict)
      return emitWarning(loc);
    signalPassFailure();
    return emitError(loc);
  }

  /// The parameter that a state is, or is a moment of.
  Attribute getParameter(FlatSymbolRefAttr name) {
    auto state = getOperation().lookupSymbol<nn::StateOp>(name);
    if (state.getRole() != nn::StateRole::moment)
      return name;
    return FlatSymbolRefAttr::get(&getContext(),
                                  name.getValue().split('/').second);
  }

  llvm::SetVector<Attribute> findExperts() {
    llvm::SetVector<Attribute> experts;
    for (func::FuncOp entry : nn::getEntries(getOperation())) {
      auto add = [&](Value matrices) {
        if (BlockArgument argument = findArgument(matrices))
          if (Attribute name =
                  entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr))
            experts.insert(name);
      };
      entry.walk([&](nn::GroupedMatmulOp op) { add(op.getRhs()); });
      // So many places for each expert (GShard's capacity): one product each.
      entry.walk([&](nn::MatmulOp op) {
        auto matrices = cast<RankedTensorType>(op.getRhs().getType());
        if (matrices.getRank() == 3 && findArgument(op.getRhs()) &&
            isOfChoice(op.getLhs()))
          add(op.getRhs());
      });
    }
    return experts;
  }

  /// What makes the gradient knows nothing of who updates what: it is asked to
  /// make each rank's experts' there.
  void split(dist::MeshOp mesh, nn::GradientOp gradient) {
    auto any = dist::AxesAttr::get(&getContext(), ArrayRef<StringRef>(), true);
    SmallVector<dist::AxesAttr> dims(gradient.getType().getRank(), any);
    dims[kGroups] = dist::AxesAttr::get(
        &getContext(), StringRef(dist::MeshOp::kExpertAxis), true);
    OpBuilder builder(gradient);
    gradient.setOperand(dist::ConstraintOp::create(
        builder, gradient.getLoc(), gradient.getInput(),
        dist::ShardingAttr::get(&getContext(),
                                FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                                dims)));
  }

  void split(BlockArgument argument) {
    auto axis = StringAttr::get(&getContext(), dist::MeshOp::kExpertAxis);
    for (Operation *user : llvm::to_vector(argument.getUsers())) {
      auto constraint = dyn_cast<dist::ConstraintOp>(user);
      if (!constraint || constraint.getSharding().getDims()[kGroups].contains(
                             dist::MeshOp::kExpertAxis))
        continue;
      SmallVector<dist::AxesAttr> dims(constraint.getSharding().getDims());
      SmallVector<StringAttr> axes(dims[kGroups].getNames());
      axes.push_back(axis);
      dims[kGroups] = dist::AxesAttr::get(&getContext(), axes, /*open=*/false);
      constraint.setShardingAttr(dist::ShardingAttr::get(
          &getContext(), constraint.getSharding().getMesh(), dims));
    }
  }
};
} // namespace
} // namespace accel::parallel
