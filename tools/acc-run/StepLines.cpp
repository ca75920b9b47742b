// Formatting: numbers with as many digits as bring the same bits back.

#include "StepLines.h"

#include "StandardOutput.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Whether somebody sees lines that are rewritten. mpirun gives rank 0 a
/// terminal of its own, wherever what is said there goes.
bool isOnTerminal() {
  return isatty(STDOUT_FILENO) && !std::getenv("OMPI_COMM_WORLD_RANK") &&
         !std::getenv("PMIX_RANK");
}

} // namespace

std::string exactly(double value, DType dtype) {
  if (!std::isfinite(value))
    return "null"; // JSON has no word for it
  char text[64];
  std::snprintf(text, sizeof text, dtype == DType::F64 ? "%.17g" : "%.9g",
                value);
  return text;
}

StepLines::StepLines(bool json)
    : json(json), terminal(!json && isOnTerminal()) {}

Status StepLines::add(const StepResult &step) {
  if (json) {
    std::printf("{\"step\": %lld, \"loss\": %s, \"grad_norm\": %s, "
                "\"lr\": %s, \"time_s\": %.6f",
                static_cast<long long>(step.step),
                exactly(step.loss, step.lossType).c_str(),
                exactly(step.gradNorm, step.gradNormType).c_str(),
                exactly(step.learningRate, step.learningRateType).c_str(),
                step.seconds);
    if (step.evalLoss)
      std::printf(", \"eval_loss\": %s, \"eval_time_s\": %.6f",
                  exactly(*step.evalLoss, step.evalLossType).c_str(),
                  step.evalSeconds);
    std::printf("}\n");
    return flushStandardOutput();
  }
  ++steps;
  seconds += step.seconds;
  newest = step;
  auto now = std::chrono::steady_clock::now();
  if (!terminal && !first && !step.last && !step.evalLoss &&
      now - printed < std::chrono::seconds(1))
    return Status();
  first = false;
  printed = now;
  return printText();
}

Status StepLines::printText() {
  int64_t units = newest.tokens ? newest.tokens : newest.samples;
  double each = seconds / double(steps);
  std::printf("%sstep %lld: loss %.6g, grad norm %.4g, lr %.4g, %.4g s a step, "
              "%.4g %s/s%s",
              terminal ? "\r\033[K" : "", static_cast<long long>(newest.step),
              newest.loss, newest.gradNorm, newest.learningRate, each,
              each > 0 ? double(units) / each : 0,
              newest.tokens ? "tokens" : "samples", terminal ? "" : "\n");
  if (newest.evalLoss) // a line that stays
    std::printf("%sstep %lld: eval_loss %.6g, %.4g s\n", terminal ? "\n" : "",
                static_cast<long long>(newest.step), *newest.evalLoss,
                newest.evalSeconds);
  pending = terminal && !newest.evalLoss;
  steps = 0;
  seconds = 0;
  return flushStandardOutput();
}

void StepLines::finish() {
  if (steps)
    (void)printText(); // whoever prints the summary sees it
  if (pending)
    std::printf("\n");
  pending = false;
  std::fflush(stdout);
}

} // namespace accel::rt
