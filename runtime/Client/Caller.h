// A run as the program sees it that calls it: AccelRun of accel-c/Run.h, where
// all is said of what functions do.

#ifndef ACCEL_RUNTIME_CLIENT_CALLER_H
#define ACCEL_RUNTIME_CLIENT_CALLER_H

#include "Calls/CallBoard.h"
#include "Calls/Channel.h"
#include "Client/Process.h"
#include "accel-c/Run.h"

#include <functional>

namespace accel::rt {

class Caller {
public:
  explicit Caller(const AccelOptions *options);
  ~Caller();
  Caller(const Caller &) = delete;
  Caller &operator=(const Caller &) = delete;

  AccelStatus open(const char *executable, const AccelOptions *options);
  AccelStatus start(CallKind kind, uint32_t flags, const char *folder);
  AccelStatus wait(double seconds);

  const std::string &message() const { return said; }
  const std::vector<AccelTensor> &tensors(AccelTensorKind kind) const {
    return rows[kind];
  }
  int memory(int which, uint64_t *bytes) const;
  uint64_t offset(const AccelTensor &tensor) const;
  AccelInfo info() const;
  AccelStep result() const;
  size_t numReports() const;
  AccelReport report(size_t index) const;
  void dropWeights();

private:
  struct Mapping {
    int file = -1;
    char *base = nullptr;
    uint64_t bytes = 0;
  };
  AccelStatus refuse(std::string why);
  AccelStatus end(std::string why);
  AccelStatus answer();
  /// Reads messages for so long, or until there is the board; an error or the
  /// end of them ends the run. Returns whether the run goes on.
  bool readMessages(int milliseconds);
  void hear(const Message &message);
  Status map(int file, Mapping &mapping);
  Status takeBoard(const Message &message);
  void readRows();

  Process process;
  std::string program;
  void (*warn)(void *, const char *) = nullptr;
  void (*progress)(void *, const char *) = nullptr;
  void *context = nullptr;
  Mapping files[2]; ///< Of the batch, and of the weights.
  CallBoard *board = nullptr;
  std::vector<AccelTensor> rows[3]; ///< By AccelTensorKind.
  bool isPending = false, isOver = false;
  std::string said, lastError; ///< The latter ended the run.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CLIENT_CALLER_H
