// Context parallelism by a ring: keys and values go from rank to rank, and
// attention is made of one rank's part of them at a time.

#include "StripedRows.h"
#include "TurnedMask.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_RINGATTENTIONPASS
#include "lib/Parallel/Passes.h.inc"

static constexpr uint64_t kKeys = 2; ///< the dimension of keys in a key

/// What is gathered, if keys are gathered; null if not.
static dist::AllGatherOp findGather(Value keys) {
  auto gather = keys.getDefiningOp<dist::AllGatherOp>();
  return gather && gather.getDim() == kKeys &&
                 gather.getAxes().getNames().size() == 1
             ? gather
             : dist::AllGatherOp();
}

namespace {
/// The keys and values of one attention, on their way round.
template <typename AttentionLike> class Ring {
public:
  Ring(AttentionLike op, dist::AllGatherOp keys, dist::AllGatherOp values,
       TurnedMasks &masks)
      : op(op), builder(op), loc(op.getLoc()), gather(keys),
        key(keys.getInput()), value(values.getInput()), masks(masks) {
    ranks =
        *dist::MeshOp::lookup(op, keys.getMeshAttr()).findAxisSize(getAxis());
  }

  StringAttr getAxis() { return gather.getAxes().getNames().front(); }
  /// One place on.
  Value move(Value what) {
    SmallVector<int64_t> sources;
    for (int64_t rank = 0; rank < ranks; ++rank)
      sources.push_back((rank + ranks - 1) % ranks);
    auto moved = dist::PermuteOp::create(
        builder, loc, what.getType(), what, gather.getMeshAttr(),
        gather.getAxesAttr(), builder.getDenseI64ArrayAttr(sources),
        gather.getWireAttr());
    moved->setAttr(dist::kInsertedByAttr,
                   builder.getStringAttr("dist-ring-attention"));
    return moved;
  }
  /// The op on the keys that have come.
  AttentionLike attend(int64_t turn) {
    auto part = cast<AttentionLike>(builder.clone(*op));
    part.getKeyMutable().assign(key);
    part.getValueMutable().assign(value);
    part->removeAttr(dist::kRingAttr);
    bool isForward = isa<nn::AttentionOp>(part.getOperation());
    if (Value mask = op.getMask()) {
      OpBuilder before(part);
      part.getMaskMutable().assign(
          masks.getColumns(mask, gather, ranks, turn, before));
      // Of a row that sees nothing of all keys the gradient is as it was.
      part.setZeroMaskedRows(isForward || op.getZeroMaskedRows());
    }
    if (!op.getCausal())
      return part;
    int64_t keys = cast<RankedTensorType>(key.getType()).getDimSize(kKeys),
            step = op.getStride() == 1 ? keys : 1; // in stripes
    part.setColumnStepsAttr(builder.getDictionaryAttr(
        builder.getNamedAttr(getAxis(), builder.getI64IntegerAttr(step))));
    part.setTurn(turn);
    if (!op.getMask())
      part.setZeroMaskedRows(true);
    return part;
  }
  Value toElement(Value what, Type element) {
    auto type = cast<RankedTensorType>(what.getType()).clone(element);
    return type == what.getType()
               ? what
               : nn::CastOp::create(builder, loc, type, what).getResult();
  }
  template <typename Op> Value make(Value lhs, Value rhs) {
    return Op::create(builder, loc, lhs.getType(), lhs, rhs);
  }
  template <typename Op> Value make(Value input) {
    return Op::create(builder, loc, input.getType(), input);
  }

  AttentionLike op;
  OpBuilder builder;
  Location loc;
  dist::AllGatherOp gather;
  Value key, value;
  TurnedMasks &masks;
  int64_t ranks;
};
} // namespace

/// Whether a row may see none of the keys that have come so far: behind a mask,
/// or before them, where it is not one of those that begin with their own keys.
static bool mayHideRows(Ring<nn::AttentionOp> &ring) {
  nn::AttentionOp op = ring.op;
  if (op.getMask() || !op.getCausal())
    return bool(op.getMask());
  DictionaryAttr steps = op.getRowSteps().value_or(DictionaryAttr());
  auto step = steps ? steps.getAs<IntegerAttr>(ring.getAxis()) : IntegerAttr();
  if (!step || op.getStride() != 1) // stripes of rows are stripes of keys
    return !step;
  int64_t last = ring.ranks - 1,
          keys = cast<RankedTensorType>(ring.key.getType()).getDimSize(kKeys);
  return last * keys > last * step.getInt() + op.getDiagonal();
}

