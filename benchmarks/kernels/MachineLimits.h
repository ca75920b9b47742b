// What the machine can do at most: multiply-adds and memory traffic.

#ifndef ACCEL_BENCHMARKS_MACHINELIMITS_H
#define ACCEL_BENCHMARKS_MACHINELIMITS_H

namespace accel::bench {

/// fp32 operations per second of `threads` threads that do nothing but
/// multiply-adds of the widest vectors, in registers.
double measureFlops(int threads);
/// Bytes per second that `threads` threads read and write, copying memory that
/// does not fit the caches.
double measureBandwidth(int threads);

} // namespace accel::bench

#endif // ACCEL_BENCHMARKS_MACHINELIMITS_H
