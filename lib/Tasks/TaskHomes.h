// Which task each op of a step belongs to.

#ifndef ACCEL_LIB_TASKS_TASKHOMES_H
#define ACCEL_LIB_TASKS_TASKHOMES_H

#include "dialects/Dist/Dist.h"
#include "dialects/NN/Chunks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include <set>

namespace accel::tasks {

/// What the tasks of a step are for, in the order in which they run. A backward
/// is whole, or it is in two parts.
enum class Home {
  Count,
  Prepare,
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
  Update
};
inline constexpr int kHomes = 7;

/// Whether it is a backward or a part of one.
inline bool isBackward(Home home) {
  return home == Home::Backward || home == Home::BackwardInput ||
         home == Home::BackwardWeight;
}

/// Which task: one for each purpose and chunk. What runs once has rounds: a
/// round waits for what other chunks make in earlier ones.
struct Place {
  Home home;
  int64_t chunk = 0;
  int64_t round = 0;

  bool operator==(const Place &other) const {
    return home == other.home && chunk == other.chunk && round == other.round;
  }
  /// In the order in which they run, but for those of several micro-batches.
  bool operator<(const Place &other) const {
    return std::tuple(home, round, chunk) <
           std::tuple(other.home, other.round, other.chunk);
  }
};

/// What the terms of micro-batches are combined to.
struct Reduction {
  mutable dist::AccumulateOp op; // op handles are pointers
  Home adds;                     ///< the task that adds a micro-batch's term
  Home reads;                    ///< the first task that reads the sum
};

/// The homes of the ops of an entry in one block, of local shapes. Ops that are
/// free (isFree) are computed wherever they are read, whatever their home.
class TaskHomes {
public:
  /// Emits a located error and fails where the step cannot be run in
  /// micro-batches, or its chunks are not told apart.
  static mlir::FailureOr<TaskHomes> compute(mlir::func::FuncOp entry,
                                            dist::MeshOp mesh);

  /// Divides each backward into what the chunks before wait for, and the rest:
  /// for schedules that run them apart.
  void splitBackward();

  /// How many chunks the entry is cut into.
  int64_t countChunks() const { return chunks.count(); }

  /// The task that computes an op that is not free, for what reads it in
  /// `chunk`: that of the op's own chunk, if it has one.
  Place getPlace(mlir::Operation *op, int64_t chunk) const;

  /// The chunk of a value; of one that any chunk may compute, of those that
  /// read it the lowest, or that of the sum that it is made of, if none does. A
  /// sum over micro-batches is that one's, and others get it from there.
  int64_t getChunk(mlir::Value value) const;

  /// The chunk that gives a result of the entry: its value's own; of one that
  /// any may compute the owner of the state that it writes, and the first one
  /// if it is reported, since the first rank tells of a step.
  int64_t getChunk(mlir::OpOperand &result) const;

  /// The task that gives a cut what it takes elsewhere.
  Place getSource(nn::CutOp cut) const;

  /// The task that computes a value; of an argument or a free op, Update.
  Home getHome(mlir::Value value) const;

  /// Whether the task `count` needs the op. It may have a home as well.
  bool isCounted(mlir::Operation *op) const { return counted.contains(op); }

  /// Whether anything but `count` needs the op.
  bool isLive(mlir::Operation *op) const { return live.contains(op); }

  /// Whether a task that runs once computes the value itself, though the loop
  /// may as well: what is gathered anew wherever it is wanted, and what is made
  /// of that alone.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }

  /// Whether `reader` computes the value itself rather than have it kept: what
  /// the forward widens, the backward widens again (and its second part what
  /// the first does), and half as much is kept. Not so the update: a gradient
  /// is summed in the wide type.
  bool isWidenedAgain(mlir::Operation *op, Home reader) const;

  /// What is combined over micro-batches, by its op.
  const llvm::MapVector<mlir::Operation *, Reduction> &getReductions() const {
    return reductions;
  }

  /// Whether computing the op again costs less than keeping its result:
  /// constants, indices, and other ways to read the same bytes.
  static bool isFree(mlir::Operation *op);

private:
  TaskHomes(mlir::func::FuncOp entry, dist::MeshOp mesh, nn::Chunks chunks)
      : entry(entry), mesh(mesh), chunks(std::move(chunks)) {}
  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why,
                             llvm::StringRef wayOut = {}) const;
  void findUpdate();
  mlir::LogicalResult findVarying();
  void placeRepeated();
  void findForward();
  void placeStatistics();
  void placeInvariants();
  mlir::LogicalResult placeReductions();
  void findLive();
  void findRounds();
  void postpone(Home home);
  static mlir::Value skipFree(mlir::Value value);
  /// The chunk of a value; of one that any may compute, those that read it.
  std::set<int64_t> findChunks(mlir::Value value) const;
  std::optional<int64_t> findTaker(mlir::OpOperand &result) const;
  mlir::Value findSum(mlir::Value value) const;

  mlir::func::FuncOp entry;
  dist::MeshOp mesh;
  nn::Chunks chunks;
  int64_t microBatches = 1;
  llvm::DenseMap<mlir::Operation *, int64_t> rounds;
  /// Values that differ between micro-batches.
  llvm::DenseSet<mlir::Value> varying;
  llvm::DenseSet<mlir::Operation *> counted, live;
  /// What depends on gathers that each micro-batch repeats, and on nothing else
  /// that differs.
  llvm::DenseSet<mlir::Operation *> repeated;
  llvm::DenseMap<mlir::Operation *, Home> homes;
  llvm::MapVector<mlir::Operation *, Reduction> reductions;
};

} // namespace accel::tasks

#endif // ACCEL_LIB_TASKS_TASKHOMES_H
