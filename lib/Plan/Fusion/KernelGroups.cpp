// Grows kernel groups from consumers to producers. A group is legal for a
// number of rows if every reduction stays within a row, every result can be cut
// into that many, and no expensive element is computed for more than one row.

#include "KernelGroups.h"

#include "dialects/Dist/LossChunks.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Plan/Lower/GemmAccumulate.h"
#include "lib/Plan/Lower/GemmBias.h"
#include "lib/Plan/Lower/GemmWiden.h"
#include "lib/Plan/Lower/JoinedConcat.h"
#include "lib/Plan/Lower/Views.h"
#include "lib/Plan/Rows.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

bool KernelGroups::isWrittenInPlace(Operation *op) const {
  if (op->getNumOperands() != 1)
    return false;
  std::optional<PermutingReader> reader = getPermutingReader(op->getOperand(0));
  return reader && reader->op == op;
}

/// Whether each kernel that reads `op`'s result computes it for itself: it is
/// cheap and made of one tensor that lies in memory anyway, as the square of a
/// gradient is, which its norm and the optimizer's second moment both need.
bool KernelGroups::isRemade(Operation *op) const {
  auto source = dyn_cast<KernelSourceOpInterface>(op);
  if (!source || source.getKernelRole() != KernelRole::Elementwise ||
      !source.isCheap() || op->hasOneUse() || op->getNumOperands() == 0)
    return false;
  auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
  return argument && argument.getType() == op->getResult(0).getType() &&
         llvm::all_equal(op->getOperands()) &&
         llvm::all_of(op->getUsers(),
                      [&](Operation *user) { return isAnchor(user); });
}

bool KernelGroups::isCloned(Operation *op) const {
  if (isRemade(op))
    return true;
  auto source = dyn_cast<KernelSourceOpInterface>(op);
  if (!source || source.getKernelRole() != KernelRole::Movement)
    return false;
  DenseElementsAttr value;
  if (matchPattern(op, m_Constant(&value)))
    return value.isSplat(); // tables are arguments
  if (op->hasTrait<OpTrait::ConstantLike>())
    return false;
  if (op->getNumOperands() == 0) {
    // What no kernel reads has to lie in memory.
    SetVector<Operation *> all;
    collectReaders(op->getResult(0), all);
    return llvm::all_of(all, [&](Operation *each) { return isAnchor(each); });
  }
  return isView(op) && !isWrittenInPlace(op);
}

bool KernelGroups::isEpilogue(Operation *op) const {
  if (matchGemmBias(op, target) || matchGemmWiden(op, target))
    return true;
  // Adds to a state or to other products, or casts for that.
  if (isa<nn::CastOp>(op) && op->hasOneUse())
    op = *op->user_begin();
  return matchGemmAccumulate(op, target).has_value();
}

bool KernelGroups::isAnchor(Operation *op) const {
  return isa<KernelSourceOpInterface>(op) && !isCloned(op) &&
         !op->hasTrait<OpTrait::ConstantLike>() && !isWrittenInPlace(op) &&
         !isEpilogue(op) && getConcatPieces(op).empty();
}

void KernelGroups::collectReaders(Value value,
                                  SetVector<Operation *> &found) const {
  llvm::SmallSetVector<Value, 8> values; // it, and cloned ops' of it
  values.insert(value);
  for (size_t next = 0; next < values.size(); ++next)
    for (Operation *user : values[next].getUsers()) {
      if (isCloned(user))
        values.insert(user->getResult(0));
      else
        found.insert(user);
    }
}

/// Whether `op` would be cut into far fewer rows in a group than alone: the
/// norm of a large gradient is summed by rows first, even if all that reads the
/// sums is one number.
static bool losesRows(Operation *op, const KernelGroup &group,
                      const KernelGroup &alone, const FusionLimits &limits) {
  auto source = cast<KernelSourceOpInterface>(op);
  return source.getKernelRole() == KernelRole::RowReduction &&
         group.rows < limits.fewRows && alone.rows >= 4 * limits.fewRows &&
         ShapedType::getNumElements(shapeOf(op->getOperand(0))) >=
             limits.worthSharing;
}

