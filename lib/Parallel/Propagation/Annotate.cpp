// Makes the mesh from its description, and asks that the batch be split over
// it, and sequences.

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/GroupsAxis.h"
#include "dialects/NN/Entry.h"
#include "lib/Names/BatchDim.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_ANNOTATEPASS
#include "lib/Parallel/Passes.h.inc"

/// Accelerate's axes, in the order in which ranks are numbered; `dp` is short.
static constexpr StringLiteral kAxes[] = {"pp",
                                          "dp_replicate",
                                          dist::kGroupsAxis,
                                          "dp_shard",
                                          dist::MeshOp::kExpertAxis,
                                          "cp",
                                          "sp",
                                          "tp"};
/// The axes that split the batch, major to minor.
static constexpr StringLiteral kBatchAxes[] = {
    dist::MeshOp::kMicroBatchAxis, "dp_replicate", dist::kGroupsAxis,
    dist::MeshOp::kShardAxis, dist::MeshOp::kExpertAxis};
/// Those that split sequences.
static constexpr StringLiteral kSequenceAxes[] = {dist::MeshOp::kContextAxis,
                                                  dist::MeshOp::kUlyssesAxis};
static constexpr StringLiteral kMeshName = "mesh";

/// How many positions attend to each other: the lengths of sequences.
static llvm::SmallDenseSet<int64_t> findLengths(func::FuncOp function) {
  llvm::SmallDenseSet<int64_t> lengths;
  function.walk([&](nn::AttentionOp op) {
    lengths.insert(op.getQuery().getType().getDimSize(2));
    lengths.insert(op.getKey().getType().getDimSize(2));
  });
  return lengths;
}

namespace {
struct AnnotatePass : impl::AnnotatePassBase<AnnotatePass> {
  using Base::Base;

  void runInOrder() override {
    FailureOr<dist::MeshOp> made = makeMesh();
    if (failed(made))
      return signalPassFailure();
    residuals = nn::getResiduals(getOperation());
    llvm::StringMap<StringRef> batchOf;
    for (const std::string &text : batchDims) {
      auto [input, dim] = StringRef(text).rsplit('=');
      auto [first, isFirst] = batchOf.try_emplace(input, dim);
      if (!isFirst && first->second != dim) {
        getOperation().emitError() << "expected one batch dimension of input '"
                                   << input << "', found '" << input << "="
                                   << first->second << "' and '" << text << "'";
        return signalPassFailure();
      }
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(annotate(*made, function, batchOf)))
        return signalPassFailure();
    for (auto &[input, dim] : batchOf)
      if (!known.contains(input)) {
        getOperation().emitError()
            << "no input named '" << input << "', for which '" << input << "="
            << dim << "' gives the batch dimension";
        return signalPassFailure();
      }
    tellBatchDims(batchOf);
  }

  /// Leaves to the executable what it feeds samples along.
  void tellBatchDims(const llvm::StringMap<StringRef> &batchOf) {
    Builder builder(&getContext());
    NamedAttrList dims;
    for (StringRef input : batchOf.keys()) {
      std::optional<unsigned> dim = batchDimOf(
          input, SmallVector<std::string>(batchDims.begin(), batchDims.end()));
      if (dim != 0u)
        dims.set(input, builder.getI64IntegerAttr(dim ? int64_t(*dim) : -1));
    }
    if (!dims.empty())
      getOperation()->setAttr(kBatchDimsAttr,
                              dims.getDictionary(&getContext()));
  }

