// The thread pool: every chunk once, no two at a time on one thread, no more
// threads than asked for.

#include "Base/ThreadPool.h"

#include <gtest/gtest.h>

using namespace accel::rt;

namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 5})
    for (int spin : {0, 2000}) {
      ThreadPool pool(threads, spin);
      ASSERT_EQ(pool.size(), threads);
      for (int64_t chunks : {0, 1, 2, 3, 17, 1000}) {
        std::vector<std::atomic<int>> seen(chunks);
        std::vector<std::atomic<int>> busy(threads);
        std::atomic<int> clashes{0};
        pool.parallelFor(chunks, [&](int64_t chunk, int thread) {
          clashes += busy[thread].fetch_add(1) != 0;
          ++seen[chunk];
          busy[thread].fetch_sub(1);
        });
        for (auto &count : seen)
          EXPECT_EQ(count, 1);
        EXPECT_EQ(clashes, 0);
      }
    }
}

TEST(ThreadPool, ManyShortJobsInARow) {
  // A late thread of one job must not touch the next.
  ThreadPool pool(4, 100);
  int64_t sum = 0;
  for (int64_t job = 0; job < 20000; ++job) {
    std::atomic<int64_t> part{0};
    int64_t chunks = job % 7;
    pool.parallelFor(chunks, [&](int64_t chunk, int) { part += chunk + 1; });
    EXPECT_EQ(part, chunks * (chunks + 1) / 2);
    sum += part;
  }
  EXPECT_GT(sum, 0);
}

TEST(ThreadPool, UsesNoMoreThreadsThanTheLimit) {
  ThreadPool pool(4, 2000);
  for (int limit : {1, 2}) {
    std::atomic<int> most{0};
    pool.parallelFor(
        5000,
        [&](int64_t, int thread) {
          int seen = most;
          while (thread > seen && !most.compare_exchange_weak(seen, thread)) {
          }
        },
        limit);
    EXPECT_LT(most, limit);
  }
}

TEST(ThreadPool, CallersOfSeveralThreadsTakeTurns) {
  ThreadPool pool(2, 100);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int job = 0; job < 500; ++job)
        pool.parallelFor(4, [&](int64_t, int) { ++total; });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(total, 3 * 500 * 4);
}

} // namespace
