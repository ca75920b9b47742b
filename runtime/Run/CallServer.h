// The process that oversees a run's ranks, towards the program that has started
// it and calls the ranks: it makes the memory in which the two meet before the
// ranks are forked, tells the program what it should know, and sees when it is
// gone. It has no part in a call: the program and the ranks have what they
// need.

#ifndef ACCEL_RUNTIME_RUN_CALLSERVER_H
#define ACCEL_RUNTIME_RUN_CALLSERVER_H

#include "Calls/CallBoard.h"
#include "Calls/Channel.h"
#include "Data/TensorFile.h"

#include <sys/types.h>

namespace accel::rt {

class CallServer {
public:
  /// `socket` is the caller's, who is this process's parent.
  explicit CallServer(int socket);
  ~CallServer();
  CallServer(const CallServer &) = delete;
  CallServer &operator=(const CallServer &) = delete;

  /// Makes the board, with a place for each input and output of the entries
  /// and for each parameter and buffer, all without a name in any file system,
  /// and without memory until they are written. Errors: the system's, and a
  /// tensor of more dimensions than a row has.
  Status create(const Executable &executable, int64_t threads);
  /// Sends the board.
  void tellBoard() const;

  CallBoard &board() const { return *shared; }
  /// Where the caller's tensors are.
  const std::vector<OpenTensor> &inputs() const { return inputTensors; }
  const std::vector<OpenTensor> &outputs() const { return outputTensors; }
  /// By Executable::states' order; null: neither parameter nor buffer.
  const TensorRange *weight(size_t state) const {
    return weights[state] ? &*weights[state] : nullptr;
  }

  /// Whether the caller has gone, or goes within `milliseconds`.
  bool isCallerGone(int milliseconds) const;

private:
  /// A row of the table under one of its names.
  struct NamedRow {
    std::string name;
    TensorRow row = {};
  };
  Status layOut(const Executable &executable, std::vector<NamedRow> &rows);
  Status makeFiles();
  void fill(const Executable &executable, int64_t threads,
            const std::vector<NamedRow> &rows);

  int socket;
  pid_t caller;
  FileHandle boardFile, weightFile;
  CallBoard *shared = nullptr;
  uint64_t namesAt = 0, boardBytes = 0, weightBytes = 0;
  std::vector<OpenTensor> inputTensors, outputTensors;
  std::vector<std::optional<TensorRange>> weights;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_CALLSERVER_H
