// Gives a loss a mask of the rows that count. Sums over rows leave the others
// out and means divide by the number that is left, so that every number behind
// them is that of a batch without those rows; what cannot be told apart from a
// number of rows is refused.

#include "NNBuilder.h"
#include "Passes.h"
#include "RowFinder.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Accel/SeparateRows.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/BuildStep.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;
using accel::transforms::getSplatValue;

namespace accel::autodiff {
#define GEN_PASS_DEF_MASKROWSPASS
#include "lib/Autodiff/Passes.h.inc"

namespace {

constexpr StringLiteral kRowMaskName = "row_mask";

/// What is wrong, and where.
struct Objection {
  Location loc;
  StringRef what;
};

constexpr StringLiteral kMixesRows =
    "expected rows of a batch that do not depend on each other or on their "
    "place, with --row-mask, found that this op mixes them";
constexpr StringLiteral kMayHoldBatch =
    "cannot tell whether this op scales a sum over rows by the size of the "
    "batch, with --row-mask: the model has a number here; take the mean of the "
    "rows (torch.mean), or divide by a sum over them";

/// A sum over rows, and the operands to be masked.
struct RowSum {
  Operation *op;
  SmallVector<unsigned> operands;
};

/// A product of such a sum that makes it a mean.
struct RowMean {
  nn::MulOp product;
  nn::ReduceOp sum;
};

class RowMasker {
public:
  RowMasker(func::FuncOp entry, Value loss, RowFinder &rows)
      : entry(entry), loss(loss), rows(rows) {}

  /// Finds what is to be masked, or what forbids it.
  std::optional<Objection> plan();
  /// Masks it; `mask` is [batch], i1.
  void apply(Value mask);
  /// Of inputs, or of places in them, those that the loss depends on.
  ArrayAttr keepNeeded(ArrayAttr all) const;

private:
  std::optional<Objection> planRows(Operation *op);
  std::optional<Objection> planScaled(Operation *op);
  std::optional<Objection> planCounted(Operation *op);
  /// Whether a number could be one of rows, or of elements in them.
  bool isMultipleOfBatch(double number) const {
    double times = number / double(rows.getBatch());
    return std::abs(times) > 0.5 &&
           std::abs(times - std::round(times)) < 1e-6 * std::abs(times);
  }
  bool holdsScale(Value value) const;
  /// The sum that `value` is, seen through reshapes, if it is one over rows.
  nn::ReduceOp findSum(Value value) const;
  Value spreadMask(const NNBuilder &build, Value mask, Value like) const;

