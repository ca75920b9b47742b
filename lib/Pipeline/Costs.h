// What the tasks and transfers of a pipeline take: seconds and bytes, for
// simulating and choosing schedules.

#ifndef ACCEL_LIB_PIPELINE_COSTS_H
#define ACCEL_LIB_PIPELINE_COSTS_H

#include "Schedule.h"

#include <optional>

namespace accel::pipeline {

/// Of one chunk on one micro-batch. Seconds may be any unit, if all are.
struct ChunkCost {
  double forward = 1, backward = 2, backwardInput = 1, backwardWeight = 1;
  /// What a forward leaves that the input's gradient reads last, and that the
  /// weights' gradient does (with what the input's gradient leaves for it).
  int64_t inputBytes = 0, weightBytes = 0;
  /// What the first part of a backward leaves for the second, where it has two
  /// and `weightBytes` has none of it.
  int64_t betweenBytes = 0;
  /// How far into a whole backward the gradient of the chunk's input is made,
  /// and leaves; none: at its end, as papers have it.
  std::optional<double> backwardToGradient = std::nullopt;

  /// Has either backward take so much longer, ahead of the gradient of the
  /// input: what is computed again.
  void addToBackward(double seconds) {
    backward += seconds;
    backwardInput += seconds;
    if (backwardToGradient)
      *backwardToGradient += seconds;
  }

  /// From a task's beginning to the value that others wait for.
  double getSecondsToValue(TaskKind kind) const {
    return kind == TaskKind::Backward && backwardToGradient
               ? *backwardToGradient
               : getSeconds(kind);
  }
  double getSeconds(TaskKind kind) const {
    const double seconds[] = {forward, backward, backwardInput, backwardWeight};
    return seconds[static_cast<int>(kind)];
  }
};

struct Costs {
  llvm::SmallVector<ChunkCost> chunks;
  /// A transfer takes so long whatever its size (α), and so long for each byte
  /// (β). Transfers do not slow each other down.
  double secondsPerTransfer = 0, secondsPerByte = 0;
  /// Of what goes along each edge; its gradient is as large. Empty: 0 bytes.
  llvm::SmallVector<double> edgeBytes;

  double getSeconds(const Transfer &transfer) const {
    return secondsPerTransfer +
           (edgeBytes.empty() ? 0 : edgeBytes[transfer.edge] * secondsPerByte);
  }

  /// All chunks alike, a whole backward as long as its parts, no time for
  /// transfers: what papers assume.
  static Costs makeEven(int64_t chunks, double forward = 1,
                        double backwardInput = 1, double backwardWeight = 1) {
    Costs costs;
    costs.chunks.assign(chunks, {forward, backwardInput + backwardWeight,
                                 backwardInput, backwardWeight, 1, 0});
    return costs;
  }
};

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_COSTS_H
