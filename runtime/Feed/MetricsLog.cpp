// Writing lines of metrics.

#include "Feed/MetricsLog.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// As Python's json reads it, infinities and NaN included.
void appendNumber(std::string &line, const char *before, float value) {
  char text[64];
  if (std::isfinite(value))
    std::snprintf(text, sizeof text, "%s%.9g", before,
                  static_cast<double>(value));
  else
    std::snprintf(text, sizeof text, "%s%s", before,
                  std::isnan(value) ? "NaN"
                  : value > 0       ? "Infinity"
                                    : "-Infinity");
  line += text;
}

void appendName(std::string &line, const char *name) {
  line += '"';
  for (; *name; ++name) {
    auto byte = static_cast<unsigned char>(*name);
    char escaped[8];
    if (byte < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      line += escaped;
      continue;
    }
    if (byte == '"' || byte == '\\')
      line += '\\';
    line += *name;
  }
  line += '"';
}

} // namespace

MetricsLog::~MetricsLog() {
  if (descriptor >= 0)
    close(descriptor);
}

Status MetricsLog::open(const std::string &name, bool goesOn) {
  path = name;
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  descriptor = ::open(path.c_str(), goesOn ? flags : flags | O_EXCL, 0666);
  if (descriptor >= 0)
    return Status();
  std::string why = "cannot write the metrics to " + inQuotes(path) + ": " +
                    std::strerror(errno);
  if (errno == EEXIST)
    why += "; remove it, or give another file (a run with --resume goes on in "
           "it)";
  return Status::error(why);
}

Status MetricsLog::write(int64_t step) {
  if (!isOpen())
    return Status();
  line = "{\"step\": ";
  line += std::to_string(step);
  line += ", \"tensors\": {";
  const char *between = "";
  for (const auto &[name, numbers] : values) {
    line += between;
    between = ", ";
    appendName(line, name.c_str() + std::strlen(kMetricPrefix));
    appendNumber(line, ": {\"amax\": ", numbers[0]);
    appendNumber(line, ", \"scale\": [", numbers[1]);
    appendNumber(line, ", ", numbers[2]);
    appendNumber(line, "], \"overflow\": ", numbers[3]);
    appendNumber(line, ", \"underflow\": ", numbers[4]);
    line += '}';
  }
  line += "}}\n";
  // One call, so that a line is whole or not there.
  ssize_t put = ::write(descriptor, line.data(), line.size());
  if (put == static_cast<ssize_t>(line.size()))
    return Status();
  int error = put < 0 ? errno : ENOSPC;
  return Status::error("cannot write the metrics to " + inQuotes(path) + ": " +
                       std::strerror(error));
}

} // namespace accel::rt
