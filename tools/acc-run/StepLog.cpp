// Finding where a log goes on, and writing whole lines.

#include "StepLog.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The step of a line; 0: it is no line of a log.
int64_t stepOf(const std::string &line, bool isCsv) {
  const std::string start = isCsv ? "" : "{\"step\": ";
  if (line.compare(0, start.size(), start) != 0)
    return 0;
  char *after = nullptr;
  const char *digits = line.c_str() + start.size();
  if (*digits < '0' || *digits > '9')
    return 0;
  int64_t step = std::strtoll(digits, &after, 10);
  return *after == ',' ? step : 0;
}

} // namespace

StepLog::~StepLog() {
  if (descriptor >= 0)
    close(descriptor);
  if (isNew && end == 0)
    unlink(path.c_str()); // of a run that told nothing
}

Status StepLog::fail(const char *what) const {
  int error = errno;
  return Status::error(std::string("cannot ") + what + " the log " +
                       inQuotes(path) + ": " + std::strerror(error));
}

Status StepLog::open(const std::string &name, const RunStart &run) {
  path = name;
  header = csvHeader(run.reports);
  isCsv = endsWith(path, ".csv");
  isNew = access(path.c_str(), F_OK) != 0;
  descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    isNew = false;
    return fail("write");
  }
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return fail("look at");
  isFile = S_ISREG(info.st_mode);
  if (isFile && info.st_size && !run.resumes)
    return Status::error("expected no file " + inQuotes(path) +
                         " for the log of a new run, found one: give another "
                         "--log, or remove it; a run with --resume goes on "
                         "with its log");
  return isFile ? findEnd(run) : Status();
}

/// Steps follow each other in a log, so that one place divides those that the
/// checkpoint has seen from those that will be told again.
Status StepLog::findEnd(const RunStart &run) {
  std::ifstream lines(path, std::ios::binary);
  if (!lines)
    return fail("read");
  std::string line;
  int64_t number = 0;
  while (std::getline(lines, line)) {
    ++number;
    bool isWhole = !lines.eof(); // else its writer was killed
    bool isHeader = isCsv && number == 1;
    int64_t step = isHeader ? 0 : stepOf(line, isCsv);
    if (isWhole && (isHeader ? line + "\n" != header : !step))
      return Status::error("expected a log of acc-run in " + inQuotes(path) +
                           ", to go on with, found line " +
                           std::to_string(number) + ": " + inQuotes(line));
    if (!isWhole || step > run.firstStep)
      break;
    end += static_cast<int64_t>(line.size()) + 1;
  }
  return lines.bad() ? fail("read") : Status();
}

Status StepLog::add(const ToldStep &step) {
  std::string text = isCsv ? csvLine(step) : jsonLine(step);
  if (isCsv && end == 0)
    text = header + text;
  // What is behind the place is a killed run's, or half a line of ours.
  if (isFile &&
      (ftruncate(descriptor, end) != 0 || lseek(descriptor, end, SEEK_SET) < 0))
    return fail("write");
  Status written = write(text);
  if (written.ok())
    end += static_cast<int64_t>(text.size());
  else if (isFile)
    (void)!ftruncate(descriptor, end); // the error is what counts
  return written;
}

Status StepLog::write(const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail("write");
    done += static_cast<size_t>(count);
  }
  return Status();
}

} // namespace accel::rt
