// Rows are followed by the ops' sharding rules: wherever the factor is that has
// them, in operands and results alike.

#include "RingRows.h"

#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/AttentionDims.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

namespace {
/// Where rows are in a dimension of a value: `size` of them, `inner` elements
/// apart, beside others that have nothing to do with them.
struct Rows {
  unsigned dim;
  int64_t size, inner;

  bool operator==(const Rows &other) const {
    return dim == other.dim && size == other.size && inner == other.inner;
  }
};

class RowFollower {
public:
  RowFollower(func::FuncOp entry, StringAttr axis, ArrayRef<GatheredKeys> rings)
      : entry(entry),
        mesh(dist::MeshOp::of(entry->getParentOfType<ModuleOp>())), axis(axis),
        ranks(*mesh.findAxisSize(axis)), rings(rings) {
    for (const GatheredKeys &ring : rings)
      ringOf[ring.attention] = &ring;
  }

  std::optional<RingRows> run();

private:
  bool stop(Operation *op, StringRef why) {
    op->emitWarning() << "ranks of rings have causal rows that follow each "
                         "other, and so unequal shares of the work: expected "
                         "rows that ranks can have in turns, found "
                      << why;
    return false;
  }
  void reach(Value value, Rows rows) {
    auto [known, isNew] = reached.insert({{value, rows.dim}, rows});
    if (isNew)
      waiting.push_back({value, rows});
    else if (!(known->second == rows))
      doubtful = value;
  }
  bool isSplitOver(dist::AxesAttr axes) const {
    return llvm::is_contained(axes.getNames(), axis);
  }
  const GatheredKeys *findRing(dist::ReduceScatterOp scatter) const;
  const GatheredKeys *findRing(dist::AllGatherOp gather) const;

  bool follow(Value value, Rows rows);
  bool followOutside(Operation *at, bool isKnown, dist::LayoutAttr layout,
                     unsigned number, Rows rows,
                     SmallVectorImpl<RingRows::Outside> &found);
  bool pass(Operation *op, bool isResult, unsigned number, Rows rows);
  bool passRule(ShardingRuleOpInterface op, bool isResult, unsigned number,
                Rows rows);
  bool passAttention(Operation *op, bool isResult, unsigned number, Rows rows);
  bool passSlice(Operation *op, dist::AxesAttr axes, unsigned dim,
                 bool isResult, Rows rows);
  bool passGather(dist::AllGatherOp op, bool isResult, Rows rows);
  bool passAllToAll(dist::AllToAllOp op, bool isResult, Rows rows);
  bool checkSource(Operation *op, Rows rows);
  bool passCounter(nn::AddOp add, bool isResult, unsigned number, Rows rows);
  bool resize(Value from, Value to, Rows rows, unsigned dim, Operation *by);
  void reachKeys(const GatheredKeys &ring);
  std::optional<AllRows> getAll(Value local, dist::AxesAttr axes, Rows rows);

  func::FuncOp entry;
  dist::MeshOp mesh;
  StringAttr axis;
  int64_t ranks;
  ArrayRef<GatheredKeys> rings;
  llvm::DenseMap<Operation *, const GatheredKeys *> ringOf;

  llvm::DenseMap<std::pair<Value, unsigned>, Rows> reached; ///< by dimension
  SmallVector<std::pair<Value, Rows>> waiting;
  int64_t most = 0; ///< rows of a ring on a rank
  Value doubtful;   ///< which has different rows in one dimension
  RingRows found;
};
} // namespace

/// The attention that the sum of a gradient's terms is scattered for.
const GatheredKeys *RowFollower::findRing(dist::ReduceScatterOp scatter) const {
  for (const GatheredKeys &ring : rings)
    if (llvm::is_contained(ring.scatters, scatter))
      return &ring;
  return nullptr;
}

const GatheredKeys *RowFollower::findRing(dist::AllGatherOp gather) const {
  for (Operation *reader : gather->getUsers())
    if (auto found = ringOf.find(reader); found != ringOf.end())
      return found->second;
  return nullptr;
}

/// All keys of a ring, and the rows of a causal one, are alike.
void RowFollower::reachKeys(const GatheredKeys &ring) {
  auto all = [&](Value value) {
    reach(value, {nn::kRowDim, shapeOf(value)[nn::kRowDim], 1});
  };
  all(ring.getKeys());
  all(ring.getValues());
  for (dist::ReduceScatterOp scatter : ring.scatters)
    all(scatter.getResult());
}

