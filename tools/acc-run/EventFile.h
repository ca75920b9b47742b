// The folder of --tensorboard: an event file of scalars, as TensorBoard reads
// them (tensorboard/compat/proto/{event,summary}.proto, tensorflow's
// lib/io/record_writer.h for the framing).

#ifndef ACCEL_TOOLS_ACC_RUN_EVENTFILE_H
#define ACCEL_TOOLS_ACC_RUN_EVENTFILE_H

#include "StepFormat.h"

namespace accel::rt {

/// The CRC-32C (Castagnoli) of bytes: the polynomial 0x1EDC6F41 of RFC 3720.
uint32_t crc32c(const std::string &bytes);

class EventFile {
public:
  EventFile() = default;
  ~EventFile();
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  /// Makes a file of this run's in `folder`, which is made where it is missing.
  /// Where a run resumes, TensorBoard is told to forget what other files there
  /// have of steps that come again. Errors: it cannot be made.
  Status open(const std::string &folder, const RunStart &run);
  /// Adds scalars by the names that Transformers' TensorBoardCallback gives
  /// them: train/loss, train/grad_norm, train/learning_rate, train/epoch,
  /// eval/loss, and beside those train/tokens_per_second (or samples). Errors:
  /// they cannot be written.
  Status add(const ToldStep &step);

private:
  Status write(const std::string &event);

  std::string path;
  int descriptor = -1;
};

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_EVENTFILE_H
