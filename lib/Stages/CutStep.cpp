// Gives each op of an entry one chunk, and cuts what it reads of others.

#include "Passes.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace accel::stages {
#define GEN_PASS_DEF_CUTSTEPPASS
#include "lib/Stages/Passes.h.inc"

static int64_t getElements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

namespace {
/// One entry.
class StepCutter {
public:
  explicit StepCutter(func::FuncOp entry) : entry(entry) {}

  void run() {
    nn::ArgumentStates states(entry);
    for (BlockArgument argument : entry.getArguments()) {
      if (auto owner = states.findOwner(argument))
        chunks[argument] = *owner;
      else
        ofInputs.insert(argument);
      if (nn::StateOp state = states.find(argument);
          state && state.getRole() == nn::StateRole::counter)
        ofCounters.insert(argument);
    }
    for (Operation &op :
         llvm::make_early_inc_range(entry.front().without_terminator()))
      place(&op);
    Operation *exit = entry.front().getTerminator();
    OpBuilder builder(exit);
    auto module = entry->getParentOfType<ModuleOp>();
    for (OpOperand &operand : exit->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      auto output =
          entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
      if (output && isReport(module, output))
        operand.set(bring(operand.get(), 0, builder));
      auto state =
          entry.getResultAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr);
      if (!state)
        continue;
      auto owner =
          SymbolTable::lookupNearestSymbolFrom<nn::StateOp>(entry, state);
      operand.set(bring(operand.get(), owner.getChunk(), builder));
    }
  }

private:
  std::optional<int64_t> find(Value value) const {
    auto found = chunks.find(value);
    return found == chunks.end() ? std::nullopt
                                 : std::optional<int64_t>(found->second);
  }

  /// Whether all that it is made of, constants aside, is single elements. A
  /// batch of one sample has such, its inputs have others.
  bool isOfScalars(Value value) const {
    return getElements(value) == 1 || ofScalars.contains(value);
  }

  /// How much would go to another chunk: numbers of the step (a mask of
  /// dropout) are anybody's, and go before a scalar of the data, as that of one
  /// sample.
  int64_t weigh(Value value) const {
    if (ofCounters.contains(value))
      return 0;
    return isOfScalars(value) ? 1 : getElements(value);
  }

  void place(Operation *op) {
    std::optional<int64_t> chunk;
    int64_t largest = 0;
    bool made = op->getNumOperands() > 0, counted = made, readsInput = false;
    for (Value operand : op->getOperands()) {
      readsInput |= ofInputs.contains(operand) && getElements(operand) > 1;
      std::optional<int64_t> found = find(operand);
      if (!found)
        continue;
      made &= isOfScalars(operand);
      counted &= ofCounters.contains(operand);
      int64_t size = weigh(operand);
      if (!chunk || size > largest || (size == largest && *found < *chunk)) {
        chunk = found;
        largest = size;
      }
    }
    auto cut = dyn_cast<nn::CutOp>(op);
    OpBuilder builder(op);
    // The gradient of a sum is no chunk's: whoever reads it makes it. So is one
    // of which dropout leaves a part.
    if (cut && chunk != int64_t(cut.getFrom())) {
      cut.replaceAllUsesWith(bring(cut.getInput(), cut.getTo(), builder));
      cut.erase();
      return;
    }
    if (!chunk) {
      if (readsInput)
        ofInputs.insert(op->result_begin(), op->result_end());
      return;
    }
    if (!cut)
      for (OpOperand &operand : op->getOpOperands())
        operand.set(bring(operand.get(), *chunk, builder));
    for (Value result : op->getResults()) {
      chunks[result] = cut ? int64_t(cut.getTo()) : *chunk;
      if (made && !readsInput && !cut)
        ofScalars.insert(result);
      if (counted && !cut)
        ofCounters.insert(result);
    }
  }

  /// The value as the chunk `to` has it.
  Value bring(Value value, int64_t to, OpBuilder &builder) {
    std::optional<int64_t> from = find(value);
    if (!from || *from == to)
      return value;
    if (Value known = brought.lookup({value, to}))
      return known;
    Operation *op = value.getDefiningOp();
    Value made;
    if (op && getElements(value) > 1 && isOfScalars(value)) {
      IRMapping mapping;
      for (Value operand : op->getOperands())
        mapping.map(operand, bring(operand, to, builder));
      made = builder.clone(*op, mapping)
                 ->getResult(cast<OpResult>(value).getResultNumber());
      ofScalars.insert(made);
      if (ofCounters.contains(value))
        ofCounters.insert(made);
    } else {
      made = nn::CutOp::create(builder, value.getLoc(), value, *from, to);
    }
    chunks[made] = to;
    brought[{value, to}] = made;
    // Nothing goes there and back again: neither could run before the other.
    brought[{made, *from}] = value;
    return made;
  }

  func::FuncOp entry;
  llvm::DenseMap<Value, int64_t> chunks;
  llvm::DenseSet<Value> ofInputs; ///< and no chunk's
  llvm::DenseSet<Value> ofScalars;
  llvm::DenseSet<Value> ofCounters; ///< of these alone, with what no chunk has
  llvm::DenseMap<std::pair<Value, int64_t>, Value> brought;
};

struct CutStepPass : impl::CutStepPassBase<CutStepPass> {
  using Base::Base;

  void runOnOperation() override {
    bool isCut = getOperation()
                     .walk([](nn::CutOp) { return WalkResult::interrupt(); })
                     .wasInterrupted();
    if (!isCut)
      return;
    for (func::FuncOp entry : nn::getEntries(getOperation()))
      if (!entry.isExternal()) {
        StepCutter(entry).run();
        if (failed(nn::Chunks::compute(entry)))
          return signalPassFailure();
      }
  }
};
} // namespace
} // namespace accel::stages
