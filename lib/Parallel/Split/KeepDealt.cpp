// Rows of groups stay with the ranks that have their matrices, from one grouped
// product to the next.

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Parallel/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_KEEPDEALTPASS
#include "lib/Parallel/Passes.h.inc"

/// The results of nn.deal_rows by number.
enum { kRows, kOwn, kPlaces };

/// The dealing whose result `number` an exchange of rows is by; null if it is
/// by something else.
static nn::DealRowsOp findDeal(dist::FetchRowsOp fetch, unsigned number) {
  auto index = dyn_cast<OpResult>(fetch.getIndex());
  auto deal =
      index ? dyn_cast<nn::DealRowsOp>(index.getOwner()) : nn::DealRowsOp();
  return deal && index.getResultNumber() == number ? deal : nn::DealRowsOp();
}

/// The operands of which an op makes each row of its result from that row;
/// nothing if it is no such op.
static std::optional<SmallVector<bool>> findRowOperands(Operation *op) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable || op->getNumResults() != 1 ||
      isa<nn::GroupedMatmulOp, nn::GroupedMatmulGradOp>(op) ||
      typeOf(op->getResult(0)).getRank() == 0)
    return std::nullopt;
  ShardingRule rule = shardable.getShardingRule();
  if (!rule.indexFree && !isa<nn::SliceOp>(op))
    return std::nullopt;
  const ShardingRule::Dim &rows = rule.results[0][0];
  int64_t count = typeOf(op->getResult(0)).getDimSize(0);
  if (rows.size() != 1 || rule.factors[rows[0]].size != count ||
      rule.factors[rows[0]].kind != FactorKind::PassThrough)
    return std::nullopt;
  SmallVector<bool> found;
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    bool ofRow = !dims.empty() && dims[0] == rows;
    for (const ShardingRule::Dim &dim : ArrayRef(dims).drop_front(ofRow))
      if (llvm::is_contained(dim, rows[0]))
        return std::nullopt;
    found.push_back(ofRow);
  }
  return found;
}

namespace {
/// One function.
class Keeper {
public:
  explicit Keeper(func::FuncOp function) : function(function) {}

  void run() {
    joinEqual();
    for (auto fetch : llvm::to_vector(function.getOps<dist::FetchRowsOp>()))
      if (nn::DealRowsOp deal = findDeal(fetch, kRows))
        if (Value dealt = find(fetch.getInput(), deal)) {
          fetch.getResult().replaceAllUsesWith(dealt);
          touched = true;
        }
    if (touched)
      for (Operation &op :
           llvm::make_early_inc_range(llvm::reverse(function.front())))
        if (isOpTriviallyDead(&op))
          op.erase();
  }

private:
  /// Dealings of the same groups, and exchanges of the same rows, are one.
  void joinEqual() {
    SmallVector<Operation *> known;
    for (Operation &op : llvm::make_early_inc_range(function.front())) {
      bool deals = isa<nn::DealRowsOp, dist::FetchRowsOp>(op) ||
                   llvm::any_of(op.getUsers(), [](Operation *user) {
                     return isa<nn::DealRowsOp>(user);
                   });
      if (!deals || !isMemoryEffectFree(&op) || op.getNumOperands() > 2)
        continue;
      auto *same = llvm::find_if(known, [&](Operation *other) {
        return OperationEquivalence::isEquivalentTo(
            other, &op, OperationEquivalence::IgnoreLocations);
      });
      if (same == known.end()) {
        known.push_back(&op);
        continue;
      }
      op.replaceAllUsesWith(*same);
      op.erase();
    }
  }

  /// A value's rows as `deal` gives them to this rank, if they are there: made
  /// of what was dealt so before it came back. Null if nothing of it was.
  Value find(Value value, nn::DealRowsOp deal) {
    auto [known, isNew] = dealt.try_emplace({value, deal});
    if (!isNew)
      return known->second;
    Value found = make(value, deal);
    return dealt[{value, deal}] = found;
  }

  Value make(Value value, nn::DealRowsOp deal) {
    Operation *op = value.getDefiningOp();
    if (auto fetch = dyn_cast_if_present<dist::FetchRowsOp>(op))
      return findDeal(fetch, kPlaces) == deal ? fetch.getInput() : Value();
    std::optional<SmallVector<bool>> rowOperands;
    if (!op || !(rowOperands = findRowOperands(op)))
      return {};
    SmallVector<Value> operands(op->getOperands());
    bool isThere = false;
    for (auto [operand, ofRow] : llvm::zip_equal(operands, *rowOperands))
      if (Value there = ofRow ? find(operand, deal) : Value()) {
        operand = there;
        ofRow = false;
        isThere = true;
      }
    if (!isThere)
      return {};
    OpBuilder builder(op);
    for (auto [operand, ofRow] : llvm::zip_equal(operands, *rowOperands))
      if (ofRow)
        operand = send(operand, deal, builder);
    SmallVector<Value> results;
    if (failed(cast<ShardingRuleOpInterface>(op).localize(
            builder, operands, withRoom(typeOf(value), deal), results)))
      return {};
    return results.front();
  }

  static Type withRoom(RankedTensorType type, nn::DealRowsOp deal) {
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = deal.getRoom();
    return type.clone(shape);
  }

  /// Rows that are not there yet; equal ones are wherever they are wanted.
  Value send(Value rows, nn::DealRowsOp deal, OpBuilder &builder) {
    RankedTensorType type = typeOf(rows);
    auto sent = cast<RankedTensorType>(withRoom(type, deal));
    SplatElementsAttr equal;
    if (matchPattern(rows, m_Constant(&equal)))
      return nn::ConstantOp::create(builder, rows.getLoc(),
                                    equal.resizeSplat(sent));
    auto like = cast<dist::FetchRowsOp>(
        *llvm::find_if(deal.getRows().getUsers(), [](Operation *user) {
          return isa<dist::FetchRowsOp>(user);
        }));
    auto fetch = dist::FetchRowsOp::create(builder, rows.getLoc(), sent, rows,
                                           deal.getRows(), like.getMeshAttr(),
                                           like.getAxesAttr(), TypeAttr());
    fetch->setAttr(dist::kInsertedByAttr,
                   builder.getStringAttr("dist-keep-dealt"));
    return fetch;
  }

  func::FuncOp function;
  llvm::DenseMap<std::pair<Value, Operation *>, Value> dealt;
  bool touched = false;
};

struct KeepDealtPass : impl::KeepDealtPassBase<KeepDealtPass> {
  using Base::Base;

  void runInOrder() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.getBody().hasOneBlock())
        Keeper(function).run();
  }
};
} // namespace
} // namespace accel::parallel
