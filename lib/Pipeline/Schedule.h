// A pipeline's schedule as data: which rank runs which task on which
// micro-batch in which order, where the chunks of the model lie, and what goes
// between them.

#ifndef ACCEL_LIB_PIPELINE_SCHEDULE_H
#define ACCEL_LIB_PIPELINE_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace accel::pipeline {

/// A chunk's backward runs whole, or as the gradient of its input, which the
/// chunks before it wait for, and the gradient of its weights, which nothing
/// waits for (Qi et al. 2023, arXiv:2401.10241).
enum class TaskKind { Forward, Backward, BackwardInput, BackwardWeight };

/// Whether it makes the gradient that goes back to the chunks before.
inline bool makesInputGradient(TaskKind kind) {
  return kind == TaskKind::Backward || kind == TaskKind::BackwardInput;
}

/// One run of a chunk's task. Chunks (virtual stages) are numbered from the
/// model's input to its loss, micro-batches from 0.
struct Task {
  TaskKind kind;
  int64_t chunk;
  int64_t microBatch;

  bool operator==(const Task &other) const {
    return kind == other.kind && chunk == other.chunk &&
           microBatch == other.microBatch;
  }
};

/// "F2[5]": the forward of chunk 2 on micro-batch 5. B is a whole backward, I
/// that of the input, W that of the weights.
std::string toString(const Task &task);
/// Reads what toString writes. Error: anything else.
llvm::Expected<Task> parseTask(llvm::StringRef text);

/// On which rank of the axis `pp` each chunk lies.
struct Placement {
  int64_t ranks = 1;
  llvm::SmallVector<int64_t> rankOfChunk;

  int64_t countChunks() const { return rankOfChunk.size(); }

  /// Chunk c on rank c.
  static Placement linear(int64_t ranks) { return interleaved(ranks, 1); }
  /// Chunk c on rank c mod ranks (Narayanan et al. 2021, arXiv:2104.04473).
  static Placement interleaved(int64_t ranks, int64_t chunksPerRank);
  /// Down and up again: rank r has chunks r and 2 ranks - 1 - r, so that input
  /// and loss are both on rank 0 (arXiv:2401.10241, section 6).
  static Placement vee(int64_t ranks);
};

/// What each rank runs, one task after another.
struct Schedule {
  Placement placement;
  int64_t microBatches = 1;
  std::vector<std::vector<Task>> ranks;
};

/// A value that the forward of chunk `source` gives that of chunk `target`,
/// where source < target; its gradient goes the other way. One that skips
/// chunks goes straight from rank to rank.
struct Edge {
  int64_t source;
  int64_t target;
};
using Edges = llvm::SmallVector<Edge>;

/// Each chunk's value goes to the next one.
Edges makeChain(int64_t chunks);

/// What goes along an edge between two ranks for one micro-batch.
struct Transfer {
  size_t edge; ///< Its position in the list of edges.
  bool gradient;
  int64_t microBatch;

  bool operator==(const Transfer &other) const {
    return edge == other.edge && gradient == other.gradient &&
           microBatch == other.microBatch;
  }
};

/// "value 2->3[5]": of micro-batch 5, from chunk 2 to chunk 3; "gradient
/// 3->2[5]" is the answer.
std::string toString(const Transfer &transfer, llvm::ArrayRef<Edge> edges);

/// The chunk that a transfer leaves, or arrives at.
int64_t getSender(const Transfer &transfer, llvm::ArrayRef<Edge> edges);
int64_t getReceiver(const Transfer &transfer, llvm::ArrayRef<Edge> edges);

/// Those that edges between chunks of different ranks imply, in order of edge,
/// direction and micro-batch. An edge within a rank needs none.
std::vector<Transfer> listTransfers(const Schedule &schedule,
                                    llvm::ArrayRef<Edge> edges);

/// Sends and receives that a rank posts at once: they go on side by side, and
/// the group ends when all have ended.
using Group = llvm::SmallVector<Transfer, 2>;

/// What each rank sends and receives, one group after another, beside its
/// tasks. Which of the two a rank does follows from where the chunks lie.
struct Posting {
  std::vector<std::vector<Group>> ranks;
};

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_SCHEDULE_H
