// Collects where dimensions are cut and joined, and drops those in whose order
// something else counts.

#include "FusedDims.h"

#include "DimClasses.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "llvm/ADT/EquivalenceClasses.h"

#include <set>

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

FusedDims::FusedDims(func::FuncOp function, const DimClasses &classes)
    : classes(classes) {
  findLinks(function);
  if (links.empty())
    return;
  llvm::DenseSet<unsigned> ofStates;
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), nn::kStateAttr))
      for (unsigned dim = 0; dim < shapeOf(argument).size(); ++dim)
        ofStates.insert(classes.find(argument, dim));
  findParts(findFixed(function), ofStates);
}

void FusedDims::findLinks(func::FuncOp function) {
  for (Operation &op : function.front()) {
    if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
      unsigned dim = concat.getDim();
      int64_t start = 0;
      for (Value part : concat.getInputs()) {
        int64_t size = shapeOf(part)[dim];
        links.push_back({&op, dim, concat.getResult(), part, start, size});
        start += size;
      }
    } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      SmallVector<unsigned> changed;
      ArrayRef<int64_t> whole = shapeOf(slice.getInput());
      for (auto [dim, size] : llvm::enumerate(slice.getSizes()))
        if (size != whole[dim])
          changed.push_back(dim);
      if (changed.size() == 1 && slice.getSteps()[changed[0]] == 1)
        links.push_back({&op, changed[0], slice.getInput(), slice.getResult(),
                         slice.getStarts()[changed[0]],
                         slice.getSizes()[changed[0]]});
    }
  }
}

/// Whether what a constant or a counter has along a dimension stands in an
/// order, which nobody changes.
static bool isOrdered(Value value, unsigned dim) {
  return isa_and_nonnull<nn::ConstantOp, nn::IotaOp>(value.getDefiningOp()) &&
         shapeOf(value)[dim] > 1 && !isEqualAlong(value, dim);
}

/// The classes that something takes apart, looks at the order of, or has from
/// outside in an order of its own.
llvm::DenseSet<unsigned> FusedDims::findFixed(func::FuncOp function) const {
  llvm::DenseSet<unsigned> fixed;
  auto fixAll = [&](Value value) {
    for (unsigned dim = 0; dim < shapeOf(value).size(); ++dim)
      if (shapeOf(value)[dim] > 1)
        fixed.insert(classes.find(value, dim));
  };
  for (BlockArgument argument : function.getArguments())
    if (!function.getArgAttr(argument.getArgNumber(), nn::kStateAttr))
      fixAll(argument);
  llvm::DenseMap<Operation *, unsigned> cut;
  for (const Link &link : links)
    cut[link.op] = link.dim + 1;
  for (Operation &op : function.front()) {
    // Iterations on matrices come to the same whatever the order of rows and
    // columns.
    if (isa<dist::ConstraintOp, func::ReturnOp, nn::NewtonSchulzOp>(op))
      continue;
    auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
    if (!shardable) {
      for (Value value : op.getOperands())
        fixAll(value);
      for (Value value : op.getResults())
        fixAll(value);
      continue;
    }
    ShardingRule rule = shardable.getShardingRule();
    llvm::SmallDenseSet<unsigned> ordered; // factors
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands))
      for (auto [dim, factors] : llvm::enumerate(dims))
        if (isOrdered(operand, dim))
          ordered.insert_range(factors);
    auto look = [&](Value value, const ShardingRule::Tensor &dims) {
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        bool isCut = cut.lookup(&op) == dim + 1;
        if (shapeOf(value)[dim] > 1 && !isCut &&
            (factors.size() != 1 || ordered.contains(factors[0]) ||
             (!rule.indexFree && !isa<nn::SliceOp, nn::ConcatOp>(op))))
          fixed.insert(classes.find(value, dim));
      }
    };
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands))
      look(operand, dims);
    for (auto [result, dims] : llvm::zip(op.getResults(), rule.results))
      look(result, dims);
  }
  return fixed;
}

void FusedDims::findParts(const llvm::DenseSet<unsigned> &fixed,
                          const llvm::DenseSet<unsigned> &ofStates) {
  auto wholeOf = [&](const Link &link) {
    return classes.find(link.whole, link.dim);
  };
  auto partOf = [&](const Link &link) {
    return classes.find(link.part, link.dim);
  };
  // A part that has parts gives the whole their borders, and gets them.
  llvm::DenseMap<unsigned, std::set<int64_t>> borders;
  llvm::DenseMap<unsigned, int64_t> sizes;
  llvm::DenseSet<unsigned> dropped;
  auto isDropped = [&](const Link &link) {
    return dropped.contains(wholeOf(link)) || dropped.contains(partOf(link)) ||
           wholeOf(link) == partOf(link);
  };
  for (bool isNew = true; isNew;) {
    borders.clear();
    for (bool changes = true; changes;) {
      changes = false;
      auto add = [&](unsigned number, int64_t size, int64_t border) {
        sizes[number] = size;
        if (border > 0 && border < size)
          changes |= borders[number].insert(border).second;
      };
      for (const Link &link : links) {
        if (isDropped(link))
          continue;
        unsigned whole = wholeOf(link), part = partOf(link);
        int64_t size = shapeOf(link.whole)[link.dim];
        add(whole, size, link.start);
        add(whole, size, link.start + link.size);
        for (int64_t border : llvm::to_vector(borders[part]))
          add(whole, size, link.start + border);
        for (int64_t border : llvm::to_vector(borders[whole]))
          add(part, link.size, border - link.start);
      }
    }
    // What hangs together serves if a state has it, and nothing its order.
    llvm::EquivalenceClasses<unsigned> together;
    for (const Link &link : links)
      if (!isDropped(link))
        together.unionSets(wholeOf(link), partOf(link));
    llvm::DenseSet<unsigned> serving;
    for (auto &[number, inner] : borders)
      if (!inner.empty() && ofStates.contains(number) &&
          !fixed.contains(number))
        serving.insert(together.getLeaderValue(number));
    isNew = false;
    for (auto &[number, inner] : borders)
      if (!inner.empty() &&
          (fixed.contains(number) ||
           !serving.contains(together.getLeaderValue(number))))
        isNew |= dropped.insert(number).second;
  }
  llvm::erase_if(links, isDropped);
  for (const Link &link : links)
    ops[link.op] = link.dim + 1;
  for (auto &[number, inner] : borders) {
    if (inner.empty() || dropped.contains(number))
      continue;
    int64_t last = 0;
    for (int64_t border : inner) {
      parts[number].push_back(border - last);
      last = border;
    }
    parts[number].push_back(sizes[number] - last);
  }
}

ArrayRef<int64_t> FusedDims::getParts(Value value, unsigned dim) const {
  auto found = parts.find(classes.find(value, dim));
  return found == parts.end() ? ArrayRef<int64_t>() : found->second;
}
