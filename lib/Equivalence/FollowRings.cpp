// Rings: keys and values that go from rank to rank, and what each rank makes of
// the part that has come to it, combined turn by turn (Liu et al., Ring
// Attention with Blockwise Transformers, arXiv:2310.01889).

#include "Follow.h"

#include "dialects/NN/AttentionDims.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

bool Turned::isComplete(int64_t ranks) const {
  return turn == 0 && static_cast<int64_t>(terms.size()) == ranks;
}

/// Which result of an attention a term is of: 0 its rows, 1 their log-sum-exp;
/// none of something else, whose terms are added up.
static std::optional<unsigned> getAttentionResult(const Turned &turned) {
  auto result = dyn_cast<OpResult>(turned.piece.logical);
  if (!result || !isa<nn::AttentionOp>(result.getOwner()))
    return std::nullopt;
  return result.getResultNumber();
}

/// Adds what is known; all terms together are the piece, in its own type, but
/// that a log-sum-exp that is counted from its rows' levels is not the logical
/// one.
void Follower::insertTurned(Value value, Turned turned) {
  Known &known = at(value);
  llvm::sort(turned.terms);
  if (holds(Premise::AllInItsType, getElementTypeOrSelf(turned.piece.logical) ==
                                       getElementTypeOrSelf(value)) &&
      turned.isComplete(maker.getSize(turned.axis)) &&
      !(turned.isLeveled && getAttentionResult(turned) == 1u))
    insertSum(known.pieces, turned.piece);
  if (!llvm::is_contained(known.turned, turned))
    known.turned.push_back(std::move(turned));
}

/// What a value holds, which may be the rank's own.
std::vector<Turned> Follower::getTurned(Value value) {
  std::vector<Turned> all = at(value).turned;
  for (const Piece &piece : at(value).pieces) {
    if (piece.dims.size() <= nn::kRowDim || !piece.partial.empty())
      continue;
    const Dim &rows = piece.dims[nn::kRowDim];
    if (Axes axes = maker.dropUnits(rows.axes);
        axes.size() == 1 && !rows.free &&
        (rows.isPlain() || rows.isStriped(maker.getSize(axes.front()),
                                          shapeOf(piece.logical)[nn::kRowDim])))
      all.push_back({piece, axes.front(), 0, {}});
  }
  return all;
}

/// Ranks get what those so many places before them had: the numbers of all are
/// counted from the rank that has it.
void Follower::followRotation(Operation *op, Known &result) {
  auto permute = dyn_cast<dist::PermuteOp>(op);
  Axes axes = permute ? maker.dropUnits(permute.getAxes().getNames()) : Axes();
  if (axes.size() != 1)
    return;
  ArrayRef<int64_t> sources = permute.getSources();
  int64_t ranks = sources.size(), by = (ranks - sources.front()) % ranks;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (!holds(Premise::RotatesAll,
               (rank + ranks - by) % ranks == sources[rank]))
      return;
  for (Turned turned : getTurned(op->getOperand(0))) {
    if (turned.axis != axes.front())
      continue;
    turned.turn = (turned.turn + by) % ranks;
    for (int64_t &term : turned.terms)
      term = (term + by) % ranks;
    if (turned.turn == 0 && turned.terms.empty())
      insert(result.pieces, turned.piece);
    else
      insertTurned(op->getResult(0), std::move(turned));
  }
}

/// How far the rows or keys of the ranks along an axis are apart.
static DictionaryAttr getSteps(Operation *op, StringAttr axis, int64_t step) {
  Builder builder(op->getContext());
  return builder.getDictionaryAttr(
      builder.getNamedAttr(axis, builder.getI64IntegerAttr(step)));
}

