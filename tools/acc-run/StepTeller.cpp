// Means since the last line, and what is left.

#include "StepTeller.h"

#include "StandardOutput.h"

#include <algorithm>
#include <unistd.h>

namespace accel::rt {

StepTeller::StepTeller(const TellOptions &given) : options(given) {
  if (!options.json)
    text.emplace(stdout, options.every);
  else if (isOnTerminal(STDERR_FILENO))
    text.emplace(stderr, options.every);
}

Status StepTeller::begin(const RunStart &started) {
  run = started;
  if (!options.log.empty())
    ACCEL_RT_RETURN_IF_ERROR(log.emplace().open(options.log, run));
  if (!options.tensorBoard.empty())
    ACCEL_RT_RETURN_IF_ERROR(events.emplace().open(options.tensorBoard, run));
  return Status();
}

Status StepTeller::add(const StepResult &step) {
  if (began == 0)
    began = step.time - step.seconds;
  ++steps;
  seconds += step.seconds;
  newest.skipped += step.verdict == Verdict::Skipped;
  int64_t saved = newest.result.savedStep; // untold as yet
  newest.result = step;
  if (!step.savedStep)
    newest.result.savedStep = saved;
  auto done = static_cast<double>(step.step - run.firstStep);
  newest.secondsLeft = step.last
                           ? 0
                           : std::max(0.0, (step.time - began) / done) *
                                 static_cast<double>(run.lastStep - step.step);
  // Nobody waits for who reads text beside JSON.
  if (text && (!options.json || takesLine(STDERR_FILENO)))
    text->add(step, newest.secondsLeft);
  if (options.every == 0 || step.step % options.every == 0 || step.evalLoss ||
      step.last)
    ACCEL_RT_RETURN_IF_ERROR(record());
  // What could not be written to stdout ends the run, what could not be to
  // stderr is nobody's loss.
  return options.json && steps ? Status() : flushStandardOutput();
}

Status StepTeller::record() {
  newest.seconds = seconds / static_cast<double>(steps);
  steps = 0;
  seconds = 0;
  if (options.json)
    std::fputs(jsonLine(newest).c_str(), stdout);
  Status status = log ? log->add(newest) : Status();
  if (events && status.ok())
    status = events->add(newest);
  newest.result.savedStep = 0;
  newest.skipped = 0;
  return status;
}

Status StepTeller::finish() {
  if (text)
    text->finish(); // whoever prints the summary sees it
  return steps ? record() : Status();
}

} // namespace accel::rt
