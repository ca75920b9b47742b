// Clones what the backward reads of a segment, back to what the segment reads,
// in front of the first op that wants it.

#include "Segments.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
class Recomputer {
public:
  explicit Recomputer(func::FuncOp step) : step(step), ops(step) {
    findChoices();
  }

  void run() {
    struct Marked {
      SmallVector<Operation *> members;
      bool discards = false;
    };
    llvm::MapVector<StringAttr, Marked> segments;
    for (Operation &op : step.front())
      if (auto name = op.getAttrOfType<StringAttr>(dist::kRecomputeAttr)) {
        Marked &segment = segments[name];
        segment.discards |= op.hasAttr(dist::kDiscardAttr);
        op.removeAttr(dist::kRecomputeAttr);
        op.removeAttr(dist::kDiscardAttr);
        if (ops.forward.contains(&op) && isRepeatable(&op))
          segment.members.push_back(&op);
      }
    // As the backward goes through them, so that a segment finds what the
    // clones of those behind it read.
    for (auto &[name, segment] : llvm::reverse(segments))
      recompute(name, segment.members, segment.discards);
    if (isOutOfOrder())
      sortTopologically(&step.front());
  }

private:
  /// Whether a clone stands before what it reads: text may come in any order.
  bool isOutOfOrder() const {
    llvm::DenseSet<Operation *> seen;
    for (Operation &op : step.front()) {
      if (clones.contains(&op) &&
          llvm::any_of(op.getOperands(), [&](Value one) {
            Operation *made = one.getDefiningOp();
            return made && !seen.contains(made);
          }))
        return true;
      seen.insert(&op);
    }
    return false;
  }

  /// The ops that say which rows, experts or places are chosen by numbers that
  /// are rounded: a clone that is rounded otherwise would choose others. What
  /// is drawn by coordinates is made of integers alone, and is exact.
  void findChoices() {
    llvm::DenseSet<Value> rounded;
    auto isFloat = [](Value value) {
      return isa<FloatType>(getElementTypeOrSelf(value));
    };
    for (BlockArgument argument : step.getArguments())
      if (isFloat(argument))
        rounded.insert(argument);
    for (Operation &op : step.front()) {
      if (llvm::none_of(op.getOperands(), [&](Value operand) {
            return rounded.contains(operand);
          }))
        continue;
      // Of a choice the numbers are kept as well.
      if (llvm::all_of(op.getResults(), isFloat))
        rounded.insert(op.result_begin(), op.result_end());
      else
        choices.insert(&op);
    }
  }

  bool isBackward(Operation *op) const {
    return ops.backward.contains(op) || clones.contains(op);
  }

  /// Whether a value is kept: it tells of choices, or the forward behind the
  /// segment reads it, unless that is made again as well.
  bool isKept(Value value, const llvm::DenseSet<Operation *> &members,
              bool discards) const {
    return choices.contains(value.getDefiningOp()) ||
           (!discards && llvm::any_of(value.getUsers(), [&](Operation *user) {
             return !members.contains(user) && !isBackward(user);
           }));
  }

  void recompute(StringAttr name, ArrayRef<Operation *> list, bool discards) {
    llvm::DenseSet<Operation *> members(list.begin(), list.end());
    llvm::DenseSet<Value> kept;
    SmallVector<Value> wanted;
    Operation *first = nullptr; // that wants any
    for (Operation *op : list)
      for (Value value : op->getResults()) {
        if (isKept(value, members, discards)) {
          kept.insert(value);
          continue;
        }
        bool isWanted = false;
        for (Operation *user : value.getUsers())
          if (isBackward(user)) {
            isWanted = true;
            if (!first || user->isBeforeInBlock(first))
              first = user;
          }
        if (isWanted)
          wanted.push_back(value);
      }
    if (wanted.empty())
      return;
    llvm::DenseSet<Operation *> again;
    SmallVector<Value> work(wanted);
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (op && members.contains(op) && !kept.contains(value) &&
          again.insert(op).second)
        llvm::append_range(work, op->getOperands());
    }
    OpBuilder builder(first);
    IRMapping mapping;
    for (Operation *op : list) {
      if (!again.contains(op))
        continue;
      Operation *clone = builder.clone(*op, mapping);
      clone->setAttr(dist::kRecomputedAttr, name);
      clones.insert(clone);
      // What is kept is read where it was made.
      for (Value value : op->getResults())
        if (kept.contains(value))
          mapping.map(value, value);
    }
    for (Value value : wanted)
      value.replaceUsesWithIf(mapping.lookup(value), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return isBackward(user) && user->getAttr(dist::kRecomputedAttr) != name;
      });
  }

  mutable func::FuncOp step;
  GradientOps ops;
  llvm::DenseSet<Operation *> clones, choices;
};

struct RecomputePass : impl::RecomputePassBase<RecomputePass> {
  using Base::Base;

  void runInOrder() override {
    func::FuncOp step = nn::findEntry(getOperation(), nn::EntryKind::step);
    if (!step)
      return;
    // What nothing reads would keep what it reads.
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(step.front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    Recomputer(step).run();
  }
};
} // namespace
} // namespace accel::parallel
