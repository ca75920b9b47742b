// The pool's waiting and claiming. See ThreadPool.h for why a late thread is
// harmless.

#include "Base/ThreadPool.h"

#include <algorithm>

namespace accel::rt {
namespace {
/// Chunk numbers take the low 32 bits of the claim.
constexpr int64_t kMaxChunks = INT32_MAX;
constexpr int kIdleMilliseconds = 1000;
} // namespace

ThreadPool::ThreadPool(int threads, int spin) : spin(spin) {
  for (int thread = 1; thread < threads && started.ok(); ++thread)
    started = startThread(workers,
                          "thread " + std::to_string(thread + 1) + " of " +
                              std::to_string(threads),
                          [this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  stopping = true;
  jobs.fetch_add(1);
  wakeWaiters(jobs);
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::claimChunks(uint32_t job, int thread) {
  uint64_t current = claim.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(current >> 32) == job) {
    uint32_t chunk = static_cast<uint32_t>(current);
    Call function = call.load(std::memory_order_relaxed);
    void *argument = context.load(std::memory_order_relaxed);
    uint32_t chunks = count.load(std::memory_order_acquire);
    if (chunk >= chunks || thread >= limit.load(std::memory_order_relaxed))
      return;
    if (!claim.compare_exchange_weak(current, current + 1,
                                     std::memory_order_acq_rel))
      continue;
    function(argument, chunk, thread);
    total.fetch_add(1, std::memory_order_relaxed);
    if (done.fetch_add(1, std::memory_order_seq_cst) + 1 == chunks &&
        callerSleeps.load(std::memory_order_seq_cst))
      wakeWaiters(done);
    current = claim.load(std::memory_order_acquire);
  }
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (!stopping) {
    uint32_t job = jobs.load(std::memory_order_acquire);
    for (int look = 0; job == seen && look < spin; ++look) {
      pauseCore();
      job = jobs.load(std::memory_order_acquire);
    }
    if (job == seen) {
      sleepers.fetch_add(1);
      waitWhile(jobs, seen, kIdleMilliseconds);
      sleepers.fetch_sub(1);
      continue;
    }
    seen = job;
    claimChunks(job, thread);
  }
}

void ThreadPool::run(int64_t chunks, Call function, void *argument,
                     int mostThreads) {
  if (chunks <= 0)
    return;
  if (workers.empty() || chunks == 1 || mostThreads <= 1 ||
      chunks > kMaxChunks) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      function(argument, chunk, 0);
      total.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  std::lock_guard<std::mutex> lock(turn);
  uint32_t job = jobs.load(std::memory_order_relaxed) + 1;
  // Close the old job before its fields change: from here on no exchange of an
  // old claim succeeds, and the new job has no chunks yet.
  count.store(0, std::memory_order_relaxed);
  done.store(0, std::memory_order_relaxed);
  claim.store(uint64_t(job) << 32, std::memory_order_release);
  call.store(function, std::memory_order_relaxed);
  context.store(argument, std::memory_order_relaxed);
  limit.store(mostThreads, std::memory_order_relaxed);
  count.store(static_cast<uint32_t>(chunks), std::memory_order_release);
  jobs.store(job, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) > 0)
    wakeWaiters(jobs,
                static_cast<int>(std::min<int64_t>(chunks - 1, size() - 1)));
  claimChunks(job, 0);
  uint32_t finished = done.load(std::memory_order_acquire);
  for (int look = 0; finished < chunks; ++look) {
    if (look < spin) {
      pauseCore();
    } else {
      callerSleeps.store(true, std::memory_order_seq_cst);
      waitWhile(done, finished, kIdleMilliseconds);
      callerSleeps.store(false, std::memory_order_relaxed);
    }
    finished = done.load(std::memory_order_acquire);
  }
}

} // namespace accel::rt
