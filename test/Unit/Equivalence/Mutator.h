// Wrong programs, made from right ones by one change each.

#ifndef ACCEL_TEST_UNIT_VERIFY_MUTATOR_H
#define ACCEL_TEST_UNIT_VERIFY_MUTATOR_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"

#include <random>

namespace accel::test {

/// Changes one thing of a program; a seed says what.
class Mutator {
public:
  Mutator(mlir::ModuleOp module, unsigned seed);

  /// One rank's program, in phase `local`. What was changed; empty where the
  /// seed finds nothing to change. What is of micro-batches begins with "mb: ".
  std::string changeLocal();
  /// One rank's program where sequences, heads or a vocabulary are split.
  std::string changeSplits();
  /// One rank's program where ranks have experts of their own.
  std::string changeExperts();
  /// Where values of a program in phase `dist` or `decided` are said to be;
  /// what it computes as a whole stays as it is.
  std::string changePlacement();
  /// What placement has written into such a program: padding and its cutting,
  /// gathers, casts, sums and their order, rows that ranks exchange.
  std::string changeWritten();

  /// What fills padded dimensions, and checks indices into them, in a program
  /// that nothing has split yet.
  std::string changeFills();

private:
  template <class Op> llvm::SmallVector<Op> all() {
    llvm::SmallVector<Op> ops;
    module.walk([&](Op op) { ops.push_back(op); });
    return ops;
  }
  template <class T> T pick(llvm::ArrayRef<T> list) {
    return list[random() % list.size()];
  }
  /// Null where no op is wanted.
  mlir::Operation *pickOp(llvm::function_ref<bool(mlir::Operation *)> isWanted);
  dist::AxesAttr getAxes(llvm::ArrayRef<mlir::StringRef> names);
  /// Each group of ranks that the mesh has.
  llvm::SmallVector<dist::AxesAttr> getGroups();
  mlir::OpOperand *pickSum(bool inLoop);
  static mlir::Value getOld(mlir::OpOperand *sum);
  mlir::Value pickPlaced();
  bool place(mlir::Value value, llvm::ArrayRef<dist::AxesAttr> dims,
             dist::AxesAttr partial);

  bool changeFill();
  bool dropFill();
  bool moveEnd();
  bool changeCheck();
  bool changeAxes();
  bool dropReduction();
  bool doubleReduction();
  bool changeReduction();
  bool mergeGather();
  bool changeDim();
  bool dropScale();
  bool changeConstant();
  bool shiftSlice();
  bool exchangeOperand();
  bool exchangeResults();
  bool changeEdge();
  bool resetSum();
  bool doubleSum();
  bool skipSum();
  bool keepSum();
  bool changeParts();
  bool changeRuns();
  static void unroll(dist::LoopOp loop);
  bool moveSplit();
  bool changePartial();
  bool dropReshard();
  bool changePadding();
  bool changeCut();
  bool takeOther();
  bool roundValue();
  bool takeBeforeReshard();
  bool dropTerm();
  bool doubleTerm();
  bool changePermute();
  bool changeAllToAll();
  bool changeRows();
  bool reorderAxes();
  bool scaleTerm();
  bool addBeforeSum();
  bool changeRankNumber();
  bool dropMask();
  bool cutFirst();
  bool exchangeFor(mlir::OpOperand &operand);
  bool changeRowNumbers();
  bool changeSentRows();
  bool dropFetch();
  bool scaleRows();
  bool changeExpertNumbers();
  bool changeDealing();
  bool transposeExperts();
  bool sumMatrices();
  bool changeChoice();

  mlir::ModuleOp module;
  std::mt19937 random;
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_VERIFY_MUTATOR_H