  FailureOr<dist::MeshOp> makeMesh() {
    ModuleOp module = getOperation();
    if (dist::MeshOp given = dist::MeshOp::of(module)) {
      if (!mesh.empty())
        return module.emitError() << "the module has a mesh already, found '"
                                  << mesh << "' for another";
      return given;
    }
    if (microBatches < 1)
      return module.emitError() << "expected at least one micro-batch, found "
                                << microBatches.getValue();
    llvm::StringMap<int64_t> sizes;
    SmallVector<StringRef> parts;
    StringRef(mesh).split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      auto [given, text] = part.split('=');
      StringRef name = given == "dp" ? StringRef(dpAxis) : given;
      int64_t size;
      if (!llvm::is_contained(kAxes, name) || name == dist::kGroupsAxis)
        return module.emitError()
               << "expected a mesh axis (dp_replicate, dp_shard, cp, sp, tp, "
                  "ep, pp, or dp for "
               << dpAxis.getValue() << "), found '" << given << "'";
      if (text.getAsInteger(10, size) || size < 1)
        return module.emitError() << "expected a size of at least 1 for mesh "
                                     "axis '"
                                  << given << "', found '" << text << "'";
      if (!sizes.try_emplace(name, size).second)
        return module.emitError()
               << "expected mesh axis '" << name << "' once, found it twice";
    }
    if (failed(groupSharers(sizes)))
      return failure();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    SmallVector<Attribute> axes;
    if (microBatches > 1)
      axes.push_back(dist::AxisAttr::get(
          &getContext(), dist::MeshOp::kMicroBatchAxis, microBatches));
    for (StringRef name : kAxes)
      if (auto found = sizes.find(name); found != sizes.end())
        axes.push_back(dist::AxisAttr::get(&getContext(), name, found->second));
    return dist::MeshOp::create(builder, module.getLoc(), kMeshName,
                                builder.getArrayAttr(axes), nullptr, nullptr);
  }

  /// Arranges the ranks that share states in groups of `secondary`, next to
  /// each other: those along `dp_shard` along two axes.
  LogicalResult groupSharers(llvm::StringMap<int64_t> &sizes) {
    auto sizeOf = [&](StringRef axis) {
      auto found = sizes.find(axis);
      return found == sizes.end() ? 1 : found->second;
    };
    if (secondary <= 1)
      return success();
    int64_t sequences =
        sizeOf(dist::MeshOp::kContextAxis) * sizeOf(dist::MeshOp::kUlyssesAxis);
    int64_t sharers = sizeOf(dist::MeshOp::kShardAxis) * sequences;
    if (sharers % secondary != 0 || secondary % sequences != 0) {
      InFlightDiagnostic diagnostic = getOperation().emitError();
      diagnostic << "expected groups that keep a second copy of the parameters "
                    "to divide the "
                 << sharers << " ranks that share states";
      if (sequences > 1)
        diagnostic << ", and whole groups of the " << sequences
                   << " that share sequences in each";
      return diagnostic << ", found groups of " << secondary.getValue();
    }
    if (secondary == sharers)
      return success(); // what each group would keep is what it has
    sizes[dist::kGroupsAxis] = sharers / secondary;
    sizes[dist::MeshOp::kShardAxis] = secondary / sequences;
    return success();
  }

