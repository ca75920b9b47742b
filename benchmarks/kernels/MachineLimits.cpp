// Loops that do one thing as fast as the machine can.

#include "MachineLimits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <immintrin.h>
#include <thread>
#include <vector>

namespace accel::bench {
namespace {
constexpr int64_t kRounds = 20'000'000;

/// 16 independent chains hide the latency of a multiply-add.
__attribute__((target("avx512f"))) float multiplyAdd512() {
  __m512 sums[16], x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(1.0f);
  for (__m512 &sum : sums)
    sum = y;
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma clang loop unroll(full)
    for (int chain = 0; chain < 16; ++chain)
      sums[chain] = _mm512_fmadd_ps(sums[chain], x, y);
  }
  for (int chain = 1; chain < 16; ++chain)
    sums[0] = _mm512_add_ps(sums[0], sums[chain]);
  return _mm512_reduce_add_ps(sums[0]);
}

__attribute__((target("avx2,fma"))) float multiplyAdd256() {
  __m256 sums[12], x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(1.0f);
  for (__m256 &sum : sums)
    sum = y;
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma clang loop unroll(full)
    for (int chain = 0; chain < 12; ++chain)
      sums[chain] = _mm256_fmadd_ps(sums[chain], x, y);
  }
  for (int chain = 1; chain < 12; ++chain)
    sums[0] = _mm256_add_ps(sums[0], sums[chain]);
  return sums[0][0];
}

/// Seconds until all threads have called `work` once; the least of three.
double measure(int threads, const std::function<void(int)> &work) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back(work, thread);
    work(0);
    for (std::thread &other : others)
      other.join();
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return best;
}
} // namespace

double measureFlops(int threads) {
  bool wide = __builtin_cpu_supports("avx512f");
  volatile float sink = 0;
  double seconds = measure(threads, [&](int) {
    sink = sink + (wide ? multiplyAdd512() : multiplyAdd256());
  });
  double each = kRounds * (wide ? 16.0 * 16 : 12.0 * 8) * 2;
  return threads * each / seconds;
}

double measureBandwidth(int threads) {
  constexpr size_t kBytes = size_t(256) << 20;
  std::vector<std::vector<char>> from(threads), to(threads);
  for (int thread = 0; thread < threads; ++thread) {
    from[thread].assign(kBytes, 1);
    to[thread].assign(kBytes, 2);
  }
  double seconds = measure(threads, [&](int thread) {
    std::memcpy(to[thread].data(), from[thread].data(), kBytes);
  });
  return threads * 2.0 * kBytes / seconds;
}

} // namespace accel::bench