/// Whether `local` is a rectangle of scores of `logical`: it says where its
/// rows and keys are, and rows of it that see nothing count for nothing. Of the
/// whole a mask alone leaves such, and then the gradient must be as it says.
template <typename AttentionLike>
static bool isRectangle(AttentionLike logical, AttentionLike local,
                        const Turned &keys, int64_t ranks) {
  bool isMasked = bool(logical.getMask());
  bool ofRows = isa<nn::AttentionOp>(local.getOperation());
  if (bool(local.getMask()) != isMasked ||
      !holds(Premise::NothingSeenIsNothing,
             !isMasked || local.getZeroMaskedRows() ==
                              (ofRows || logical.getZeroMaskedRows())) ||
      logical.getScale() != local.getScale() ||
      logical.getCausal() != local.getCausal() || logical.getStride() != 1 ||
      logical.getRowOffset() != local.getRowOffset() ||
      logical.getColumnOffset() != local.getColumnOffset())
    return false;
  // Levels are those of all columns, which `causal` hides some of.
  if (isMasked && logical.getCausal() &&
      !getElementTypeOrSelf(logical.getMask()).isInteger(1))
    return false;
  DictionaryAttr steps = local.getColumnSteps().value_or(DictionaryAttr());
  if (!logical.getCausal())
    return !steps;
  bool isStriped = !keys.piece.dims[nn::kRowDim].order.empty();
  int64_t count = shapeOf(local.getKey())[nn::kRowDim];
  return holds(Premise::NothingSeenIsNothing,
               isMasked || local.getZeroMaskedRows()) &&
         logical.getDiagonal() >= 0 &&
         (!isStriped || local.getRowSteps() == getSteps(local, keys.axis, 1)) &&
         int64_t(local.getStride()) == (isStriped ? ranks : 1) &&
         holds(Premise::SaysItsKeys,
               steps == getSteps(local, keys.axis, isStriped ? 1 : count) &&
                   int64_t(local.getTurn()) == keys.turn);
}

/// What `local` would be if it had all keys, and `mask` of them: an op of no
/// block that says so.
template <typename AttentionLike>
static AttentionLike widenKeys(AttentionLike local, int64_t keys, Value mask,
                               Block &block) {
  auto widen = [&](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    shape[nn::kRowDim] = keys;
    return type.clone(shape);
  };
  OpBuilder builder(local->getContext());
  builder.setInsertionPointToEnd(&block);
  auto wide = cast<AttentionLike>(builder.clone(*local));
  // By place: queries may be the same value as keys.
  for (OpOperand *operand : {&wide.getKeyMutable(), &wide.getValueMutable()})
    operand->set(block.addArgument(
        widen(cast<RankedTensorType>(operand->get().getType())),
        local.getLoc()));
  if (mask)
    wide.getMaskMutable().assign(mask);
  wide.removeColumnStepsAttr();
  wide.setTurn(0);
  // Its rows as if they were a range: which of the whole they are, whoever has
  // them says.
  if (wide.getStride() != 1) {
    StringAttr axis = wide.getRowSteps()->begin()->getName();
    wide.setRowStepsAttr(
        getSteps(wide, axis, shapeOf(wide.getQuery())[nn::kRowDim]));
    wide.setStride(1);
  }
  if constexpr (std::is_same_v<AttentionLike, nn::AttentionGradOp>)
    for (Value result : {wide.getKeyGradient(), wide.getValueGradient()})
      result.setType(widen(cast<RankedTensorType>(result.getType())));
  return wide;
}

/// Pieces of which a dimension comes in an order, as if it came in its own;
/// others are none.
static void putInOrder(std::vector<Piece> &pieces, unsigned dim,
                       const Axes &axes, const std::vector<Digit> &order) {
  llvm::erase_if(pieces, [&](Piece &piece) {
    Dim &held = piece.dims[dim];
    if (held.free || shapeOf(piece.logical)[dim] == 1)
      return false;
    bool isOther = held.axes != axes || held.order != order ||
                   !held.parts.empty() || held.padding != 0;
    held.order.clear();
    return isOther;
  });
}

/// What a value is of the log-sum-exp `wanted` of an attention with `mask`,
/// from whose levels it is counted.
std::vector<Piece> Follower::getLeveled(Value value, Value wanted, Value mask) {
  std::vector<Piece> pieces;
  for (const Turned &turned : at(value).turned) {
    auto attention = wanted.getDefiningOp<nn::AttentionOp>();
    if (turned.isLeveled && turned.isComplete(maker.getSize(turned.axis)) &&
        turned.piece.logical == wanted && getAttentionResult(turned) == 1u &&
        attention.getMask() && logical.rootOf(attention.getMask()) == mask)
      insert(pieces, turned.piece);
  }
  return pieces;
}

