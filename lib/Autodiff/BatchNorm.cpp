// Batch normalisation (Ioffe and Szegedy, arXiv:1502.03167) as ordinary ops.
//
// A step is one program on the whole batch, and micro-batches and ranks are
// pieces of it; so whose statistics they are is a matter of shape. The batch is
// in equal parts, one after another, each with its own: one for a micro-batch
// on all ranks (SyncBatchNorm), for each rank's piece of one
// (DistributedDataParallel), or one of the whole.
//
// PyTorch updates running statistics once for each micro-batch,
// r <- (1 - m) r + m b_i. After U of them r is
// (1 - m)^U r + sum of m (1 - m)^(U-1-i) b_i, a sum in any order: it is added
// up as gradients are, and written once.

#include "BatchNorm.h"

#include "NNBuilder.h"
#include "RowFinder.h"
#include "dialects/NN/Chunks.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// Statistics are taken in f32 at least.
static Type widen(Type element) {
  return element.getIntOrFloatBitWidth() < 32
             ? Float32Type::get(element.getContext())
             : element;
}

/// 1 / sqrt(variance + epsilon)
static Value buildFactor(const NNBuilder &build, Value variance,
                         nn::BatchNormOp norm) {
  return build.make<nn::RsqrtOp>(build.add(
      variance, build.splat(norm.getEpsilon().convertToDouble(), variance)));
}

static void finish(const NNBuilder &build, nn::BatchNormOp norm, Value result) {
  RankedTensorType type = typeOf(norm.getInput());
  norm.replaceAllUsesWith(build.cast(build.reshape(result, type.getShape()),
                                     type.getElementType()));
  norm.erase();
}

void autodiff::normalizeByRunning(func::FuncOp entry) {
  for (auto norm : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::BatchNormOp>())) {
    OpBuilder builder(norm);
    NNBuilder build{builder, norm.getLoc()};
    RankedTensorType type = typeOf(norm.getInput());
    Type wide = widen(type.getElementType());
    auto others = llvm::filter_to_vector(
        llvm::seq<int64_t>(0, type.getRank()),
        [&](int64_t dim) { return dim != int64_t(norm.getDim()); });
    auto spread = [&](Value channels) {
      return build.expand(channels, others, type.getShape());
    };
    Value centred = build.sub(build.cast(norm.getInput(), wide),
                              spread(build.cast(norm.getMean(), wide)));
    Value factor =
        buildFactor(build, build.cast(norm.getVariance(), wide), norm);
    finish(build, norm, build.mul(centred, spread(factor)));
  }
}

namespace {
/// Where the rows of the batch are in an operand: its dimension `dim` is
/// (outer, batch, inner).
struct Rows {
  int64_t dim, outer, batch, inner;
};

/// A statistic of each part, [parts, channels], by which a running one is
/// updated, times `factor`.
struct Own {
  Value value;
  double factor, momentum;
};

class BatchNormalizer {
public:
  BatchNormalizer(func::FuncOp entry, const BatchNormScope &scope,
                  ArrayRef<std::string> batchDims)
      : entry(entry), scope(scope), batchDims(batchDims), states(entry) {}

  FailureOr<SmallVector<Write>> run();

private:
  LogicalResult findRows();
  LogicalResult normalize(nn::BatchNormOp norm);
  LogicalResult keep(nn::BatchNormOp norm, Value running, Value own,
                     double factor);
  Value updateRunning(BlockArgument running, ArrayRef<Own> all);

  func::FuncOp entry;
  BatchNormScope scope;
  ArrayRef<std::string> batchDims;
  nn::ArgumentStates states;
  llvm::DenseMap<Operation *, Rows> rows; ///< Asked for by several parts.
  /// What each running statistic is updated by, in turn.
  llvm::MapVector<BlockArgument, SmallVector<Own>> kept;
};
} // namespace