KernelGroups::KernelGroups(Block &block, const Target &target)
    : target(target), limits(target.getFusionLimits()) {
  for (Operation &op : block) {
    numbers[&op] = numbers.size();
    for (Value result : op.getResults())
      collectReaders(result, readers[&op]);
  }
  // All of a group runs at once: what reads any of it comes after all of it.
  std::vector<SmallVector<unsigned, 4>> edges(numbers.size());
  for (Operation &op : block)
    for (Operation *reader : readers[&op])
      edges[numbers[&op]].push_back(numbers[reader]);
  GroupOrder order(std::move(edges));

  for (Operation &op : llvm::reverse(block)) {
    if (!isAnchor(&op))
      continue;
    // Readers in program order, so that the first possible group wins.
    SmallVector<Operation *> candidates(readers[&op].begin(),
                                        readers[&op].end());
    llvm::sort(candidates,
               [](auto *lhs, auto *rhs) { return lhs->isBeforeInBlock(rhs); });
    KernelGroup alone;
    alone.members.insert(&op);
    chooseRows(alone);
    bool joined = false;
    for (Operation *reader : candidates) {
      auto found = groupOf.find(reader);
      if (found == groupOf.end())
        continue;
      KernelGroup larger = groups[found->second];
      if (larger.members.size() >= limits.mostMembers)
        continue;
      larger.members.insert(&op);
      // Fewer rows would mean less to do at once.
      if (!chooseRows(larger) || larger.rows < groups[found->second].rows ||
          losesRows(&op, larger, alone, limits) ||
          !order.join(numbers[&op], numbers[reader]))
        continue;
      unsigned index = found->second;
      groups[index] = std::move(larger);
      groupOf[&op] = index;
      joined = true;
      break;
    }
    if (joined)
      continue;
    groupOf[&op] = groups.size();
    groups.push_back(std::move(alone));
  }
  mergeReaders(order);
}

/// What a group writes and another reads row by row is read while it is there:
/// of an optimizer's update, the moments that are kept unless the step is
/// skipped.
void KernelGroups::mergeReaders(GroupOrder &order) {
  for (unsigned index = groups.size(); index-- > 0;) {
    SetVector<unsigned> others;
    for (Operation *member : groups[index].members)
      for (Operation *reader : readers[member])
        if (auto found = groupOf.find(reader);
            found != groupOf.end() && found->second != index)
          others.insert(found->second);
    for (unsigned other : others) {
      const KernelGroup &mine = groups[index], &theirs = groups[other];
      if (mine.rows != theirs.rows ||
          mine.members.size() + theirs.members.size() > limits.mostMembers)
        continue;
      SmallVector<Operation *> members(mine.members.begin(),
                                       mine.members.end());
      members.append(theirs.members.begin(), theirs.members.end());
      llvm::sort(members, [](auto *lhs, auto *rhs) {
        return rhs->isBeforeInBlock(lhs);
      });
      KernelGroup merged;
      merged.members.insert(members.begin(), members.end());
      if (!chooseRows(merged) || merged.rows != mine.rows ||
          !order.join(numbers[mine.members.front()],
                      numbers[theirs.members.front()]))
        continue;
      for (Operation *member : theirs.members)
        groupOf[member] = index;
      groups[other].members.clear();
      groups[index] = std::move(merged);
    }
  }
  llvm::erase_if(
      groups, [](const KernelGroup &group) { return group.members.empty(); });
}

std::vector<KernelGroup> KernelGroups::take() { return groups; }

SmallVector<Value> KernelGroups::getOutputs(const KernelGroup &group) const {
  SmallVector<Value> outputs;
  for (Operation *member : llvm::reverse(group.members))
    if (llvm::any_of(readers.find(member)->second, [&](Operation *reader) {
          return !group.members.contains(reader);
        }))
      llvm::append_range(outputs, member->getResults());
  return outputs;
}