std::optional<RingRows> RowFollower::run() {
  for (const GatheredKeys &ring : rings)
    llvm::TypeSwitch<Operation *>(ring.attention)
        .Case<nn::AttentionOp, nn::AttentionGradOp>([&](auto op) {
          Value query = op.getQuery();
          int64_t rows = shapeOf(query)[nn::kRowDim];
          if (!op.getCausal())
            return;
          most = std::max(most, rows);
          reach(query, {nn::kRowDim, rows, 1});
        });
  while (!waiting.empty()) {
    auto [value, rows] = waiting.pop_back_val();
    if (!follow(value, rows))
      return std::nullopt;
  }
  if (doubtful) {
    stop(doubtful.getDefiningOp() ? doubtful.getDefiningOp() : entry,
         "them in two places of one dimension");
    return std::nullopt;
  }
  for (const GatheredKeys &ring : rings)
    if (reached.contains({ring.getKeys(), nn::kRowDim}))
      found.rings.push_back(&ring);
  return std::move(found);
}

/// Whether all elements along rows are one that is repeated.
static bool isEqualAlong(Value value, Rows rows) {
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast)
    return isa_and_present<nn::ConstantOp, nn::IotaOp>(value.getDefiningOp());
  ArrayRef<int64_t> from = shapeOf(broadcast.getInput());
  size_t added = shapeOf(value).size() - from.size();
  return rows.dim < added || from[rows.dim - added] == 1;
}

bool RowFollower::follow(Value value, Rows rows) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    if (!followOutside(
            entry, bool(entry.getArgAttr(number, nn::kInputAttr)),
            entry.getArgAttrOfType<dist::LayoutAttr>(number, dist::kLayoutAttr),
            number, rows, found.arguments))
      return false;
  } else {
    auto result = cast<OpResult>(value);
    if (!pass(result.getOwner(), true, result.getResultNumber(), rows))
      return false;
  }
  // Who else reads equal elements has other rows of them, if any.
  if (isEqualAlong(value, rows))
    return true;
  for (OpOperand &use : value.getUses()) {
    Operation *reader = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (isa<func::ReturnOp>(reader)
            ? !followOutside(reader,
                             bool(entry.getResultAttr(number, nn::kOutputAttr)),
                             entry.getResultAttrOfType<dist::LayoutAttr>(
                                 number, dist::kLayoutAttr),
                             number, rows, found.results)
            : !pass(reader, false, number, rows))
      return false;
  }
  return true;
}

/// An input's or output's rows, if they are that, whose order can be said.
bool RowFollower::followOutside(Operation *at, bool isKnown,
                                dist::LayoutAttr layout, unsigned number,
                                Rows rows,
                                SmallVectorImpl<RingRows::Outside> &outside) {
  if (!isKnown || !layout)
    return stop(at, "them in a state");
  ArrayRef<StringAttr> axes = layout.getDims()[rows.dim].getNames();
  int64_t all = layout.getShape()[rows.dim];
  if (layout.getInterleaved() || rows.inner != 1 || axes.empty() ||
      axes.front() != axis ||
      rows.size * mesh.getGroupSize(layout.getDims()[rows.dim]) != all)
    return stop(at, "an input or output that is split otherwise");
  outside.push_back({number, rows.dim});
  return true;
}

bool RowFollower::pass(Operation *op, bool isResult, unsigned number,
                       Rows rows) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](dist::AllGatherOp gather) {
        return passGather(gather, isResult, rows);
      })
      .Case([&](dist::AllSliceOp slice) {
        return passSlice(op, slice.getAxes(), slice.getDim(), isResult, rows);
      })
      .Case([&](dist::ReduceScatterOp scatter) {
        if (const GatheredKeys *ring = findRing(scatter);
            ring && isResult && rows.dim == nn::kRowDim) {
          reachKeys(*ring);
          return true;
        }
        return passSlice(op, scatter.getAxes(), scatter.getDim(), isResult,
                         rows);
      })
      .Case([&](dist::AllToAllOp all) {
        return passAllToAll(all, isResult, rows);
      })
      .Case<dist::AllReduceOp, dist::PermuteOp>([&](auto same) {
        if (isSplitOver(same.getAxes()))
          return stop(op, "them exchanged between ranks");
        reach(isResult ? same.getInput() : same.getResult(), rows);
        return true;
      })
      .Case<nn::AttentionOp, nn::AttentionGradOp>(
          [&](auto) { return passAttention(op, isResult, number, rows); })
      .Case<nn::IotaOp, nn::ConstantOp>(
          [&](auto) { return checkSource(op, rows); })
      .Case([&](nn::AddOp add) {
        return passCounter(add, isResult, number, rows);
      })
      .Case([&](ShardingRuleOpInterface op) {
        return passRule(op, isResult, number, rows);
      })
      .Default([&](Operation *op) {
        return stop(op, "an op without a rule for them");
      });
}

