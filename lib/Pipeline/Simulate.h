// When each task of a schedule runs, how long ranks stand still, and what they
// keep meanwhile.

#ifndef ACCEL_LIB_PIPELINE_SIMULATE_H
#define ACCEL_LIB_PIPELINE_SIMULATE_H

#include "Costs.h"
#include "Execution.h"

namespace accel::pipeline {

struct Span {
  double begin = 0, end = 0;
};

struct TimedTransfer {
  Transfer transfer;
  Span span;
};

struct Simulation {
  /// Of each rank's tasks, in their order.
  std::vector<std::vector<Span>> tasks;
  std::vector<TimedTransfer> transfers; ///< In the order of listTransfers.
  double seconds =
      0; ///< From the step's beginning to the end of its last task.
  std::vector<double> busySeconds; ///< Of each rank.
  /// countLiveActivations, and the bytes of each rank's activations when all of
  /// its slots are counted: that is what a plan allocates.
  std::vector<int64_t> peakActivations, activationBytes;

  /// How much of all ranks' time is idle: what a step loses that ends with a
  /// barrier (the norm of the gradients).
  double getBubbleFraction() const;
  /// The most that a rank idles between its own first and last task, which is
  /// what papers call the bubble: all ranks but one have fewer, and without a
  /// barrier the next step begins meanwhile.
  double getLongestIdle() const;
};

/// Plays the step. With a posting as verify proves it; without one, transfers
/// wait for nothing but their values and their slots, which is never slower.
/// Requires what Execution does. Error: the step does not end.
llvm::Expected<Simulation> simulate(const Schedule &schedule,
                                    llvm::ArrayRef<Edge> edges,
                                    const Slots &slots, const Posting *posting,
                                    const Costs &costs);

/// When each node of a step that ends begins.
std::vector<double> findBegins(const Execution &execution, const Costs &costs);

/// The bytes of each rank's slots for activations.
std::vector<int64_t> countActivationBytes(const Placement &placement,
                                          const Slots &slots,
                                          const Costs &costs);

} // namespace accel::pipeline

#endif // ACCEL_LIB_PIPELINE_SIMULATE_H
