// The first proof of one entry: what its tasks are given, in the order in which
// they run, and what they must leave. Private to the library.

#ifndef ACCEL_LIB_EQUIVALENCE_VERIFIER_H
#define ACCEL_LIB_EQUIVALENCE_VERIFIER_H

#include "Follow.h"
#include "RunOrder.h"
#include "dialects/NN/Entry.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace accel::equivalence {

/// A sum over micro-batches.
struct Accumulator {
  nn::StateOp state;
  /// What each micro-batch adds: terms, as they may be read.
  std::vector<std::vector<Piece>> terms;
  dist::Reduction combines = dist::Reduction::sum; ///< how
  mlir::func::FuncOp adds;                         ///< the task that does
  bool reset = false;
};

class Verifier {
public:
  Verifier(mlir::func::FuncOp whole, mlir::ModuleOp local,
           mlir::func::FuncOp entry, dist::ScheduleOp schedule,
           dist::MeshOp mesh, llvm::StringMap<dist::LayoutAttr> &stateLayouts)
      : logical(whole), local(local), symbols(local), entry(entry),
        schedule(schedule), order(schedule), follower(logical, mesh),
        microBatches(
            mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1)),
        microBatch(mlir::StringAttr::get(local.getContext(),
                                         dist::MeshOp::kMicroBatchAxis)),
        stateLayouts(stateLayouts) {}
  mlir::LogicalResult run();

private:
  void readStates();
  mlir::LogicalResult readEntry();
  mlir::LogicalResult checkRuns();
  mlir::LogicalResult checkOwners();
  mlir::LogicalResult checkEdges();
  mlir::LogicalResult checkWrites();
  mlir::LogicalResult checkAllGiven();
  mlir::LogicalResult checkLayout(mlir::Location loc, llvm::StringRef kind,
                                  llvm::StringRef name,
                                  dist::LayoutAttr layout);
  mlir::LogicalResult checkPadding(mlir::Location loc, llvm::StringRef kind,
                                   llvm::StringRef name,
                                   dist::LayoutAttr layout);
  mlir::LogicalResult bindArgument(mlir::func::FuncOp task, unsigned number);
  mlir::FailureOr<Piece> getPiece(mlir::Location loc, llvm::StringRef kind,
                                  llvm::StringRef name, mlir::Value wanted,
                                  dist::LayoutAttr layout);
  mlir::FailureOr<Piece> getTerm(mlir::Location loc, llvm::StringRef name,
                                 mlir::Value wanted, dist::LayoutAttr layout);
  mlir::LogicalResult bindNamed(mlir::func::FuncOp task, unsigned number,
                                llvm::StringRef kind, llvm::StringRef name,
                                mlir::Value wanted);
  mlir::LogicalResult bindEdge(mlir::func::FuncOp task, unsigned number);
  mlir::LogicalResult readSum(mlir::func::FuncOp task, unsigned number,
                              Accumulator &accumulator);
  mlir::LogicalResult verifyResult(mlir::func::FuncOp task,
                                   mlir::OpOperand &operand);
  mlir::LogicalResult verifySum(mlir::func::FuncOp task,
                                mlir::OpOperand &operand,
                                Accumulator &accumulator);
  mlir::LogicalResult verifyNamed(mlir::func::FuncOp task,
                                  mlir::OpOperand &operand,
                                  llvm::StringRef kind, llvm::StringRef name,
                                  mlir::Value wanted);

  /// Whether it runs for each micro-batch, where there are several.
  bool isInLoop(mlir::func::FuncOp task) {
    return order.isRepeated(task.getSymNameAttr());
  }
  bool varies(const Piece &piece);
  bool varies(const Known &what);
  mlir::StringAttr getState(mlir::func::FuncOp task, unsigned argument) {
    auto state = task.getArgAttrOfType<mlir::FlatSymbolRefAttr>(argument,
                                                                nn::kStateAttr);
    return state ? state.getAttr() : mlir::StringAttr();
  }
  mlir::StringAttr getNewState(mlir::func::FuncOp task, unsigned result) {
    auto state = task.getResultAttrOfType<mlir::FlatSymbolRefAttr>(
        result, nn::kStateAttr);
    return state ? state.getAttr() : mlir::StringAttr();
  }

  Logical logical;
  mlir::ModuleOp local;
  mlir::SymbolTable symbols; ///< of `local`
  mlir::func::FuncOp entry;
  dist::ScheduleOp schedule;
  RunOrder order;
  Follower follower;
  int64_t microBatches;
  mlir::StringAttr microBatch;
  std::vector<mlir::func::FuncOp> runs; ///< in their order, of a loop two turns
  /// By task and argument.
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, dist::EdgeOp> edges;
  llvm::MapVector<mlir::StringAttr, Accumulator> accumulators;
  llvm::StringSet<> residuals;                         ///< names of states
  llvm::StringMap<dist::LayoutAttr> layouts;           ///< of "input 'x'", …
  llvm::StringMap<dist::LayoutAttr> &stateLayouts;     ///< of all entries
  llvm::StringMap<llvm::ArrayRef<int64_t>> heldShapes; ///< of states
  llvm::StringSet<> given; ///< "output 'x'", … that a task returns
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_VERIFIER_H
