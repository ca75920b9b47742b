// Where a training step is told of: text, JSON on the standard output, logs,
// TensorBoard; each as often as is asked for.

#ifndef ACCEL_TOOLS_ACC_RUN_STEPTELLER_H
#define ACCEL_TOOLS_ACC_RUN_STEPTELLER_H

#include "EventFile.h"
#include "StepLines.h"
#include "StepLog.h"

namespace accel::rt {

struct TellOptions {
  bool json = false;
  std::string log, tensorBoard; ///< Paths; empty: none.
  int64_t every = 0;            ///< --log-every; 0: as each of them does.
};

class StepTeller {
public:
  /// Text goes to the standard output; with `json`, JSON does, and text to the
  /// standard error if that is a terminal.
  explicit StepTeller(const TellOptions &options);

  /// Before the first step. Errors: a log that cannot be written.
  Status begin(const RunStart &run);
  /// Errors: something cannot be written.
  Status add(const StepResult &step);
  /// Tells the last step if that has not happened, as when the run ended
  /// before its last one. Errors: those of add.
  Status finish();

private:
  Status record();

  TellOptions options;
  std::optional<StepLines> text;
  std::optional<StepLog> log;
  std::optional<EventFile> events;
  RunStart run;
  double began = 0; ///< The time of day when the first step did.
  /// Steps since the last line, the seconds they took, and the last of them.
  int64_t steps = 0;
  double seconds = 0;
  ToldStep newest;
};

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STEPTELLER_H
