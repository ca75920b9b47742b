// Formatting: numbers with as many digits as bring the same bits back.

#include "StepFormat.h"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

namespace accel::rt {
namespace {

std::string digits(double value, DType dtype) {
  char text[64];
  std::snprintf(text, sizeof text, dtype == DType::F64 ? "%.17g" : "%.9g",
                value);
  return text;
}

std::string fixed(double value, const char *format = "%.6f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A name and its value; an empty one is not known.
using Fields = std::vector<std::pair<std::string, std::string>>;

Fields fieldsOf(const ToldStep &told, bool json) {
  const StepResult &step = told.result;
  auto number = [&](double value, DType type) {
    return json ? exactly(value, type) : digits(value, type);
  };
  std::string rate = fixed(told.unitsPerSecond(), "%.6g"), time;
  if (step.time > 0)
    time = json ? "\"" + timeOfDay(step.time) + "\"" : timeOfDay(step.time);
  Fields fields{{"step", std::to_string(step.step)}};
  for (const Report &report : step.reports)
    fields.emplace_back(report.name, number(report.value, report.dtype));
  Fields others{
      {"time_s", fixed(told.seconds)},
      {"time", time},
      {"epoch", step.epoch ? fixed(*step.epoch, "%.9g") : ""},
      {"samples_per_s", step.tokens ? "" : rate},
      {"tokens_per_s", step.tokens ? rate : ""},
      {"eta_s", fixed(told.secondsLeft, "%.3f")},
      {"checkpoint", step.savedStep ? std::to_string(step.savedStep) : ""},
      {"eval_loss",
       step.evalLoss ? number(*step.evalLoss, step.evalLossType) : ""},
      {"eval_time_s", step.evalLoss ? fixed(step.evalSeconds) : ""},
      {"skipped", told.skipped ? std::to_string(told.skipped) : ""}};
  fields.insert(fields.end(), others.begin(), others.end());
  return fields;
}

} // namespace

double ToldStep::unitsPerSecond() const {
  int64_t units = result.tokens ? result.tokens : result.samples;
  return seconds > 0 ? static_cast<double>(units) / seconds : 0;
}

std::string exactly(double value, DType dtype) {
  return std::isfinite(value) ? digits(value, dtype) : "null";
}

std::string timeOfDay(double time) {
  auto milliseconds = static_cast<int64_t>(std::floor(time * 1000));
  std::time_t seconds = milliseconds / 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char day[32], text[48];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%03dZ", day,
                static_cast<int>(milliseconds % 1000));
  return text;
}

std::string jsonLine(const ToldStep &step) {
  std::string line;
  for (const auto &[name, value] : fieldsOf(step, /*json=*/true))
    if (!value.empty())
      line += (line.empty() ? "{\"" : ", \"") + name + "\": " + value;
  return line + "}\n";
}

std::string csvLine(const ToldStep &step) {
  std::string line;
  for (const auto &[name, value] : fieldsOf(step, /*json=*/false))
    line += (line.empty() ? "" : ",") + value;
  return line + "\n";
}

std::string csvHeader(const std::vector<std::string> &reports) {
  std::string line;
  ToldStep none;
  for (const std::string &report : reports)
    none.result.reports.push_back({report});
  for (const auto &[name, value] : fieldsOf(none, /*json=*/false))
    line += (line.empty() ? "" : ",") + name;
  return line + "\n";
}

} // namespace accel::rt
