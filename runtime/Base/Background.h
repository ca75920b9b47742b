// A thread that does one job at a time beside whoever starts it.

#ifndef ACCEL_RUNTIME_BASE_BACKGROUND_H
#define ACCEL_RUNTIME_BASE_BACKGROUND_H

#include "Base/StartThread.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace accel::rt {

/// Starting jobs and waiting for them allocates nothing.
class Background {
public:
  Background() = default;
  /// Waits for the job at hand.
  ~Background() {
    if (threads.empty())
      return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    changed.notify_all();
    threads[0].join();
  }
  Background(const Background &) = delete;
  Background &operator=(const Background &) = delete;

  /// Makes the thread, which calls `body` for each start(). Errors: the system
  /// refuses it.
  Status open(const std::string &name, std::function<void()> body) {
    job = std::move(body);
    return startThread(threads, name, [this] { work(); });
  }
  /// Begins a job. Requires open(), and that none is under way.
  void start() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isBusy = true;
    }
    changed.notify_all();
  }
  /// Waits for the end of the job at hand, for so long at most; whether there
  /// is none any more.
  bool waitFor(std::chrono::milliseconds most) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, most, [this] { return !isBusy; });
  }

private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return isBusy || isOver; });
      if (!isBusy)
        return;
      lock.unlock();
      job();
      lock.lock();
      isBusy = false;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool isBusy = false, isOver = false;
  std::function<void()> job;
  std::vector<std::thread> threads; ///< One, once it is open.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_BACKGROUND_H
