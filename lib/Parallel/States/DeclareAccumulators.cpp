// Gives what is summed over micro-batches a state to be summed in.

#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_DECLAREACCUMULATORSPASS
#include "lib/Parallel/Passes.h.inc"

static constexpr StringLiteral kMicroBatch = dist::MeshOp::kMicroBatchAxis;

static bool isOfMicroBatches(Type type) {
  auto sharding = dist::ShardingAttr::of(type);
  return sharding && (sharding.getPartial().contains(kMicroBatch) ||
                      llvm::any_of(sharding.getDims(), [](dist::AxesAttr axes) {
                        return axes.contains(kMicroBatch);
                      }));
}

namespace {
/// One entry.
class Declarer {
public:
  Declarer(func::FuncOp entry, SymbolTable &symbols)
      : entry(entry), symbols(symbols) {
    if (auto kind = nn::getEntryKind(entry);
        kind && kind != nn::EntryKind::step)
      prefix = (nn::stringifyEntryKind(*kind) + "/").str();
  }

  void run() {
    findReadInLoop();
    for (auto reshard :
         llvm::to_vector(entry.front().getOps<dist::ReshardOp>()))
      if (isSum(reshard) && !reshard.use_empty())
        declare(reshard);
  }

private:
  static bool isSum(dist::ReshardOp op) {
    auto isPartial = [](Type type) {
      return dist::ShardingAttr::of(type).getPartial().contains(kMicroBatch);
    };
    return isPartial(op.getInput().getType()) && !isPartial(op.getType());
  }

  /// What each micro-batch reads, directly or through others.
  void findReadInLoop() {
    for (Operation &op : llvm::reverse(entry.front()))
      for (Operation *user : op.getUsers())
        if (readInLoop.contains(user) ||
            llvm::any_of(user->getResultTypes(), isOfMicroBatches))
          readInLoop.insert(&op);
  }

  /// What a sum is called after: the state whose gradient it is, the output, or
  /// the count that each micro-batch needs.
  std::string nameOf(dist::ReshardOp sum) {
    if (readInLoop.contains(sum))
      return "count";
    llvm::SetVector<Operation *> work;
    work.insert(sum->user_begin(), sum->user_end());
    for (size_t next = 0; next < work.size(); ++next) {
      if (auto gradient = dyn_cast<nn::GradientOp>(work[next]))
        return gradient.getState().str();
      if (auto exit = dyn_cast<func::ReturnOp>(work[next]))
        for (OpOperand &operand : exit->getOpOperands())
          if (auto output = entry.getResultAttrOfType<StringAttr>(
                  operand.getOperandNumber(), nn::kOutputAttr);
              output && operand.get() == sum.getResult())
            return output.str();
      work.insert(work[next]->user_begin(), work[next]->user_end());
    }
    return "sum";
  }

  void declare(dist::ReshardOp sum) {
    auto term = cast<RankedTensorType>(sum.getInput().getType());
    auto from = dist::ShardingAttr::of(term);
    auto type = RankedTensorType::get(term.getShape(), term.getElementType(),
                                      dist::getAccumulatedSharding(from));
    auto whole = RankedTensorType::get(term.getShape(), term.getElementType());
    OpBuilder builder(entry);
    auto state = nn::StateOp::create(
        builder, sum.getLoc(), "accumulator/" + prefix + nameOf(sum), type,
        DenseElementsAttr::get(
            whole, Attribute(dist::getIdentity(from.getReduction(),
                                               term.getElementType()))),
        nullptr, nullptr, nullptr, nullptr, /*frozen=*/false,
        nn::StateRole::accumulator);
    symbols.insert(state);
    builder.setInsertionPoint(sum);
    auto total = dist::AccumulateOp::create(
        builder, sum.getLoc(), type, from.getReduction(), sum.getInput(),
        state.getSymName(), dist::LayoutAttr());
    sum.getInputMutable().assign(total);
    if (sum.getType() != type)
      return;
    sum.replaceAllUsesWith(total.getResult());
    sum.erase();
  }

  func::FuncOp entry;
  SymbolTable &symbols;
  std::string prefix; ///< of names; a step has none
  llvm::DenseSet<Operation *> readInLoop;
};

struct DeclareAccumulatorsPass
    : impl::DeclareAccumulatorsPassBase<DeclareAccumulatorsPass> {
  using Base::Base;

  void runInOrder() override {
    SymbolTable symbols(getOperation());
    for (auto entry : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (entry->hasAttr(nn::kEntryAttr) && !entry.isExternal())
        Declarer(entry, symbols).run();
  }
};
} // namespace
} // namespace accel::parallel