/// In a copy without norms, which leave rows where they are, and of which each
/// part's own depend on each other.
LogicalResult BatchNormalizer::findRows() {
  IRMapping mapping;
  OwningOpRef<func::FuncOp> copy(cast<func::FuncOp>(entry->clone(mapping)));
  for (Operation &op :
       llvm::make_early_inc_range(copy->getBody().front().without_terminator()))
    if (isa<nn::BatchNormOp, nn::DropoutOp, nn::StopGradientOp>(op))
      op.getResult(0).replaceAllUsesWith(op.getOperand(0));
  RowFinder finder(*copy, batchDims);
  bool hasRows = succeeded(finder.run());
  int64_t batch = finder.getBatch();
  for (nn::BatchNormOp norm :
       entry.getBody().front().getOps<nn::BatchNormOp>()) {
    RankedTensorType type = typeOf(norm.getInput());
    RowFinder::State state =
        finder.lookup(mapping.lookup(norm.getOperation())->getOperand(0));
    if (!hasRows || state.kind != RowKind::Rows ||
        int64_t(state.dim) == int64_t(norm.getDim()))
      return norm.emitError()
             << "expected to see where " << type
             << " has the rows of the batch, of which " << scope.parts
             << " parts have statistics of their own, and that it is not in "
                "the channels, dimension "
             << norm.getDim()
             << "; compile with one micro-batch, or "
                "say where inputs have their rows (--batch-dim INPUT=K)";
    if (batch % scope.parts != 0)
      return norm.emitError() << "expected a batch that the " << scope.parts
                              << " parts with statistics of their own divide, "
                                 "found one of "
                              << batch;
    rows[norm] = {int64_t(state.dim),
                  type.getDimSize(state.dim) / (batch * state.inner), batch,
                  state.inner};
  }
  return success();
}

LogicalResult BatchNormalizer::keep(nn::BatchNormOp norm, Value running,
                                    Value own, double factor) {
  auto argument = dyn_cast<BlockArgument>(running);
  if (!argument || !states.find(argument))
    return norm.emitError("expected running statistics that are states");
  kept[argument].push_back({own, factor, norm.getMomentum().convertToDouble()});
  return success();
}

LogicalResult BatchNormalizer::normalize(nn::BatchNormOp norm) {
  OpBuilder builder(norm);
  NNBuilder build{builder, norm.getLoc()};
  RankedTensorType type = typeOf(norm.getInput());
  // (…, outer, parts, rows of a part, …): of parts and channels there are
  // statistics.
  SmallVector<int64_t> split;
  int64_t parts = -1, channels = 0;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (dim == norm.getDim())
      channels = split.size();
    if (scope.parts == 1 || int64_t(dim) != rows.at(norm).dim) {
      split.push_back(size);
      continue;
    }
    auto [_, outer, batch, inner] = rows.at(norm);
    if (outer != 1)
      split.push_back(outer);
    parts = split.size();
    split.push_back(scope.parts);
    split.push_back(batch / scope.parts * inner);
  }
  // Rows are summed before they are added up, so that kernels have rows.
  SmallVector<int64_t> all, trailing, others;
  for (int64_t dim = 0, rank = split.size(); dim < rank; ++dim) {
    if (dim == parts || dim == channels)
      continue;
    all.push_back(dim);
    (dim > std::max(parts, channels) ? trailing : others).push_back(dim);
  }
  int64_t statistics = scope.parts * type.getDimSize(norm.getDim()),
          count = type.getNumElements() / std::max<int64_t>(statistics, 1);
  if (count < 2)
    return norm.emitError()
           << "expected more than one number of each channel to take "
              "statistics of, found "
           << count << " of " << type << " in " << scope.parts
           << " parts; take larger micro-batches";
  auto mean = [&](Value value) {
    return build.scale(build.sum(build.sum(value, trailing), others),
                       1. / count);
  };
  auto spread = [&](Value statistic) {
    return build.expand(statistic, all, split);
  };
  Value values = build.reshape(
      build.cast(norm.getInput(), widen(type.getElementType())), split);
  Value average = mean(values);
  Value centred = build.sub(values, spread(average));
  Value variance = mean(build.mul(centred, centred));
  auto byPart = [&](Value statistic) {
    return parts < channels ? statistic : build.swapLast(statistic);
  };
  double unbiased = norm.getUnbiased() ? double(count) / (count - 1) : 1;
  if (failed(keep(norm, norm.getMean(), byPart(average), 1)) ||
      failed(keep(norm, norm.getVariance(), byPart(variance), unbiased)))
    return failure();
  finish(build, norm,
         build.mul(centred, spread(buildFactor(build, variance, norm))));
  return success();
}

