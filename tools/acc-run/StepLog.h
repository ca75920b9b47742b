// The file of --log: a line for each step that is told, JSON or, by the ending
// of its name, CSV. A run that goes on from a checkpoint goes on in the log.

#ifndef ACCEL_TOOLS_ACC_RUN_STEPLOG_H
#define ACCEL_TOOLS_ACC_RUN_STEPLOG_H

#include "StepFormat.h"

namespace accel::rt {

class StepLog {
public:
  StepLog() = default;
  ~StepLog();
  StepLog(const StepLog &) = delete;
  StepLog &operator=(const StepLog &) = delete;

  /// Opens or makes the log at `path`. One that is there is gone on with by a
  /// run that resumes: what it has of later steps than `run.firstStep`, of a
  /// run that was killed, goes as soon as those are told again. Errors: it
  /// cannot be written, is no log of this kind, or is that of another run.
  Status open(const std::string &path, const RunStart &run);
  /// Errors: it cannot be written; the lines before are whole.
  Status add(const ToldStep &step);

private:
  Status findEnd(const RunStart &run);
  Status fail(const char *what) const;
  Status write(const std::string &text);

  std::string path, header; ///< The latter of a CSV.
  bool isCsv = false, isFile = false, isNew = false;
  int descriptor = -1;
  /// Where the next line goes, in bytes.
  int64_t end = 0;
};

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_STEPLOG_H
