// Says on stderr what a tool is at, once it has taken longer than two seconds.

#ifndef ACCEL_LIB_DRIVER_PROGRESS_H
#define ACCEL_LIB_DRIVER_PROGRESS_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace accel::driver {

/// Prints `<tool>: <stage> (N s)` for as long as it lives: nothing in the first
/// two seconds, then a line that is rewritten in place on a terminal, and one
/// line per stage elsewhere.
class Progress {
public:
  explicit Progress(std::string tool);
  ~Progress();
  /// Names what is being done from now on.
  void setStage(std::string stage);

private:
  void watch();

  std::string tool, stage;
  std::mutex mutex;
  std::condition_variable stopped;
  bool stop = false;
  std::thread watcher;
};

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_PROGRESS_H
