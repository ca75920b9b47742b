// What the chunks of a pipeline are and take, counted from the tasks and edges
// of a module in phase `local`: for the reports of stages and of schedules.

#ifndef ACCEL_LIB_REPORT_PIPELINEFIGURES_H
#define ACCEL_LIB_REPORT_PIPELINEFIGURES_H

#include "dialects/Dist/Dist.h"
#include "lib/Pipeline/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::report {

/// A task on one micro-batch. Work is that by which a model is cut
/// (lib/Cost/Work.h).
struct TaskFigures {
  int64_t flops = 0;
  double work = 0;
  /// Of a whole backward the work up to the last value that another chunk
  /// waits for; 0: none does.
  double workToGradient = 0;
};

struct ChunkFigures {
  /// By its kind; absent where the chunk has none (the weights before it are
  /// frozen, or nothing is trained).
  std::map<dist::TaskKind, TaskFigures> tasks;
  /// The first and the last op of the forward that depend on inputs and on
  /// states, by their nodes.
  std::string first, last;
  int64_t parameters = 0; ///< numbers, over all ranks that share the chunk
  int64_t parameterBytes = 0, stateBytes = 0; ///< of one rank
  /// What a micro-batch's forward keeps for the backward, or for the part of it
  /// that makes the gradient of the input; and for that of the weights, with
  /// what the one part keeps for the other.
  int64_t keptBytes = 0, keptForWeightsBytes = 0;

  int64_t getFlops(bool backward) const;
  double getWork() const;
};

/// A value that a chunk makes and another one reads, on one rank.
struct Crossing {
  int64_t from = 0, to = 0;
  std::string name;
  mlir::Type type;
  int64_t bytes = 0;
  bool isOfForward = false; ///< a forward makes it
  bool isRepeated = false;  ///< by each micro-batch, not once a step
  /// The state that it is; empty of what is computed.
  std::string state;
  bool isParameter = false; ///< that state is one
};

struct PipelineFigures {
  dist::ScheduleOp schedule;
  /// Op handles are pointers, of which a const one gives no accessors.
  dist::ScheduleOp getSchedule() const { return schedule; }
  std::string name; ///< of the schedule, as it was decided
  pipeline::Placement placement;
  int64_t microBatches = 1;
  std::vector<ChunkFigures> chunks;
  std::vector<Crossing> crossings; ///< in the order of the edges

  /// The number of the chunk that is the `own`th of a stage.
  int64_t getChunk(int64_t stage, int64_t own) const;
  double getStageWork(int64_t stage) const;
  double getMeanWork() const; ///< of the stages
};

/// "2 stages, 4 micro-batches".
std::string describeSize(const PipelineFigures &figures);

/// Of the step, or else of the forward program. Errors, at the module or the
/// schedule: there is none; its name does not say where its chunks lie.
mlir::FailureOr<PipelineFigures> countPipeline(mlir::ModuleOp module);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_PIPELINEFIGURES_H