/// Numbers of rows worth trying, the best first: the products of the first
/// dimensions of the widest result, all but the last dimension first unless
/// something is reduced (a reduction leaves no row dimension out).
static SmallVector<int64_t> getRowCandidates(const KernelGroup &group,
                                             ValueRange outputs) {
  bool reduces = llvm::any_of(group.members, [](Operation *op) {
    return cast<KernelSourceOpInterface>(op).getKernelRole() ==
           KernelRole::RowReduction;
  });
  SmallVector<int64_t> candidates;
  for (Value output : outputs) {
    SmallVector<int64_t> products{1};
    for (int64_t size : shapeOf(output))
      products.push_back(products.back() * size);
    if (!reduces && products.size() > 1)
      products.pop_back();
    for (int64_t product : llvm::reverse(products))
      if (product > 0 && !llvm::is_contained(candidates, product))
        candidates.push_back(product);
  }
  llvm::sort(candidates, std::greater<int64_t>());
  return candidates;
}

bool KernelGroups::chooseRows(KernelGroup &group) const {
  // A kernel of several chunks of a loss would keep the logits of all.
  auto getChunk = [](Operation *op) {
    return op->getAttr(dist::kLossChunkAttr);
  };
  if (!llvm::all_equal(llvm::map_range(group.members, getChunk)))
    return false;
  SmallVector<Value> outputs = getOutputs(group);
  if (outputs.empty()) // dead: any reader would have made it an output
    outputs.append(group.members.back()->result_begin(),
                   group.members.back()->result_end());
  for (int64_t rows : getRowCandidates(group, outputs)) {
    if (!isLegal(group, outputs, rows))
      continue;
    group.rows = rows;
    return true;
  }
  return false;
}

/// Whether the code that computes `ops`, the last one first, has at most `most`
/// elements: what moves elements asks for others of what it reads, and two of
/// `x + transpose(x)` are four of what `x` is such a sum of.
static bool isShort(ArrayRef<Operation *> ops, size_t most) {
  llvm::DenseMap<Operation *, llvm::SmallSetVector<uint64_t, 2>> indices;
  size_t elements = 0;
  for (Operation *op : ops) {
    auto &own = indices[op];
    if (own.empty()) // a result
      own.insert(hash_value(shapeOf(op->getResult(0))));
    // Of many operands each is asked for its element, and for its place.
    size_t operands = op->getNumOperands();
    elements += own.size() * std::max<size_t>(1, operands * operands / 16);
    if (elements > most)
      return false;
    bool isElementwise = cast<KernelSourceOpInterface>(op).getKernelRole() ==
                         KernelRole::Elementwise;
    SmallVector<uint64_t> wanted = own.takeVector();
    for (OpOperand &operand : op->getOpOperands())
      if (Operation *maker = operand.get().getDefiningOp())
        for (uint64_t index : wanted)
          indices[maker].insert(
              isElementwise ? index
                            : uint64_t(llvm::hash_combine(
                                  index, op, operand.getOperandNumber())));
  }
  return true;
}

bool KernelGroups::isLegal(const KernelGroup &group, ValueRange outputs,
                           int64_t rows) const {
  for (Value output : outputs)
    if (!countRowDims(shapeOf(output), rows))
      return false;
  // From the results backwards: which values are read for their own row only.
  // A value of the group that is not listed yet is a result, and is.
  DenseSet<Value> crossing;
  SmallVector<Operation *> order(group.members.begin(), group.members.end());
  DenseSet<Operation *> seen(order.begin(), order.end());
  for (size_t next = 0; next < order.size(); ++next)
    for (Value operand : order[next]->getOperands())
      if (Operation *op = operand.getDefiningOp())
        if (isCloned(op) && seen.insert(op).second)
          order.push_back(op);
  llvm::sort(order,
             [](auto *lhs, auto *rhs) { return rhs->isBeforeInBlock(lhs); });
  if (group.members.size() > 1 && !isShort(order, limits.mostElements))
    return false;
  for (Operation *op : order) {
    auto source = cast<KernelSourceOpInterface>(op);
    bool crosses = llvm::any_of(op->getResults(), [&](Value value) {
      return crossing.contains(value);
    });
    bool reduces = source.getKernelRole() == KernelRole::RowReduction;
    if (crosses && (reduces || !source.isCheap()))
      return false;
    bool columns = reduces && !source.isRowLocal(0, rows);
    if (columns && !source.reducesColumns(rows))
      return false;
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (crosses || columns || !source.isRowLocal(index, rows))
        crossing.insert(operand);
  }
  return true;
}
