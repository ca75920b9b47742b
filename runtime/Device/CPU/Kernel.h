// The call between the runtime and generated kernels: what lib/Target/CPU emits
// and the CPU device calls.

#ifndef ACCEL_RUNTIME_DEVICE_CPU_KERNEL_H
#define ACCEL_RUNTIME_DEVICE_CPU_KERNEL_H

#include <cstdint>

namespace accel::rt::cpu {

/// A datum that a kernel refuses: a token id outside its table, or a label that
/// is no class.
struct Refusal {
  int64_t value;
  /// The values allowed are [least, end); end is the table's size, or the
  /// number of classes.
  int64_t least, end;
  int64_t isLabel; ///< 1 or 0
};

/// What the form of a kernel says: how many bytes of the command's scratch each
/// thread has, one thread's behind another's. The code is compiled to keep rows
/// there that the stack has no room for. Absent where it has room for all.
inline constexpr const char *kThreadScratch = "thread_scratch";
/// Each thread's scratch begins at a multiple of this, which is a cache line.
inline constexpr int64_t kScratchAlignment = 64;

/// The section of the file that holds the shared library of generated kernels.
inline constexpr const char *kLibrarySection = "cpu.so";

/// A generated kernel, exported from that library under the name of its
/// func.func. `arguments` are the addresses of the command's inputs, then of
/// its outputs, then of the thread's scratch if the form gives it any, then of
/// a Refusal; rows [rowBegin, rowEnd) are computed. Several threads call it on
/// disjoint ranges, each with scratch and a Refusal of its own.
/// Returns 0, or 1 + the position (row-major index of the element, or the row)
/// of the first datum that it refuses, and describes it.
using KernelFunction = int64_t (*)(void *const *arguments, int64_t rowBegin,
                                   int64_t rowEnd);

} // namespace accel::rt::cpu

#endif // ACCEL_RUNTIME_DEVICE_CPU_KERNEL_H
