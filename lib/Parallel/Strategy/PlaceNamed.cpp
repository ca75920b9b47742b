// Places what a user names: the one way to say how a state or an input is
// split, beside the constraints that a text may have.

#include "TensorAxes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "lib/Names/Nearest.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PLACENAMEDPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// `PATTERN=DIM:AXIS,…`
struct Wish {
  StringRef text, pattern;
  std::optional<llvm::GlobPattern> glob;
  SmallVector<std::pair<int64_t, StringRef>> splits;
  bool isMatched = false;
};

struct PlaceNamedPass : impl::PlaceNamedPassBase<PlaceNamedPass> {
  using Base::Base;

  void runInOrder() override {
    if (shard.empty())
      return;
    FailureOr<dist::MeshOp> found = dist::MeshOp::require(getOperation());
    if (failed(found))
      return signalPassFailure();
    mesh = *found;
    wishes.clear();
    known.clear();
    for (const std::string &text : shard)
      if (failed(read(text)))
        return signalPassFailure();
    for (func::FuncOp entry : nn::getEntries(getOperation()))
      for (BlockArgument argument : entry.getArguments())
        if (failed(place(entry, argument)))
          return signalPassFailure();
    for (const Wish &wish : wishes)
      if (!wish.isMatched) {
        (void)refuseUnmatched(wish);
        return signalPassFailure();
      }
  }

  InFlightDiagnostic fail(const Wish &wish) {
    return getOperation().emitError() << "'--shard " << wish.text << "': ";
  }

  LogicalResult read(StringRef text) {
    Wish &wish = wishes.emplace_back();
    wish.text = text;
    StringRef splits;
    std::tie(wish.pattern, splits) = text.rsplit('=');
    SmallVector<StringRef> parts;
    splits.split(parts, ',');
    auto malformed = [&]() {
      return fail(wish) << "expected PATTERN=DIM:AXIS, or several DIM:AXIS "
                           "with commas between them";
    };
    auto glob = llvm::GlobPattern::create(wish.pattern);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return malformed();
    }
    wish.glob = std::move(*glob);
    if (wish.pattern.empty() || splits.empty())
      return malformed();
    for (StringRef part : parts) {
      auto [dim, axis] = part.split(':');
      int64_t number;
      if (dim.getAsInteger(10, number) || number < 0 || axis.empty())
        return malformed();
      if (axis == dist::MeshOp::kMicroBatchAxis)
        return fail(wish) << "micro-batches are split by --micro-batches alone";
      if (!mesh.findAxisSize(axis)) {
        SmallVector<StringRef> names;
        for (auto known : mesh.getAxes().getAsRange<dist::AxisAttr>())
          if (known.getName() != dist::MeshOp::kMicroBatchAxis)
            names.push_back(known.getName());
        InFlightDiagnostic diagnostic = fail(wish);
        diagnostic << "the mesh has no axis '" << axis << "'";
        return names.empty() ? diagnostic << ": it is of one rank"
                             : diagnostic << ", only " << listNames(names);
      }
      if (axis != dist::MeshOp::kTensorAxis) {
        wish.splits.emplace_back(number, axis);
        continue;
      }
      for (StringRef each : getTensorAxes(mesh))
        wish.splits.emplace_back(number, each);
    }
    return success();
  }

  /// What a user calls a state or an input; of a moment, its parameter's names.
  SmallVector<StringRef> namesOf(func::FuncOp entry, BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    if (auto input = entry.getArgAttrOfType<StringAttr>(index, nn::kInputAttr))
      return {input.getValue()};
    auto name =
        entry.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr);
    if (!name)
      return {};
    auto state = getOperation().lookupSymbol<nn::StateOp>(name);
    if (state.getRole() == nn::StateRole::moment)
      if (auto parameter = getOperation().lookupSymbol<nn::StateOp>(
              name.getValue().split('/').second))
        state = parameter;
    SmallVector<StringRef> names = {state.getSymName()};
    if (auto aliases = state.getAliases())
      for (auto alias : aliases->getAsRange<StringAttr>())
        names.push_back(alias.getValue());
    return names;
  }

  LogicalResult place(func::FuncOp entry, BlockArgument argument) {
    SmallVector<StringRef> names = namesOf(entry, argument);
    known.insert_range(names);
    bool isState =
        entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr) != nullptr;
    for (Wish &wish : wishes) {
      auto matched = llvm::find_if(
          names, [&](StringRef name) { return wish.glob->match(name); });
      if (matched == names.end())
        continue;
      wish.isMatched = true;
      for (Operation *user : llvm::to_vector(argument.getUsers()))
        if (auto constraint = dyn_cast<dist::ConstraintOp>(user))
          if (failed(split(constraint, wish, *matched, isState)))
            return failure();
    }
    return success();
  }

  LogicalResult split(dist::ConstraintOp constraint, const Wish &wish,
                      StringRef name, bool isState) {
    RankedTensorType type = constraint.getType();
    SmallVector<dist::AxesAttr> dims(constraint.getSharding().getDims());
    for (auto [dim, text] : wish.splits) {
      auto axis = StringAttr::get(&getContext(), text);
      StringRef kind = isState ? "state" : "input";
      if (isState && (text == "dp_replicate" ||
                      (text == dist::MeshOp::kShardAxis && stage == 0)))
        return fail(wish) << "over '" << text << "' states are whole"
                          << (text == "dp_replicate"
                                  ? ""
                                  : " with zero_stage 0: expected at least 1");
      if (dim >= type.getRank())
        return fail(wish) << kind << " '" << name << "' has " << type.getRank()
                          << " dimensions, found dimension " << dim;
      int64_t ranks = *mesh.findAxisSize(text);
      if (ranks == 1 || dims[dim].contains(axis))
        continue;
      for (auto [other, axes] : llvm::enumerate(dims))
        if (axes.contains(axis))
          return fail(wish) << "'" << text << "' splits dimension " << other
                            << " of " << kind << " '" << name << "' already";
      int64_t parts = mesh.getGroupSize(dims[dim]) * ranks;
      if (type.getDimSize(dim) % parts != 0)
        return fail(wish) << "dimension " << dim << " of " << kind << " '"
                          << name << "' has size " << type.getDimSize(dim)
                          << ", which " << parts << " ranks do not divide";
      SmallVector<StringAttr> axes(dims[dim].getNames());
      axes.push_back(axis);
      dims[dim] = dist::AxesAttr::get(&getContext(), axes, /*open=*/false);
    }
    constraint.setShardingAttr(dist::ShardingAttr::get(
        &getContext(), constraint.getSharding().getMesh(), dims));
    return success();
  }

  InFlightDiagnostic refuseUnmatched(const Wish &wish) {
    InFlightDiagnostic diagnostic = fail(wish);
    diagnostic << "no state or input is called so"
               << suggestName(wish.pattern, known.getArrayRef());
    return diagnostic;
  }

  dist::MeshOp mesh;
  SmallVector<Wish> wishes;
  llvm::SetVector<StringRef> known;
};
} // namespace
} // namespace accel::parallel