  LogicalResult annotate(dist::MeshOp mesh, func::FuncOp function,
                         const llvm::StringMap<StringRef> &batchOf) {
    if (failed(checkCompressed(mesh, function)))
      return failure();
    auto getAxes = [&](ArrayRef<StringLiteral> axes) {
      SmallVector<StringRef> kept;
      for (StringRef axis : axes)
        if (mesh.findAxisSize(axis).value_or(1) > 1)
          kept.push_back(axis);
      return dist::AxesAttr::get(&getContext(), kept);
    };
    dist::AxesAttr split = getAxes(kBatchAxes),
                   alongSequence = getAxes(kSequenceAxes);
    llvm::SmallDenseSet<int64_t> lengths = findLengths(function);
    auto open = dist::AxesAttr::get(&getContext(), ArrayRef<StringRef>(), true);
    auto whole = dist::AxesAttr::get(&getContext(), ArrayRef<StringRef>());
    int64_t parts = mesh.getGroupSize(split);

    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      int64_t rank = cast<RankedTensorType>(argument.getType()).getRank();
      SmallVector<dist::AxesAttr> dims;
      if (auto name =
              function.getArgAttrOfType<StringAttr>(index, nn::kInputAttr)) {
        FailureOr<int64_t> batch =
            findBatch(function, name, argument, parts, batchOf);
        if (failed(batch))
          return failure();
        dims.assign(rank, open);
        if (*batch >= 0)
          dims[*batch] = split;
        if (std::optional<int64_t> sequence = findSequence(
                mesh, name, argument, *batch, lengths, alongSequence))
          dims[*sequence] = alongSequence;
      } else if (residuals.contains(
                     function.getArgAttr(index, nn::kStateAttr))) {
        continue; // placed as the terms that it goes with
      } else if (function.getArgAttr(index, nn::kStateAttr) &&
                 llvm::none_of(argument.getUsers(), [](Operation *user) {
                   return isa<dist::ConstraintOp>(user);
                 })) {
        dims.assign(rank, whole);
      } else {
        continue;
      }
      auto constraint = dist::ConstraintOp::create(
          builder, argument.getLoc(), argument,
          dist::ShardingAttr::get(&getContext(),
                                  FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                                  dims));
      argument.replaceAllUsesExcept(constraint.getResult(), constraint);
    }
    return success();
  }

  /// Gradients are compressed where ranks have terms of them, and nothing else
  /// of the step is shared out.
  LogicalResult checkCompressed(dist::MeshOp mesh, func::FuncOp function) {
    // Those that say why are of a recipe of fp8.
    auto completes = llvm::make_filter_range(
        function.getOps<nn::CompleteOp>(),
        [](nn::CompleteOp op) { return !op->hasAttr(nn::kReasonAttr); });
    if (completes.empty())
      return success();
    for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
      if (axis.getSize() > 1 && llvm::is_contained(kAxes, axis.getName()) &&
          !llvm::is_contained(kBatchAxes, axis.getName()))
        return (*completes.begin()).emitError()
               << "comm_hook=power_sgd compresses between data-parallel ranks "
                  "alone, found mesh axis '"
               << axis.getName() << "' of size " << axis.getSize();
    // Terms of micro-batches are added up where there is what they go with.
    if (residuals.empty() &&
        mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1) > 1)
      return (*completes.begin()).emitError()
             << "comm_hook=power_sgd is not supported yet without error "
                "feedback in micro-batches: "
                "power_sgd.use_error_feedback=true, or one micro-batch";
    return success();
  }

  /// The dimension of an input along its sequences, if ranks split them: the
  /// first behind the batch whose size is that of what attends to each other.
  std::optional<int64_t>
  findSequence(dist::MeshOp mesh, StringAttr name, BlockArgument argument,
               int64_t batch, const llvm::SmallDenseSet<int64_t> &lengths,
               dist::AxesAttr axes) {
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t parts = mesh.getGroupSize(axes);
    for (int64_t dim = batch + 1; parts > 1 && dim < type.getRank(); ++dim) {
      int64_t size = type.getDimSize(dim);
      if (!lengths.contains(size))
        continue;
      if (size % parts == 0)
        return dim;
      if (!told.insert(name).second)
        return std::nullopt; // of another entry
      emitWarning(argument.getLoc())
          << "input '" << name.getValue() << "': its sequences of " << size
          << " are whole on each of the " << parts
          << " ranks that were to share them (cp, sp): pad them to a multiple";
      return std::nullopt;
    }
    return std::nullopt;
  }

  /// The batch dimension of an input, -1 if it has none.
  FailureOr<int64_t> findBatch(func::FuncOp function, StringAttr name,
                               BlockArgument argument, int64_t parts,
                               const llvm::StringMap<StringRef> &batchOf) {
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t batch = type.getRank() == 0 ? -1 : 0;
    known.insert(name.getValue());
    if (auto found = batchOf.find(name); found != batchOf.end()) {
      StringRef text = found->second;
      if (text == "none")
        return -1;
      if (text.getAsInteger(10, batch) || batch < 0 || batch >= type.getRank())
        return emitError(argument.getLoc())
               << "expected 'none' or a dimension in [0, " << type.getRank()
               << ") as batch dimension of input '" << name.getValue()
               << "', found '" << text << "'";
    }
    if (batch >= 0 && type.getDimSize(batch) % parts != 0) {
      InFlightDiagnostic diagnostic = emitError(argument.getLoc());
      diagnostic << "input '" << name.getValue() << "': dimension " << batch
                 << " of size " << type.getDimSize(batch) << " cannot be split";
      if (parts > microBatches || microBatches == 1)
        diagnostic << " over a mesh of " << parts / microBatches;
      if (microBatches > 1)
        diagnostic << (parts > microBatches ? " and" : "") << " into "
                   << microBatches.getValue() << " micro-batches";
      return diagnostic;
    }
    return batch;
  }

  llvm::DenseSet<Attribute> residuals; ///< names of states
  llvm::StringSet<> known;
  llvm::DenseSet<StringAttr> told; ///< inputs that were warned of
};
} // namespace
} // namespace accel::parallel