/// A rectangle of scores: what it adds to its rows, of which a term of each
/// rank's keys is to come, and to its keys, of which one of each rank's rows
/// is.
template <typename AttentionLike>
void Follower::followRectangle(AttentionLike local) {
  for (const Turned &keys : getTurned(local.getKey()))
    for (const Turned &values : getTurned(local.getValue())) {
      if (keys.axis != values.axis ||
          !holds(Premise::KeysHaveValues, keys.turn == values.turn) ||
          !keys.terms.empty() || !values.terms.empty())
        continue;
      std::optional<MaskColumns> columns;
      if (local.getMask())
        columns = getMaskColumns(local.getMask());
      // Numbers of a mask may hide a row wholly, and leave no number of scores.
      if (local.getMask() &&
          (!columns || columns->axis != keys.axis ||
           !holds(Premise::MasksItsKeys, columns->turn == keys.turn) ||
           columns->isLeveled ==
               getElementTypeOrSelf(local.getMask()).isInteger(1)))
        continue;
      for (Operation *reader : logical.getReaders(keys.piece.logical)) {
        auto whole = dyn_cast<AttentionLike>(reader);
        if (!whole || logical.rootOf(whole.getKey()) != keys.piece.logical ||
            logical.rootOf(whole.getValue()) != values.piece.logical ||
            whole->getNumOperands() != local->getNumOperands() ||
            !isRectangle(whole, local, keys, maker.getSize(keys.axis)))
          continue;
        const Dim &stripes = keys.piece.dims[nn::kRowDim];
        bool isStriped = !stripes.order.empty();
        Block block;
        AttentionLike wide =
            widenKeys(local, shapeOf(whole.getKey())[nn::kRowDim],
                      columns ? columns->mask : Value(), block);
        Operands operands;
        unsigned key = local.getKeyMutable().getOperandNumber(),
                 value = local.getValueMutable().getOperandNumber();
        for (auto [number, operand] : llvm::enumerate(local->getOperands())) {
          Value root = logical.rootOf(whole->getOperand(number));
          operands.push_back(
              hold(operand == local.getMask() ? columns->mask : operand, root));
          if (columns && columns->isLeveled)
            if (auto grad = dyn_cast<nn::AttentionGradOp>(local.getOperation());
                grad && operand == grad.getLogSumExp())
              operands.back() =
                  getLeveled(operand, root, logical.rootOf(whole.getMask()));
          if (number == key || number == value) {
            operands.back() = {number == key ? keys.piece : values.piece};
            operands.back().front().dims[nn::kRowDim] = Dim();
            continue;
          }
          if (isStriped && operand == local.getMask())
            putInOrder(operands.back(), nn::kColumnDim, {}, stripes.order);
          if (isStriped && whole.getCausal())
            putInOrder(operands.back(), nn::kRowDim, stripes.axes,
                       stripes.order);
        }
        std::vector<bool> none(operands.size(), false);
        SmallVector<bool> zeros(none.begin(), none.end());
        for (auto &results : apply(whole, operands, zeros, wide)) {
          for (Piece &piece : results)
            if (isStriped && whole.getCausal() &&
                piece.dims[nn::kRowDim].axes == stripes.axes)
              piece.dims[nn::kRowDim] = stripes;
          addRectangle(local, results, keys, columns && columns->isLeveled);
        }
      }
    }
}

void Follower::addRectangle(Operation *local, ArrayRef<Piece> results,
                            const Turned &keys, bool isLeveled) {
  for (auto [piece, result] : llvm::zip_equal(results, local->getResults())) {
    if (isa<nn::AttentionGradOp>(local) && result != local->getResult(0)) {
      // Of keys: terms of all rows, whose axis must be theirs.
      Turned term = {piece, keys.axis, keys.turn, {0}};
      term.others = results.front().dims[nn::kRowDim];
      if (!llvm::is_contained(piece.partial, keys.axis))
        continue;
      llvm::erase(term.piece.partial, keys.axis);
      term.piece.dims[nn::kRowDim] = keys.piece.dims[nn::kRowDim];
      insertTurned(result, term);
      continue;
    }
    // Of rows that no two ranks of the ring have: each adds its terms in an
    // order of its own, and copies must be of the same bits.
    const Dim &rows = piece.dims[nn::kRowDim];
    if (!rows.free && llvm::is_contained(rows.axes, keys.axis))
      insertTurned(result, {piece,
                            keys.axis,
                            0,
                            {keys.turn},
                            isLeveled,
                            keys.piece.dims[nn::kRowDim]});
  }
}

