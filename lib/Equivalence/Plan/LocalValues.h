// What one rank's program in phase `local` gives: the value of every output, of
// every state, and of what other stages take.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_LOCALVALUES_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_LOCALVALUES_H

#include "Meaning.h"
#include "Renaming.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace accel::equivalence {

/// Runs the tasks of an entry on one stage as its schedule says, on value
/// numbers: section by section, since the plan's turns are held against the
/// schedule's. What comes along an edge from another stage is given: that it is
/// what the task there makes is that stage's proof.
class LocalValues {
public:
  /// What runs once, or turn after turn.
  struct Section {
    int64_t trips = 0; ///< 0: it is no loop
    llvm::SmallVector<std::pair<mlir::StringAttr, int64_t>> runs; ///< offsets
    mlir::Operation *op = nullptr;
  };
  struct Output {
    TermId term;
    PieceKey piece;
    mlir::Operation *task;
    bool written = false; ///< by the plan
  };
  struct State {
    TermId term; ///< now
    PieceKey piece;
    mlir::RankedTensorType type;
    bool changes = false;
  };

  LocalValues(mlir::func::FuncOp entry, int64_t stage, Meaning &meaning)
      : module(entry->getParentOfType<mlir::ModuleOp>()), entry(entry),
        stage(stage), meaning(meaning) {}
  /// Finds the entry's sections, and the states that their tasks name.
  mlir::LogicalResult read();
  llvm::ArrayRef<Section> getSections() const { return sections; }
  /// Runs the turns of loops one by one whose tasks exchange messages with
  /// other stages.
  void unrollExchanging();
  /// States that a section's tasks write.
  llvm::SetVector<mlir::StringAttr> getWritten(const Section &section);
  /// Runs a section; of a loop one turn, for all.
  mlir::LogicalResult run(const Section &section);
  /// Whether a task of any entry writes the state.
  bool isChanging(mlir::StringAttr state) const {
    return changing.contains(state);
  }
  /// What a state holds when a turn begins, from here on.
  void beginTurn(mlir::StringAttr state);
  /// What an edge, by its number in the schedule, carries on the micro-batch at
  /// hand from a stage to another one, of which `sends` says which is this one.
  /// An error at `op` unless it goes `delta` stages on, or if it has not been
  /// given yet.
  mlir::FailureOr<TermId> getMessage(int64_t edge, bool sends, int64_t delta,
                                     mlir::Operation *op);

  /// By name, and by micro-batch: its turn and number.
  using OutputKey =
      std::pair<mlir::StringAttr, std::pair<mlir::StringAttr, int64_t>>;
  llvm::MapVector<OutputKey, Output> outputs;
  static OutputKey getKey(mlir::StringAttr name, MicroBatch microBatch) {
    return {name, {microBatch.turn, microBatch.number}};
  }
  llvm::MapVector<mlir::StringAttr, State> states;

private:
  mlir::LogicalResult runTask(mlir::func::FuncOp task);
  mlir::FailureOr<TermId> getArgument(mlir::func::FuncOp task, unsigned number);
  mlir::LogicalResult takeResult(mlir::func::FuncOp task, unsigned number,
                                 TermId term);
  mlir::LogicalResult declareStates(mlir::func::FuncOp task);
  mlir::LogicalResult declareState(mlir::func::FuncOp task,
                                   mlir::FlatSymbolRefAttr name,
                                   mlir::Attribute layout, mlir::Type type);
  mlir::LogicalResult readSchedule(dist::ScheduleOp schedule);

  using End = std::pair<mlir::StringAttr, unsigned>;
  int64_t getStage(End end) const;
  std::optional<TermId> getSource(End source, bool targetRepeats);
  TermId getReceived(End target, End source);

  mlir::ModuleOp module;
  mlir::func::FuncOp entry;
  int64_t stage;
  Meaning &meaning;
  std::vector<Section> sections;
  llvm::DenseMap<mlir::StringAttr, mlir::func::FuncOp> tasks;
  llvm::DenseSet<mlir::StringAttr> changing; ///< states that tasks write
  llvm::DenseMap<End, End> edges;            ///< from an argument to its result
  llvm::SmallVector<End> targets;            ///< of edges, by their numbers
  /// By tasks: on the micro-batches of their runs, and on any of them once a
  /// run has asked for one that ran in another turn.
  struct Given {
    std::map<MicroBatch, TermId> values;
    std::optional<TermId> any;
  };
  std::optional<TermId> getGiven(Given &values);
  TermId rename(TermId term, MicroBatch from, MicroBatch to);
  llvm::DenseMap<End, Given> given;
  std::map<std::pair<MicroBatch, MicroBatch>, Renaming> renamings;
  llvm::DenseMap<End, TermId> lastGiven;
  llvm::DenseSet<mlir::StringAttr> repeated; ///< tasks that run more than once
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_LOCALVALUES_H
