// The threads of one rank. Work is cut into chunks that threads claim one by
// one from a counter; idle threads spin for a bounded time and then sleep,
// because OpenMP's endless spin falls to 30 % where a core is shared. Nothing
// is allocated after construction.

#ifndef ACCEL_RUNTIME_BASE_THREADPOOL_H
#define ACCEL_RUNTIME_BASE_THREADPOOL_H

#include "Base/Futex.h"
#include "Base/StartThread.h"

#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace accel::rt {

class ThreadPool {
public:
  /// Starts `threads` - 1 threads (the caller of parallelFor is the other one),
  /// or fewer and then says so. `spin` bounds the looks before a sleep
  /// (spinLimit).
  ThreadPool(int threads, int spin);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Whether all threads were started; if not, why.
  const Status &status() const { return started; }
  int spinLimit() const { return spin; }
  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls `fn(chunk, thread)` once for every chunk in [0, chunks), and returns
  /// when all calls have. `thread` is in [0, size()) and no two calls that run
  /// at the same time share it. At most `limit` threads take part: a command's
  /// scratch is planned for that many. Callers of several threads take turns.
  template <class F>
  void parallelFor(int64_t chunks, F &&fn, int limit = INT32_MAX) {
    using Fn = std::remove_reference_t<F>;
    run(
        chunks,
        [](void *context, int64_t chunk, int thread) {
          (*static_cast<Fn *>(context))(chunk, thread);
        },
        const_cast<void *>(static_cast<const void *>(&fn)), limit);
  }

  /// Chunks done since the start: a sign of life for the watchdog.
  uint64_t progress() const { return total.load(std::memory_order_relaxed); }

private:
  using Call = void (*)(void *context, int64_t chunk, int thread);
  void run(int64_t chunks, Call call, void *context, int limit);
  void work(int thread);
  void claimChunks(uint32_t job, int thread);

  // The current job. `claim` is its number and the next chunk: a thread owns a
  // chunk if its exchange of (job, chunk) by (job, chunk + 1) succeeds, which
  // it cannot once the job is over, so late threads read old fields harmlessly.
  alignas(64) std::atomic<uint64_t> claim{0};
  std::atomic<Call> call{nullptr};
  std::atomic<void *> context{nullptr};
  std::atomic<uint32_t> count{0};
  std::atomic<int> limit{0};
  alignas(64) Word jobs{0};
  Word done{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> callerSleeps{false};
  std::atomic<bool> stopping{false};
  std::atomic<uint64_t> total{0};
  int spin;
  std::mutex turn;
  std::vector<std::thread> workers;
  Status started;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_THREADPOOL_H