/// What is subtracted where `logSumExp` would be, which is -inf in rows that
/// see nothing, if there may be such: -inf less -inf is no number.
static Value getSubtrahend(Ring<nn::AttentionOp> &ring, Value logSumExp) {
  return mayHideRows(ring)
             ? ring.make<nn::MaxOp>(
                   logSumExp,
                   createLowest(ring.builder, ring.loc,
                                cast<RankedTensorType>(logSumExp.getType())))
             : logSumExp;
}

/// log(exp a + exp b), where either may be -inf, and both where rows are
/// hidden.
static Value addExps(Ring<nn::AttentionOp> &ring, Value a, Value b) {
  Value most = ring.make<nn::MaxOp>(a, b), least = ring.make<nn::MinOp>(a, b);
  Value less = ring.make<nn::SubOp>(least, getSubtrahend(ring, most));
  return ring.make<nn::AddOp>(
      most, ring.make<nn::Log1pOp>(ring.make<nn::ExpOp>(less)));
}

/// Rows times the share that their keys have in all, whose log-sum-exp is
/// `all`, or what may be subtracted for it.
static Value weigh(Ring<nn::AttentionOp> &ring, Value rows, Value part,
                   Value all) {
  Value share = ring.make<nn::ExpOp>(ring.make<nn::SubOp>(part, all));
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> column(type.getShape().drop_back());
  column.push_back(1);
  share =
      nn::ReshapeOp::create(ring.builder, ring.loc, type.clone(column), share);
  share = nn::BroadcastOp::create(ring.builder, ring.loc, type, share);
  return ring.make<nn::MulOp>(rows, share);
}

/// Each rank begins with its own keys. A row that sees nothing at all is zeros,
/// or else NaN, which the last turn makes it.
static void turn(Ring<nn::AttentionOp> ring) {
  Type exact =
      cast<RankedTensorType>(ring.op.getLogSumExp().getType()).getElementType();
  Type element = ring.op.getResult().getType().getElementType();
  Value rows, logSumExp;
  for (int64_t turn = 0; turn < ring.ranks; ++turn) {
    if (turn > 0) {
      ring.key = ring.move(ring.key);
      ring.value = ring.move(ring.value);
    }
    nn::AttentionOp part = ring.attend(turn);
    Value found = ring.toElement(part.getResult(), exact);
    if (turn == 0) {
      rows = found;
      logSumExp = part.getLogSumExp();
      continue;
    }
    Value all = addExps(ring, logSumExp, part.getLogSumExp());
    bool makesNan = turn == ring.ranks - 1 && !ring.op.getZeroMaskedRows();
    Value less = makesNan ? all : getSubtrahend(ring, all);
    rows = ring.make<nn::AddOp>(weigh(ring, rows, logSumExp, less),
                                weigh(ring, found, part.getLogSumExp(), less));
    logSumExp = all;
  }
  ring.op.getResult().replaceAllUsesWith(ring.toElement(rows, element));
  ring.op.getLogSumExp().replaceAllUsesWith(logSumExp);
  ring.op.erase();
}

namespace {
/// What is done to the terms of a gradient: sums over other axes, of ranks that
/// share a key head, then the scatter of the sum over the ring's.
struct Scattered {
  SmallVector<dist::AllReduceOp> sums;
  dist::ReduceScatterOp scatter; ///< null if something else is done
};
} // namespace

static Scattered findScatter(Value gradient, StringAttr axis) {
  Scattered found;
  while (gradient.hasOneUse()) {
    Operation *reader = *gradient.getUsers().begin();
    auto scatter = dyn_cast<dist::ReduceScatterOp>(reader);
    if (scatter && scatter.getKind() == dist::Reduction::sum &&
        scatter.getDim() == kKeys &&
        llvm::equal(scatter.getAxes().getNames(), ArrayRef(axis)))
      found.scatter = scatter;
    auto sum = dyn_cast<dist::AllReduceOp>(reader);
    if (!sum || sum.getKind() != dist::Reduction::sum)
      break;
    found.sums.push_back(sum);
    gradient = sum.getResult();
  }
  return found;
}