/// Through an op: wherever the factor is that has the rows.
bool RowFollower::passRule(ShardingRuleOpInterface op, bool isResult,
                           unsigned number, Rows rows) {
  ShardingRule rule = op.getShardingRule();
  const ShardingRule::Dim &here =
      (isResult ? rule.results : rule.operands)[number][rows.dim];
  std::optional<unsigned> factor;
  int64_t behind = 1;
  for (unsigned each : llvm::reverse(here)) {
    int64_t size = rule.factors[each].size;
    if (rows.inner % behind == 0 && rows.inner / behind * rows.size <= size &&
        size % (rows.inner / behind * rows.size) == 0) {
      factor = each;
      break;
    }
    behind *= size;
  }
  if (!factor || rule.factors[*factor].kind == FactorKind::Inside ||
      rule.factors[*factor].kind == FactorKind::Exchanged)
    return stop(op, "an op that needs them in their order");
  // What is looked up is another row where rows are others.
  bool isLookup = isa<nn::GatherOp, nn::GatherNdOp>(op.getOperation());
  if (auto scatter = dyn_cast<nn::ScatterAddOp>(op.getOperation()))
    isLookup = llvm::is_contained(rule.results[0][scatter.getDim()], *factor);
  else if (isLookup)
    isLookup = rule.factors[*factor].kind != FactorKind::PassThrough;
  if (isLookup)
    return stop(op, "them looked up by their numbers");
  int64_t within = rows.inner / behind;
  auto visit = [&](const ShardingRule::Tensor &tensor, Value value) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      int64_t inner = within;
      for (unsigned each : llvm::reverse(factors)) {
        if (each == *factor)
          reach(value, {unsigned(dim), rows.size, inner});
        inner *= rule.factors[each].size;
      }
    }
  };
  for (auto [tensor, value] : llvm::zip_equal(rule.operands, op->getOperands()))
    visit(tensor, value);
  for (auto [tensor, value] : llvm::zip_equal(rule.results, op->getResults()))
    visit(tensor, value);
  return true;
}

bool RowFollower::passAttention(Operation *op, bool isResult, unsigned number,
                                Rows rows) {
  auto look = [&](auto attention) {
    auto found = ringOf.find(op);
    Value key = attention.getKey();
    if (attention.getCausal()) {
      DictionaryAttr plain = DictionaryAttr::get(
          op->getContext(),
          NamedAttribute(axis, Builder(op).getI64IntegerAttr(rows.size)));
      if (found == ringOf.end())
        return stop(op, "causal attention that is no ring");
      if (attention.getRowSteps() != plain || attention.getStride() != 1 ||
          shapeOf(key)[nn::kRowDim] != ranks * rows.size)
        return stop(op, "a ring of other rows than keys");
      reachKeys(*found->second);
    }
    return passRule(cast<ShardingRuleOpInterface>(op), isResult, number, rows);
  };
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return look(attention);
  return look(cast<nn::AttentionGradOp>(op));
}

/// From one side of an exchange to the other, where ranks along other axes have
/// more or less of dimension `dim`: of what is major in it, be that rows, or
/// what these are counted for.
bool RowFollower::resize(Value from, Value to, Rows rows, unsigned dim,
                         Operation *by) {
  int64_t here = shapeOf(from)[rows.dim], there = shapeOf(to)[rows.dim];
  if (rows.dim == dim && here != there) {
    bool grows = there > here;
    int64_t times = grows ? there / here : here / there,
            outer = here / (rows.size * rows.inner);
    // Rows of which a rank has all that ranks along other axes have do not
    // grow.
    bool ofRows = outer == 1 && !(grows && rows.size == most);
    if (!grows && !ofRows && outer % times != 0)
      return stop(by, "an exchange of parts of what stands beside them");
    if (ofRows)
      rows.size = grows ? rows.size * times : rows.size / times;
  }
  reach(to, rows);
  return true;
}