/// Both, if they are different terms of one thing.
static std::optional<Turned> joinTurned(const Turned &lhs, const Turned &rhs) {
  Turned both = lhs;
  if (lhs.terms.empty() || rhs.terms.empty() || lhs.axis != rhs.axis ||
      lhs.isLeveled != rhs.isLeveled || lhs.turn != rhs.turn ||
      !(lhs.piece == rhs.piece) ||
      !holds(Premise::JoinsOneSplit, lhs.others == rhs.others))
    return std::nullopt;
  for (int64_t term : rhs.terms)
    if (!holds(Premise::JoinsEachOnce, !llvm::is_contained(lhs.terms, term)))
      return std::nullopt;
  llvm::append_range(both.terms, rhs.terms);
  return both;
}

/// Whether a row of each of `ranks` ranks sees one of the rank's own keys, if
/// no mask hides them: of ranges the first row may stand before the first key,
/// where there are more keys than rows, and of other rows any may.
static bool seesOwnKeys(const Turned &rows, int64_t ranks) {
  auto attention = rows.piece.logical.getDefiningOp<nn::AttentionOp>();
  int64_t last = ranks - 1,
          row = shapeOf(attention.getQuery())[nn::kRowDim] / ranks,
          key = shapeOf(attention.getKey())[nn::kRowDim] / ranks;
  return !attention.getCausal() ||
         (ArrayRef(rows.piece.dims[nn::kRowDim].axes)
                  .take_front(rows.others.axes.size()) ==
              ArrayRef(rows.others.axes) &&
          (!rows.others.order.empty() ||
           last * key <= last * row + attention.getDiagonal()));
}

/// Whether each row of an attention sees a key in one of two terms: -inf is no
/// log-sum-exp to subtract from another.
static bool seesKeys(const Turned &a, const Turned &b, int64_t ranks) {
  auto attention = a.piece.logical.getDefiningOp<nn::AttentionOp>();
  bool hasOwn =
      llvm::is_contained(a.terms, 0) || llvm::is_contained(b.terms, 0);
  return !attention.getMask() &&
         (!attention.getCausal() ||
          (hasOwn && holds(Premise::SeesOwnKeys, seesOwnKeys(a, ranks))));
}

/// log(exp a + exp b), as max + log1p(exp(min - max)).
std::optional<Follower::LogAddExp> Follower::matchLogAddExp(Value value) {
  auto add = value.getDefiningOp<nn::AddOp>();
  auto log = add ? add.getRhs().getDefiningOp<nn::Log1pOp>() : nn::Log1pOp();
  auto exp = log ? log.getInput().getDefiningOp<nn::ExpOp>() : nn::ExpOp();
  auto sub = exp ? exp.getInput().getDefiningOp<nn::SubOp>() : nn::SubOp();
  auto max = add ? add.getLhs().getDefiningOp<nn::MaxOp>() : nn::MaxOp();
  auto min = sub ? sub.getLhs().getDefiningOp<nn::MinOp>() : nn::MinOp();
  if (!max || !min)
    return std::nullopt;
  Subtrahend less = getSubtrahend(sub.getRhs());
  if (sub.getRhs() == max.getResult())
    less = {sub.getRhs(), false};
  if (less.value != max.getResult() || max.getLhs() != min.getLhs() ||
      max.getRhs() != min.getRhs())
    return std::nullopt;
  return LogAddExp{max.getLhs(), max.getRhs(), less.isGuarded};
}

/// value · exp(part - all), the exponential repeated along the last dimension.
std::optional<Follower::Weighted> Follower::matchWeighted(Value product) {
  auto mul = product.getDefiningOp<nn::MulOp>();
  auto repeat =
      mul ? mul.getRhs().getDefiningOp<nn::BroadcastOp>() : nn::BroadcastOp();
  auto column = repeat ? repeat.getInput().getDefiningOp<nn::ReshapeOp>()
                       : nn::ReshapeOp();
  auto exp =
      column ? column.getInput().getDefiningOp<nn::ExpOp>() : nn::ExpOp();
  auto sub = exp ? exp.getInput().getDefiningOp<nn::SubOp>() : nn::SubOp();
  if (!sub)
    return std::nullopt;
  SmallVector<int64_t> rows(shapeOf(column.getInput()));
  rows.push_back(1);
  if (shapeOf(column.getResult()) != ArrayRef(rows))
    return std::nullopt;
  Subtrahend all = getSubtrahend(sub.getRhs());
  return Weighted{mul.getLhs(), sub.getLhs(), all.value, all.isGuarded};
}