/// Gradients go round with their keys: each rank adds its own, the one whose
/// keys they are of last.
static bool turn(Ring<nn::AttentionGradOp> ring) {
  Scattered scatters[] = {
      findScatter(ring.op.getKeyGradient(), ring.getAxis()),
      findScatter(ring.op.getValueGradient(), ring.getAxis())};
  if (!scatters[0].scatter || !scatters[1].scatter)
    return false;
  Value ofQuery, ofKeys[2], own[] = {ring.key, ring.value};
  for (int64_t turn = 1; turn <= ring.ranks; ++turn) {
    bool isOwn = turn == ring.ranks;
    ring.key = isOwn ? own[0] : ring.move(ring.key);
    ring.value = isOwn ? own[1] : ring.move(ring.value);
    nn::AttentionGradOp part = ring.attend(turn % ring.ranks);
    part.getKeyGradient().setType(cast<RankedTensorType>(ring.key.getType()));
    part.getValueGradient().setType(
        cast<RankedTensorType>(ring.value.getType()));
    Value query = part.getQueryGradient();
    ofQuery = ofQuery ? ring.make<nn::AddOp>(ofQuery, query) : query;
    for (auto [sum, more] :
         llvm::zip_equal(ofKeys, ValueRange(part.getResults()).drop_front()))
      sum = sum ? ring.make<nn::AddOp>(ring.move(sum), more) : Value(more);
  }
  ring.op.getQueryGradient().replaceAllUsesWith(ofQuery);
  for (auto [scattered, sum] : llvm::zip_equal(scatters, ofKeys)) {
    for (dist::AllReduceOp over : scattered.sums) {
      auto made = cast<dist::AllReduceOp>(ring.builder.clone(*over));
      made.getInputMutable().assign(sum);
      made.getResult().setType(cast<RankedTensorType>(sum.getType()));
      sum = made;
    }
    scattered.scatter.getResult().replaceAllUsesWith(sum);
    scattered.scatter.erase();
    for (dist::AllReduceOp over : llvm::reverse(scattered.sums))
      over.erase();
  }
  ring.op.erase();
  return true;
}

template <typename AttentionLike>
static bool turnKeys(AttentionLike op, TurnedMasks &masks) {
  dist::AllGatherOp keys = findGather(op.getKey()),
                    values = findGather(op.getValue());
  Value mask = op.getMask();
  bool hasNumbers = mask && !getElementTypeOrSelf(mask).isInteger(1);
  if (!keys || !values || (hasNumbers && op.getCausal()) ||
      keys.getAxes() != values.getAxes())
    return false;
  Ring<AttentionLike> ring(op, keys, values, masks);
  if constexpr (std::is_same_v<AttentionLike, nn::AttentionOp>) {
    turn(ring);
  } else if (op.getLogSumExpGradient() || !turn(ring)) {
    return false;
  }
  for (dist::AllGatherOp gather : {keys, values})
    if (gather->use_empty())
      gather.erase();
  return true;
}

/// Keys, values and scatters of an op that is to be a ring; none if it cannot.
static std::optional<GatheredKeys> getGathered(Operation *op) {
  auto get = [&](auto attention) -> std::optional<GatheredKeys> {
    GatheredKeys found = {op,
                          findGather(attention.getKey()),
                          findGather(attention.getValue()),
                          {}};
    if (!found.keys || !found.values)
      return std::nullopt;
    StringAttr axis = found.keys.getAxes().getNames().front();
    if (auto grad = dyn_cast<nn::AttentionGradOp>(op))
      for (Value gradient : {grad.getKeyGradient(), grad.getValueGradient()}) {
        found.scatters.push_back(findScatter(gradient, axis).scatter);
        if (!found.scatters.back())
          return std::nullopt;
      }
    return found;
  };
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return get(attention);
  auto grad = dyn_cast<nn::AttentionGradOp>(op);
  return grad ? get(grad) : std::nullopt;
}

namespace {
struct RingAttentionPass : impl::RingAttentionPassBase<RingAttentionPass> {
  using Base::Base;

  void runInOrder() override {
    SmallVector<Operation *> marked;
    for (auto entry : getOperation().getOps<func::FuncOp>()) {
      SmallVector<GatheredKeys> rings;
      entry.walk([&](Operation *op) {
        if (!op->hasAttr(dist::kRingAttr))
          return;
        marked.push_back(op);
        if (std::optional<GatheredKeys> ring = getGathered(op))
          rings.push_back(*ring);
      });
      stripeRows(entry, rings);
    }
    TurnedMasks masks;
    for (Operation *op : marked) {
      bool turned = false;
      if (auto attention = dyn_cast<nn::AttentionOp>(op))
        turned = turnKeys(attention, masks);
      else if (auto grad = dyn_cast<nn::AttentionGradOp>(op))
        turned = turnKeys(grad, masks);
      if (turned)
        continue;
      op->emitOpError() << "marked '" << dist::kRingAttr
                        << "': expected attention, not causal with a mask of "
                           "numbers, of keys and "
                           "values that are gathered over one axis, and their "
                           "gradients scattered";
      return signalPassFailure();
    }
  }
};
} // namespace
} // namespace accel::parallel