std::optional<AllRows> RowFollower::getAll(Value local, dist::AxesAttr axes,
                                           Rows rows) {
  int64_t outer = 1, behind = 1;
  bool isBehind = false;
  for (StringAttr each : axes.getNames()) {
    if (each == axis)
      isBehind = true;
    else
      (isBehind ? behind : outer) *= *mesh.findAxisSize(each);
  }
  int64_t between = shapeOf(local)[rows.dim] / (rows.size * rows.inner);
  if (behind != 1 && between != 1)
    return std::nullopt;
  return AllRows{rows.dim,           outer,     ranks, between,
                 behind * rows.size, rows.inner};
}

bool RowFollower::passSlice(Operation *op, dist::AxesAttr axes, unsigned dim,
                            bool isResult, Rows rows) {
  Value whole = op->getOperand(0), local = op->getResult(0);
  if (rows.dim != dim || !isSplitOver(axes))
    return resize(isResult ? local : whole, isResult ? whole : local, rows, dim,
                  op);
  std::optional<AllRows> all = getAll(local, axes, rows);
  if (!isResult || !all || !found.slices.insert({op, *all}).second)
    return stop(op, "parts of them cut out of others");
  return true;
}

bool RowFollower::passGather(dist::AllGatherOp op, bool isResult, Rows rows) {
  Value local = op.getInput(), whole = op.getResult();
  if (rows.dim != op.getDim() || !isSplitOver(op.getAxes()))
    return resize(isResult ? whole : local, isResult ? local : whole, rows,
                  op.getDim(), op);
  std::optional<AllRows> all = getAll(local, op.getAxes(), rows);
  if (isResult || !all || !found.gathers.insert({op, *all}).second)
    return stop(op, "parts of them joined with others");
  if (const GatheredKeys *ring = findRing(op))
    reachKeys(*ring);
  return true;
}

bool RowFollower::passAllToAll(dist::AllToAllOp op, bool isResult, Rows rows) {
  if (isSplitOver(op.getAxes()))
    return stop(op, "them exchanged between ranks");
  unsigned dim =
      rows.dim == op.getSplitDim() ? op.getSplitDim() : op.getConcatDim();
  return resize(isResult ? op.getResult() : op.getInput(),
                isResult ? op.getInput() : op.getResult(), rows, dim, op);
}

/// What has no operands is as it is on all ranks.
bool RowFollower::checkSource(Operation *op, Rows rows) {
  SplatElementsAttr splat;
  auto iota = dyn_cast<nn::IotaOp>(op);
  if (iota ? iota.getDim() != rows.dim : matchPattern(op, m_Constant(&splat)))
    return true;
  return stop(op, "numbers that are the same on all ranks");
}

/// A counter that begins as many times a rank's number as it has numbers: none
/// if `add` is something else.
static std::optional<RowCounter> matchCounter(nn::AddOp add) {
  auto iota = add.getLhs().getDefiningOp<nn::IotaOp>();
  std::optional<int64_t> piece;
  for (Operation *op = add.getRhs().getDefiningOp(); iota && op;
       op = op->getOperand(0).getDefiningOp()) {
    if (auto index = dyn_cast<dist::AxisIndexOp>(op))
      return piece == shapeOf(iota.getResult())[iota.getDim()]
                 ? std::optional(RowCounter{add, iota, index})
                 : std::nullopt;
    SplatElementsAttr size;
    if (auto mul = dyn_cast<nn::MulOp>(op);
        mul && !piece && matchPattern(mul.getRhs(), m_Constant(&size)) &&
        size.getElementType().isInteger(64))
      piece = size.getSplatValue<APInt>().getSExtValue();
    else if (!isa<nn::CastOp, nn::BroadcastOp>(op))
      break;
  }
  return std::nullopt;
}

/// A rank's own rows are counted from where they begin.
bool RowFollower::passCounter(nn::AddOp add, bool isResult, unsigned number,
                              Rows rows) {
  std::optional<RowCounter> counter = matchCounter(add);
  if (!counter || counter->iota.getDim() != rows.dim)
    return passRule(cast<ShardingRuleOpInterface>(add.getOperation()), isResult,
                    number, rows);
  if (counter->index.getAxes().getNames().front() != axis || rows.inner != 1 ||
      rows.size != shapeOf(counter->iota.getResult())[rows.dim])
    return stop(add, "a counter of other ranks' rows");
  if (isResult)
    found.counters.push_back(*counter);
  else
    reach(add.getResult(), rows);
  return true;
}

std::optional<RingRows> parallel::followRows(func::FuncOp entry,
                                             StringAttr axis,
                                             ArrayRef<GatheredKeys> rings) {
  return RowFollower(entry, axis, rings).run();
}
