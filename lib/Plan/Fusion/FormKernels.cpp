// Outlines kernel groups: each becomes a function of nn ops, and its place in
// the entry a call. Groups that compute the same share one function.

#include "KernelGroups.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Dist/LossChunks.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/Passes.h"
#include "lib/Target/TargetTable.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Threading.h"

#include <queue>

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_FORMKERNELSPASS
#include "lib/Plan/Passes.h.inc"

/// Puts each op where it stands, or, if it reads what is made further down,
/// right behind that: what is late delays nothing else. A group is called where
/// its last member stood.
static void orderAsReady(Block &block) {
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, unsigned> number, missing;
  for (Operation &op : block.without_terminator()) {
    number[&op] = ops.size();
    ops.push_back(&op);
  }
  for (Operation *op : ops) {
    llvm::SmallPtrSet<Operation *, 8> producers;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        producers.insert(producer);
    missing[op] = producers.size();
  }
  // Those that have been come by and can be placed now, the first one first.
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  Operation *end = block.getTerminator();
  for (unsigned next = 0; next < ops.size(); ++next) {
    if (missing[ops[next]] == 0)
      ready.push(next);
    while (!ready.empty()) {
      Operation *op = ops[ready.top()];
      ready.pop();
      op->moveBefore(end);
      llvm::SmallPtrSet<Operation *, 8> users(op->user_begin(), op->user_end());
      for (Operation *user : users)
        if (user != end && --missing[user] == 0 && number[user] < next)
          ready.push(number[user]);
    }
  }
}