  func::FuncOp entry;
  Value loss;
  RowFinder &rows;
  llvm::DenseSet<Attribute> needed; ///< Names of inputs of the loss.
  SmallVector<RowSum> sums;
  SmallVector<RowMean> means;
  /// Grow with the number of rows, as a sum does.
  llvm::DenseSet<Value> growing;
  /// Made of these, and do not.
  llvm::DenseSet<Value> counted;
};

} // namespace

std::optional<Objection> RowMasker::plan() {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  if (failed(getBackwardSlice(loss, &slice, options)))
    return Objection{loss.getLoc(), kMixesRows};
  for (Operation &op : entry.getBody().front()) {
    if (!slice.contains(&op))
      continue;
    bool hasRows = false, grows = false, isCounted = false;
    for (Value operand : op.getOperands()) {
      if (auto argument = dyn_cast<BlockArgument>(operand))
        needed.insert(
            entry.getArgAttr(argument.getArgNumber(), nn::kInputAttr));
      hasRows |= rows.kindOf(operand) == RowKind::Rows;
      grows |= growing.contains(operand);
      isCounted |= counted.contains(operand);
    }
    std::optional<Objection> found = hasRows     ? planRows(&op)
                                     : grows     ? planScaled(&op)
                                     : isCounted ? planCounted(&op)
                                                 : std::nullopt;
    if (found)
      return found;
    if (!hasRows && (grows || isCounted))
      for (Value result : op.getResults())
        if (!growing.contains(result))
          counted.insert(result);
  }
  if (rows.kindOf(loss) == RowKind::Rows || (sums.empty() && means.empty()))
    return Objection{loss.getLoc(), kMixesRows};
  // The sum of rows that are scaled alike is a mean, too.
  if (growing.contains(loss))
    for (const RowSum &sum : sums)
      for (unsigned operand : sum.operands)
        if (growing.contains(sum.op->getResult(0)) &&
            holdsScale(sum.op->getOperand(operand)))
          return Objection{sum.op->getLoc(), kMayHoldBatch};
  return std::nullopt;
}

std::optional<Objection> RowMasker::planRows(Operation *op) {
  Objection mixes{op->getLoc(), kMixesRows};
  if (op->getNumResults() != 1)
    return llvm::all_of(op->getResults(),
                        [&](Value result) {
                          return rows.kindOf(result) == RowKind::Rows;
                        })
               ? std::nullopt
               : std::optional(mixes);
  RowKind kind = rows.kindOf(op->getResult(0));
  if (kind == RowKind::Rows)
    return std::nullopt;
  if (kind != RowKind::Sum)
    return mixes;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  for (ArrayRef<unsigned> group : rule.linearGroups) {
    RowSum sum{op, {}};
    for (unsigned operand : group)
      if (rows.kindOf(op->getOperand(operand)) == RowKind::Rows)
        sum.operands.push_back(operand);
    if (sum.operands.empty())
      continue;
    sums.push_back(sum);
    growing.insert(op->getResult(0));
    return std::nullopt;
  }
  return mixes;
}

/// An op on what grows with the number of rows, without rows themselves.
std::optional<Objection> RowMasker::planScaled(Operation *op) {
  Objection scaled{op->getLoc(), kMayHoldBatch};
  auto grows = [&](Value value) { return growing.contains(value); };
  auto isNumber = [&](Value value) {
    std::optional<double> number = getSplatValue(value);
    return number && isMultipleOfBatch(*number);
  };
  bool keeps = false;
  if (auto product = dyn_cast<nn::MulOp>(op)) {
    if (grows(product.getLhs()) && grows(product.getRhs()))
      return std::nullopt; // a sum over what another one comes to
    if (!product->hasAttr(nn::kMeanAttr))
      return scaled;
    if (nn::ReduceOp sum = findSum(product.getLhs())) {
      means.push_back({product, sum});
      return std::nullopt;
    }
    keeps = true; // a mean over something else
  } else if (auto quotient = dyn_cast<nn::DivOp>(op)) {
    if (grows(quotient.getLhs()) && grows(quotient.getRhs()))
      return std::nullopt;
    if (!grows(quotient.getRhs()))
      return scaled;
    keeps = true;
  } else if (isa<nn::AddOp, nn::SubOp, nn::MaxOp, nn::MinOp, nn::CompareOp,
                 nn::SelectOp>(op)) {
    keeps = llvm::none_of(op->getOperands(), isNumber);
  } else if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
    keeps = reduce.getKind() != nn::ReductionKind::prod;
  } else {
    keeps = isa<nn::NegOp, nn::AbsOp, nn::CastOp, nn::ReshapeOp,
                nn::TransposeOp, nn::BroadcastOp, nn::ConcatOp, nn::SliceOp,
                nn::ReciprocalOp, nn::StopGradientOp>(op) ||
            op->hasTrait<OpTrait::IsTerminator>();
  }
  if (!keeps)
    return scaled;
  growing.insert(op->result_begin(), op->result_end());
  return std::nullopt;
}

/// An op on a mean: times as many as it is of, it would be a sum.
std::optional<Objection> RowMasker::planCounted(Operation *op) {
  if (!isa<nn::MulOp, nn::DivOp>(op))
    return std::nullopt;
  for (Value operand : op->getOperands()) {
    std::optional<double> number = getSplatValue(operand);
    auto isSizeOf = [&](RowMean mean) {
      int64_t elements = typeOf(mean.sum.getInput()).getNumElements();
      return *number == double(elements);
    };
    if (number &&
        (*number == double(rows.getBatch()) || llvm::any_of(means, isSizeOf)))
      return Objection{op->getLoc(), kMayHoldBatch};
  }
  return std::nullopt;
}

/// Whether rows are scaled by a number that could come from how many they are,
/// all of them alike.
bool RowMasker::holdsScale(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || rows.kindOf(value) != RowKind::Rows)
    return false;
  if (isa<nn::MulOp, nn::DivOp>(op)) {
    for (Value operand : op->getOperands())
      if (std::optional<double> number = getSplatValue(operand))
        if (isMultipleOfBatch(*number) || isMultipleOfBatch(1 / *number))
          return true;
    if (isa<nn::DivOp>(op))
      return holdsScale(op->getOperand(0));
  } else if (!isa<nn::AddOp, nn::SubOp, nn::NegOp, nn::CastOp, nn::ReshapeOp,
                  nn::TransposeOp, nn::SelectOp, nn::ReduceOp>(op)) {
    return false;
  }
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return holdsScale(operand); });
}

nn::ReduceOp RowMasker::findSum(Value value) const {
  while (auto view = value.getDefiningOp<nn::ReshapeOp>())
    value = view.getInput();
  auto reduce = value.getDefiningOp<nn::ReduceOp>();
  return llvm::any_of(sums, [&](const RowSum &sum) { return sum.op == reduce; })
             ? reduce
             : nullptr;
}

