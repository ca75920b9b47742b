// Divides backwards in two, for schedules that run the parts apart: what chunks
// before wait for, and what nobody waits for (Qi et al. 2023,
// arXiv:2401.10241).

#include "TaskHomes.h"

#include "dialects/Dist/LossChunks.h"

using namespace mlir;
using namespace accel;
using namespace accel::tasks;

/// What a chunk needs for the gradients that it sends back is their part, and
/// no other op waits in front of them. A chunk that sends none (the first one)
/// would have the whole chain of gradients through its layers in the part that
/// schedules run late; there the first part is what more than one sum needs,
/// which is that chain, and the second what a single one needs.
void TaskHomes::splitBackward() {
  llvm::DenseSet<int64_t> sending; // chunks
  for (auto cut : entry.front().getOps<nn::CutOp>())
    if (homes.lookup(cut) == Home::Backward)
      sending.insert(cut.getFrom());
  // Of what a single sum needs, the op that makes the sum's term.
  llvm::DenseMap<Operation *, Operation *> terms;
  for (Operation &op : llvm::reverse(entry.front().without_terminator())) {
    if (homes.lookup(&op) != Home::Backward)
      continue;
    bool isAwaited = false, ofSeveral = false;
    Operation *only = nullptr;
    for (Operation *user : op.getUsers()) {
      Home home = homes.lookup(user);
      isAwaited |= home == Home::BackwardInput ||
                   (isBackward(home) && isa<nn::CutOp>(user));
      Operation *term = isBackward(home) ? terms.lookup(user) : &op;
      ofSeveral |= only && term && term != only;
      only = term ? term : only;
    }
    // What is made of inputs alone is of every chunk that reads it.
    std::optional<int64_t> chunk = chunks.find(op.getResult(0));
    // A chunk of a loss is done with when its logits are, all of it.
    if (isAwaited || op.hasAttr(dist::kLossChunkAttr) ||
        (ofSeveral && chunk && !sending.contains(*chunk))) {
      homes[&op] = Home::BackwardInput;
    } else {
      homes[&op] = Home::BackwardWeight;
      terms[&op] = only;
    }
  }
  // A term that the first part makes is added there: it need not be kept.
  for (auto &[op, reduction] : reductions)
    if (reduction.adds == Home::Backward) {
      Operation *term = skipFree(reduction.op.getInput()).getDefiningOp();
      reduction.adds = homes.lookup(term) == Home::BackwardInput
                           ? Home::BackwardInput
                           : Home::BackwardWeight;
    }
}