/// Rows of an attention and their log-sum-exps are terms of the same keys.
bool Follower::belongTogether(const Turned &rows, Value logSumExp) {
  return llvm::any_of(at(logSumExp).turned, [&](const Turned &of) {
    return getAttentionResult(rows) == 0u && getAttentionResult(of) == 1u &&
           rows.piece.logical.getDefiningOp() ==
               of.piece.logical.getDefiningOp() &&
           rows.axis == of.axis && rows.turn == of.turn &&
           rows.isLeveled == of.isLeveled &&
           holds(Premise::JoinsItsOwn,
                 rows.terms == of.terms && rows.others == of.others) &&
           ArrayRef(rows.piece.dims).take_front(nn::kRowDim + 1) ==
               ArrayRef(of.piece.dims);
  });
}

/// Whether a row that sees no key in two terms, which is zeros in both, is in
/// both together what it is to be: zeros, until all terms say that it is NaN.
static bool isNothingRight(const Turned &a, const Turned &b, int64_t ranks,
                           bool makesNan) {
  auto attention = a.piece.logical.getDefiningOp<nn::AttentionOp>();
  bool areAll = static_cast<int64_t>(a.terms.size() + b.terms.size()) == ranks;
  return makesNan == (areAll && !attention.getZeroMaskedRows());
}

/// A sum of terms, or rows that are combined by the share of their keys in the
/// exponentials of all: result' = Σ exp(L - L') result, L' = log Σ exp(L).
void Follower::followTurnedSum(Operation *op, Known &result) {
  auto add = dyn_cast<nn::AddOp>(op);
  if (!add)
    return;
  auto join =
      [&](Value lhs, Value rhs, std::optional<unsigned> kind,
          llvm::function_ref<bool(const Turned &, const Turned &)> may) {
        for (const Turned &a : at(lhs).turned)
          for (const Turned &b : at(rhs).turned)
            if (getAttentionResult(a) == kind)
              if (std::optional<Turned> both = joinTurned(a, b);
                  both && may(a, b))
                insertTurned(add, *both);
      };
  join(add.getLhs(), add.getRhs(), std::nullopt,
       [](const Turned &, const Turned &) { return true; });
  if (std::optional<LogAddExp> logs = matchLogAddExp(add.getResult()))
    join(logs->a, logs->b, 1, [&](const Turned &a, const Turned &b) {
      return logs->isGuarded ||
             holds(Premise::SeesKeys, seesKeys(a, b, maker.getSize(a.axis)));
    });
  auto lhs = matchWeighted(add.getLhs()), rhs = matchWeighted(add.getRhs());
  if (!lhs || !rhs || lhs->all != rhs->all)
    return;
  std::optional<LogAddExp> all = matchLogAddExp(lhs->all);
  if (all && all->a == lhs->part && all->b == rhs->part)
    join(lhs->value, rhs->value, 0, [&](const Turned &a, const Turned &b) {
      int64_t ranks = maker.getSize(a.axis);
      bool isRight = lhs->isGuarded == rhs->isGuarded &&
                     isNothingRight(a, b, ranks, !lhs->isGuarded);
      return (holds(Premise::SeesKeys, seesKeys(a, b, ranks)) ||
              (all->isGuarded && holds(Premise::NothingIsRight, isRight))) &&
             belongTogether(a, lhs->part) && belongTogether(b, rhs->part);
    });
}

void Follower::followRectangleOfScores(Operation *op, Known &) {
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    followRectangle(attention);
  else if (auto grad = dyn_cast<nn::AttentionGradOp>(op))
    followRectangle(grad);
}

void Follower::followTurnedCast(Operation *op, Known &result) {
  if (auto cast = dyn_cast<nn::CastOp>(op);
      cast && isa<FloatType>(cast.getType().getElementType()))
    for (const Turned &turned : at(cast.getInput()).turned)
      insertTurned(cast, turned);
}

/// What rows are combined with is seen where they are.
bool Follower::isPartOfRing(Operation *op) {
  auto isOfRing = [&](Value operand) {
    return !at(operand).turned.empty() || at(operand).formula;
  };
  return isa<nn::MaxOp, nn::MinOp, nn::SubOp, nn::ExpOp, nn::Log1pOp,
             nn::ReshapeOp, nn::BroadcastOp, nn::MulOp>(op) &&
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0))) &&
         llvm::any_of(op->getOperands(), isOfRing);
}