ArrayAttr RowMasker::keepNeeded(ArrayAttr all) const {
  SmallVector<Attribute> kept;
  for (Attribute one : all) {
    auto place = dyn_cast<DictionaryAttr>(one);
    if (needed.contains(place ? place.get("input") : one))
      kept.push_back(one);
  }
  return ArrayAttr::get(loss.getContext(), kept);
}

/// The mask in the type of a value with rows.
Value RowMasker::spreadMask(const NNBuilder &build, Value mask,
                            Value like) const {
  RowFinder::State at = rows.lookup(like);
  RankedTensorType type = typeOf(like);
  int64_t size = type.getDimSize(at.dim), batch = rows.getBatch();
  Value own = build.cast(mask, type.getElementType());
  if (size != batch) {
    own = build.reshape(own, {1, batch, 1});
    own = build.broadcast(own, {size / (batch * at.inner), batch, at.inner});
  }
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[at.dim] = size;
  return build.broadcast(build.reshape(own, shape), type.getShape());
}

void RowMasker::apply(Value mask) {
  OpBuilder builder(entry.getContext());
  for (const RowSum &sum : sums) {
    builder.setInsertionPoint(sum.op);
    NNBuilder build{builder, sum.op->getLoc()};
    for (unsigned operand : sum.operands) {
      Value value = sum.op->getOperand(operand);
      sum.op->setOperand(operand,
                         build.mul(value, spreadMask(build, mask, value)));
    }
  }
  for (auto [product, sum] : means) {
    builder.setInsertionPoint(product);
    NNBuilder build{builder, product.getLoc()};
    // Elements of one row, of each result.
    double each = 1.0 / double(rows.getBatch());
    for (int64_t dim : sum.getDims())
      each *= double(typeOf(sum.getInput()).getDimSize(dim));
    Type element = typeOf(product).getElementType();
    Type wide = element.isF64() ? element : builder.getF32Type();
    Value number = build.scale(build.sumFrom(build.cast(mask, wide), 0), each);
    product.replaceAllUsesWith(
        build.div(product.getLhs(), build.like(number, product.getLhs())));
    product.erase();
  }
}

namespace {
struct MaskRowsPass : impl::MaskRowsPassBase<MaskRowsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp entry = nn::findEntry(getOperation(), nn::EntryKind::forward);
    if (!entry) {
      getOperation().emitError() << "expected a forward entry, found none";
      return signalPassFailure();
    }
    FailureOr<Value> found = findOutput(entry, loss);
    if (failed(found) || failed(mask(entry, *found)))
      signalPassFailure();
  }

  LogicalResult mask(func::FuncOp entry, Value loss) {
    SmallVector<std::string> dims(batchDims.begin(), batchDims.end());
    std::optional<Objection> objection;
    // An input may be as long as the batch and have no rows.
    for (bool ofTokens : {false, true}) {
      RowFinder rows(entry, dims, /*countsAreFree=*/false, ofTokens);
      if (failed(rows.run()))
        continue;
      RowMasker masker(entry, loss, rows);
      std::optional<Objection> now = masker.plan();
      if (!now)
        return apply(entry, rows, masker);
      if (!objection)
        objection = now;
    }
    if (!objection)
      return entry.emitError() << "expected an input with the rows of a batch, "
                                  "with --row-mask, found none";
    return emitError(objection->loc) << objection->what;
  }

  LogicalResult apply(func::FuncOp entry, const RowFinder &rows,
                      RowMasker &masker) {
    Builder builder(entry.getContext());
    StringAttr name = builder.getStringAttr(kRowMaskName);
    auto inputs = llvm::to_vector(masker.keepNeeded(rows.getInputs(builder)));
    inputs.push_back(name);
    DictionaryAttr attribute = builder.getDictionaryAttr(
        {builder.getNamedAttr("equal",
                              masker.keepNeeded(rows.getEqual(builder))),
         builder.getNamedAttr("input", name),
         builder.getNamedAttr("inputs", builder.getArrayAttr(inputs))});
    FailureOr<Value> mask =
        addInput(entry, kRowMaskName,
                 RankedTensorType::get({rows.getBatch()}, builder.getI1Type()),
                 "the mask of --row-mask");
    if (failed(mask))
      return failure();
    masker.apply(*mask);
    getOperation()->setAttr(kRowMaskAttr, attribute);
    // They have told what they were asked for.
    getOperation().walk([](nn::MulOp op) { op->removeAttr(nn::kMeanAttr); });
    return success();
  }
};
} // namespace
} // namespace accel::autodiff