/// The running statistic behind the step. A norm that is called several times
/// counts as often, in turn, in each update.
Value BatchNormalizer::updateRunning(BlockArgument running, ArrayRef<Own> all) {
  OpBuilder builder(entry.getBody().front().getTerminator());
  NNBuilder build{builder, states.find(running).getLoc()};
  Type wide = getElementTypeOrSelf(all.front().value);
  ArrayRef<int64_t> channels = typeOf(running).getShape();
  int64_t together = scope.parts / scope.updates;
  double left = 1; // of what is there before
  std::vector<SmallVector<double>> weights(all.size(),
                                           SmallVector<double>(scope.updates));
  for (int64_t update = scope.updates; update-- > 0;)
    for (size_t call = all.size(); call-- > 0;) {
      const Own &own = all[call];
      weights[call][update] = own.factor * own.momentum * left / together;
      left *= 1 - own.momentum;
    }
  Value sum;
  for (auto [own, ofUpdates] : llvm::zip_equal(all, weights)) {
    Value term = own.value;
    if (together > 1)
      term = build.sum(
          build.reshape(term, {scope.updates, together, channels[0]}), {1});
    if (scope.updates > 1)
      term = build.matmul(
          build.reshape(build.numbers(ofUpdates, wide), {1, scope.updates}),
          term);
    else
      term = build.scale(term, ofUpdates[0]);
    term = build.reshape(term, channels);
    sum = sum ? build.add(sum, term) : term;
  }
  Value before = build.scale(build.cast(running, wide), left);
  return build.cast(build.add(before, sum), getElementTypeOrSelf(running));
}

FailureOr<SmallVector<Write>> BatchNormalizer::run() {
  if (scope.parts < 1 || scope.updates < 1 || scope.parts % scope.updates != 0)
    return entry.emitError()
           << "expected updates of running statistics that divide the parts of "
              "a batch, found "
           << scope.updates << " of " << scope.parts << " parts";
  if (scope.parts > 1 && failed(findRows()))
    return failure();
  for (auto norm : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::BatchNormOp>()))
    if (failed(normalize(norm)))
      return failure();
  SmallVector<Write> writes;
  for (auto &[running, all] : kept)
    writes.push_back(
        {states.find(running), running, updateRunning(running, all)});
  llvm::sort(writes, [](const Write &a, const Write &b) {
    return a.old.getArgNumber() < b.old.getArgNumber();
  });
  return writes;
}

FailureOr<SmallVector<Write>>
autodiff::normalizeByBatch(func::FuncOp entry, const BatchNormScope &scope,
                           ArrayRef<std::string> batchDims) {
  return BatchNormalizer(entry, scope, batchDims).run();
}

void autodiff::warnOfUnread(func::FuncOp entry) {
  nn::ArgumentStates states(entry);
  std::string names;
  for (BlockArgument argument : entry.getArguments())
    if (nn::StateOp state = states.find(argument);
        state && state.getRole() == nn::StateRole::buffer &&
        argument.use_empty())
      names += (names.empty() ? "'" : ", '") + state.getSymName().str() + "'";
  if (!names.empty())
    entry.emitWarning() << "the loss depends on no batch norm of " << names
                        << ": they are left as they are, where PyTorch would "
                           "update them by batches that nothing reads";
}
