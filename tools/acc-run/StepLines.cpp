// Formatting: numbers with as many digits as bring the same bits back.

#include "StepLines.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace accel::rt {
namespace {

std::string exactly(double value, DType dtype) {
  if (!std::isfinite(value))
    return "null"; // JSON has no word for it
  char text[64];
  std::snprintf(text, sizeof text, dtype == DType::F64 ? "%.17g" : "%.9g",
                value);
  return text;
}

} // namespace

StepLines::StepLines(bool json)
    : json(json), terminal(!json && isatty(STDOUT_FILENO)) {}

void StepLines::add(const StepResult &step) {
  if (json) {
    std::printf("{\"step\": %lld, \"loss\": %s, \"grad_norm\": %s, "
                "\"lr\": %s, \"time_s\": %.6f}\n",
                static_cast<long long>(step.step),
                exactly(step.loss, step.lossType).c_str(),
                exactly(step.gradNorm, step.gradNormType).c_str(),
                exactly(step.learningRate, step.learningRateType).c_str(),
                step.seconds);
    std::fflush(stdout);
    return;
  }
  auto now = std::chrono::steady_clock::now();
  if (!terminal && !first && !step.last && now - last < std::chrono::seconds(1))
    return;
  first = false;
  last = now;
  int64_t units = step.tokens ? step.tokens : step.samples;
  std::printf("%sstep %lld: loss %.6g, grad norm %.4g, lr %.4g, %.4g %s/s%s",
              terminal ? "\r\033[K" : "", static_cast<long long>(step.step),
              step.loss, step.gradNorm, step.learningRate,
              step.seconds > 0 ? double(units) / step.seconds : 0,
              step.tokens ? "tokens" : "samples", terminal ? "" : "\n");
  pending = terminal;
  std::fflush(stdout);
}

void StepLines::finish() {
  if (pending)
    std::printf("\n");
  pending = false;
  std::fflush(stdout);
}

} // namespace accel::rt
