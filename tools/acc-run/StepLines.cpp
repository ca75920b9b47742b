// When a line comes, and what stands in it.

#include "StepLines.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace accel::rt {
namespace {

/// 3:05, or 1:02:03.
std::string clockText(double seconds) {
  auto whole = static_cast<long long>(seconds + 0.5);
  char text[48];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  return text;
}

/// What the program reports, each followed by a comma: the loss in more digits.
std::string reportsText(const StepResult &step) {
  std::string line;
  for (const Report &report : step.reports) {
    char value[48];
    std::snprintf(value, sizeof value,
                  report.name == kLossReport ? "%.6g" : "%.4g", report.value);
    std::string name = report.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    line += name + " " + value + ", ";
  }
  return line;
}

/// How many of the steps were skipped, followed by a comma, if any was.
std::string skippedText(int64_t skipped, int64_t steps) {
  if (!skipped)
    return "";
  return (steps == 1 ? "skipped"
                     : std::to_string(skipped) + " of " +
                           std::to_string(steps) + " steps skipped") +
         std::string(", ");
}

} // namespace

bool isOnTerminal(int descriptor) {
  if (!isatty(descriptor))
    return false;
  // Open MPI and Slurm, PMIx, and MPICH and its kin.
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name))
      return false;
  const char *kind = std::getenv("TERM");
  return kind && *kind && std::string(kind) != "dumb";
}

StepLines::StepLines(FILE *stream, int64_t every)
    : stream(stream), every(every), terminal(isOnTerminal(fileno(stream))) {}

void StepLines::add(const StepResult &step, double secondsLeft) {
  ++steps;
  newest.skipped += step.verdict == Verdict::Skipped;
  seconds += step.seconds;
  newest.result = step;
  newest.secondsLeft = secondsLeft;
  auto now = std::chrono::steady_clock::now();
  bool isDue = every ? step.step % every == 0
                     : terminal || now - printed >= std::chrono::seconds(1);
  if (!isDue && !first && !step.last && !step.evalLoss)
    return;
  first = false;
  printed = now;
  print();
}

void StepLines::print() {
  const StepResult &step = newest.result;
  newest.seconds = seconds / static_cast<double>(steps);
  std::fprintf(stream, "%sstep %lld: %s%s%.4g s a step, %.4g %s/s%s%s",
               terminal ? "\r\033[K" : "", static_cast<long long>(step.step),
               reportsText(step).c_str(),
               skippedText(newest.skipped, steps).c_str(), newest.seconds,
               newest.unitsPerSecond(), newest.unit(),
               newest.secondsLeft >= 0.5
                   ? (", " + clockText(newest.secondsLeft) + " left").c_str()
                   : "",
               terminal ? "" : "\n");
  if (step.evalLoss) // a line that stays
    std::fprintf(stream, "%sstep %lld: eval_loss %.6g, %.4g s\n",
                 terminal ? "\n" : "", static_cast<long long>(step.step),
                 *step.evalLoss, step.evalSeconds);
  pending = terminal && !step.evalLoss;
  steps = newest.skipped = 0;
  seconds = 0;
}

void StepLines::finish() {
  if (steps)
    print();
  if (pending)
    std::fprintf(stream, "\n");
  pending = false;
  std::fflush(stream);
}

} // namespace accel::rt
