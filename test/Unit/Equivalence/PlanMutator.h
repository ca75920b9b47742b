// Wrong plans, made from right ones by one change each.

#ifndef ACCEL_TEST_UNIT_VERIFY_PLANMUTATOR_H
#define ACCEL_TEST_UNIT_VERIFY_PLANMUTATOR_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <random>

namespace accel::test {

/// Changes one thing of a module in phase `plan`; a seed says what.
class PlanMutator {
public:
  PlanMutator(mlir::ModuleOp module, unsigned seed);

  /// What was changed; empty where the seed finds nothing to change.
  std::string change();

private:
  /// A view that a command names.
  struct Use {
    mlir::Operation *op;
    mlir::StringAttr attribute;
    int index; ///< in a list; -1: the attribute itself
    plan::ViewAttr view;
  };

  template <class Op> llvm::SmallVector<Op> all() {
    llvm::SmallVector<Op> ops;
    module.walk([&](Op op) { ops.push_back(op); });
    return ops;
  }
  template <class T> T pick(llvm::ArrayRef<T> list) {
    return list[random() % list.size()];
  }
  bool flip() { return random() % 2; }
  llvm::SmallVector<mlir::Operation *> getCommands();
  llvm::SmallVector<mlir::Operation *> getKernelOps();
  llvm::SmallVector<Use> getUses(mlir::Operation *op);
  llvm::SmallVector<Use> getUses();
  /// False where there is no view.
  bool setView(const Use &use, plan::ViewAttr view);
  llvm::SmallVector<mlir::StringAttr> getAxes();

  bool moveView();
  bool turnView();
  bool changeRankStride();
  bool exchangeView();
  bool swapOperands();
  bool mergeBuffers();
  bool moveBuffer();
  bool overlapCopy();
  bool writeInPlace();
  bool reorderBucket();
  bool changeCollective();
  bool dropBias();
  bool changeSum();
  bool changeProduct();
  bool dropSync();
  bool dropCommand();
  bool repeatCommand();
  bool moveCommand();
  bool swapKernels();
  bool changeRuns();
  bool shiftTurn();
  bool changeCopies();
  bool changeConstant();
  bool changeAttribute();
  bool changeOp();
  bool addCast();
  bool changeRead();
  bool changePart();
  bool releaseEarly();
  bool changeMessage();
  bool changeMessageRun();

  mlir::ModuleOp module;
  unsigned seed;
  std::mt19937 random;
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_VERIFY_PLANMUTATOR_H
