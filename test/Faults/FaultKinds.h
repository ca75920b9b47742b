// The kinds of calls that FailCalls.cpp makes fail, and the memory through
// which inject.py learns how many of each there were. inject.py reads both by
// their order here.

#ifndef ACCEL_TEST_FAULTS_FAULTKINDS_H
#define ACCEL_TEST_FAULTS_FAULTKINDS_H

#include <atomic>
#include <cstdint>

namespace accel::test {

enum FaultKind {
  kAllocate,
  kMap,
  kProtect,
  kRead,
  kWrite,
  kSync,
  kSize,
  kLock,
  kClose,
  kOpen,
  kList,
  kRename,
  kRemove,
  kFolder,
  kStat,
  kFork,
  kWait,
  kRandom,
  kLoad,
  kFutex,
  kRing,
  kDirect,
  kBlock,
  kNumFaultKinds
};

inline constexpr const char *kFaultKinds[kNumFaultKinds] = {
    "allocate", "map",    "protect", "read",   "write", "sync",
    "size",     "lock",   "close",   "open",   "list",  "rename",
    "remove",   "folder", "stat",    "fork",   "wait",  "random",
    "load",     "futex",  "ring",    "direct", "block"};

inline constexpr uint32_t kMostFaultProcesses = 8;

/// Mapped by all processes of a run.
struct FaultState {
  std::atomic<uint32_t> processes, hits;
  char name[56]; ///< Of the first call that failed.
  std::atomic<uint64_t> calls[kMostFaultProcesses][kNumFaultKinds];
};

} // namespace accel::test

#endif // ACCEL_TEST_FAULTS_FAULTKINDS_H