namespace {
/// Kernels are one if they compute the same, whatever they are called and
/// wherever they are from.
struct SameKernel : llvm::DenseMapInfo<Operation *> {
  static unsigned getHashValue(Operation *kernel) {
    auto function = cast<func::FuncOp>(kernel);
    llvm::hash_code hash = llvm::hash_combine(function.getFunctionType(),
                                              kernel->getAttr(kRowsAttr));
    for (Operation &op : function.front())
      hash = llvm::hash_combine(hash,
                                OperationEquivalence::computeHash(
                                    &op, OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::ignoreHashValue,
                                    OperationEquivalence::IgnoreLocations));
    return hash;
  }
  static bool isEqual(Operation *lhs, Operation *rhs) {
    if (lhs == rhs)
      return true;
    if (lhs == getEmptyKey() || lhs == getTombstoneKey() ||
        rhs == getEmptyKey() || rhs == getTombstoneKey())
      return false;
    auto one = cast<func::FuncOp>(lhs), other = cast<func::FuncOp>(rhs);
    return one.getFunctionType() == other.getFunctionType() &&
           one->getAttr(kRowsAttr) == other->getAttr(kRowsAttr) &&
           OperationEquivalence::isRegionEquivalentTo(
               &one.getBody(), &other.getBody(),
               OperationEquivalence::IgnoreLocations);
  }
};
using Kernels = llvm::DenseSet<Operation *, SameKernel>;

struct FormKernelsPass : impl::FormKernelsPassBase<FormKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    Kernels kernels;
    SmallVector<func::FuncOp> tasks;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if ((function->hasAttr(nn::kEntryAttr) ||
           function->hasAttr(dist::kTaskAttr)) &&
          !function.isExternal())
        tasks.push_back(function);
    FailureOr<const Target *> chosen = findTarget(getOperation(), target);
    if (failed(chosen))
      return signalPassFailure();
    for (func::FuncOp task : tasks)
      if (!task.getBody().hasOneBlock()) {
        task.emitOpError() << "expected one block, found "
                           << task.getBody().getBlocks().size();
        return signalPassFailure();
      }
    // Groups take most of the time, and those of a task are its own.
    std::vector<std::optional<KernelGroups>> groups(tasks.size());
    parallelFor(&getContext(), 0, tasks.size(), [&](size_t index) {
      groups[index].emplace(tasks[index].getBody().front(), **chosen);
    });
    for (auto [task, analysis] : llvm::zip_equal(tasks, groups))
      outlineGroups(task.getBody().front(), *analysis, symbols, kernels);
  }

  void outlineGroups(Block &block, KernelGroups &analysis, SymbolTable &symbols,
                     Kernels &kernels) {
    std::vector<KernelGroup> groups = analysis.take();
    std::vector<SmallVector<Value>> outputs;
    std::vector<KernelBody> bodies;
    for (const KernelGroup &group : groups) {
      outputs.push_back(analysis.getOutputs(group));
      bodies.push_back(collectBody(analysis, group));
    }
    // Kernels are numbered in program order; groups were found last to first.
    SmallVector<std::pair<Value, Value>> replacements;
    for (size_t index = groups.size(); index-- > 0;)
      outline(groups[index], bodies[index], outputs[index], replacements,
              symbols, kernels);
    for (auto [output, result] : replacements)
      output.replaceAllUsesWith(result);
    for (const KernelGroup &group : groups)
      for (Operation *member : group.members)
        member->dropAllReferences();
    // Members and what only they read are in the kernels now.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    orderAsReady(block);
  }

  struct KernelBody {
    SmallVector<Operation *> ops; // in program order, cloned ones included
    SetVector<Value> inputs;
  };

  KernelBody collectBody(const KernelGroups &analysis,
                         const KernelGroup &group) {
    KernelBody body;
    SetVector<Operation *> ops(group.members.begin(), group.members.end());
    for (size_t next = 0; next < ops.size(); ++next)
      for (Value operand : ops[next]->getOperands())
        if (Operation *op = operand.getDefiningOp())
          if (analysis.isCloned(op))
            ops.insert(op);
    body.ops = llvm::to_vector(ops);
    llvm::sort(body.ops,
               [](auto *lhs, auto *rhs) { return lhs->isBeforeInBlock(rhs); });
    for (Operation *op : body.ops)
      for (Value operand : op->getOperands())
        if (!operand.getDefiningOp() || !ops.contains(operand.getDefiningOp()))
          body.inputs.insert(operand);
    return body;
  }

  void outline(const KernelGroup &group, const KernelBody &body,
               ArrayRef<Value> outputs,
               SmallVectorImpl<std::pair<Value, Value>> &replacements,
               SymbolTable &symbols, Kernels &kernels) {
    if (outputs.empty())
      return; // nothing reads it
    SmallVector<Location> locations;
    for (Operation *op : body.ops)
      if (group.members.contains(op))
        locations.push_back(op->getLoc());
    Location location = FusedLoc::get(&getContext(), locations);

    Operation *last = *std::max_element(
        group.members.begin(), group.members.end(),
        [](auto *lhs, auto *rhs) { return lhs->isBeforeInBlock(rhs); });
    OpBuilder builder(last);
    func::FuncOp kernel = createKernel(group, body, outputs, location);
    auto [known, isNew] = kernels.insert(kernel);
    if (isNew) {
      kernel.setName("kernel_" + std::to_string(kernels.size() - 1));
      symbols.insert(kernel);
    } else {
      kernel->erase();
    }
    auto call =
        func::CallOp::create(builder, location, cast<func::FuncOp>(*known),
                             body.inputs.getArrayRef());
    for (auto [output, result] : llvm::zip_equal(outputs, call.getResults()))
      replacements.push_back({output, result});
  }

  func::FuncOp createKernel(const KernelGroup &group, const KernelBody &body,
                            ArrayRef<Value> outputs, Location location) {
    OpBuilder builder(&getContext());
    SmallVector<Type> inputTypes, outputTypes;
    for (Value input : body.inputs)
      inputTypes.push_back(input.getType());
    for (Value output : outputs)
      outputTypes.push_back(output.getType());
    auto kernel =
        func::FuncOp::create(builder, location, "kernel",
                             builder.getFunctionType(inputTypes, outputTypes));
    kernel.setPrivate();
    kernel->setAttr(kKernelAttr, builder.getUnitAttr());
    kernel->setAttr(kRowsAttr, builder.getI64IntegerAttr(group.rows));
    Block *block = kernel.addEntryBlock();
    builder.setInsertionPointToStart(block);
    IRMapping mapping;
    mapping.map(body.inputs.getArrayRef(), block->getArguments());
    for (Operation *op : body.ops) {
      Operation *clone = builder.clone(*op, mapping);
      // Which of many an op was does not change what it computes: the kernels
      // of all blocks of a model are one.
      for (StringRef origin :
           {dist::kInstanceAttr, dist::kUnitAttr, dist::kInsertedByAttr,
            dist::kRecomputedAttr, dist::kLossChunkAttr})
        clone->removeDiscardableAttr(origin);
    }
    SmallVector<Value> results;
    for (Value output : outputs)
      results.push_back(mapping.lookup(output));
    func::ReturnOp::create(builder, location, results);
    return kernel;
  }
};
} // namespace
} // namespace accel::plan
