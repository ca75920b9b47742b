// What the programs share: calls that must succeed, and a clock.
#pragma once
#include <chrono>
#include <cstdio>
#include <unistd.h>

static int thisRank = -1; // of several processes; -1: there is one

// Says which call failed as a JSON line, and ends the process at once.
[[noreturn]] static void fatal(const char *call, int line, int code) {
  printf("{\"fatal\":\"");
  if (thisRank >= 0)
    printf("rank %d: ", thisRank);
  printf("%s line %d: %d\"}\n", call, line, code);
  fflush(stdout);
  _exit(1);
}
// A call of CUDA, NCCL or cuBLAS, whose success is 0.
#define CK(x)                                                                  \
  do {                                                                         \
    auto e_ = (x);                                                             \
    if (e_)                                                                    \
      fatal(#x, __LINE__, (int)e_);                                            \
  } while (0)

// Microseconds of a clock that only goes forward.
[[maybe_unused]] static double now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
