// The call between the runtime and generated kernels: what lib/Target/CPU emits
// and the CPU device calls.

#ifndef ACCEL_RT_KERNEL_H
#define ACCEL_RT_KERNEL_H

#include <cstdint>

namespace accel::rt {

/// A datum that a kernel refuses: a token id outside its table, or a label that
/// is no class.
struct Refusal {
  int64_t value;
  /// The values allowed are [least, end); end is the table's size, or the
  /// number of classes.
  int64_t least, end;
  int64_t isLabel; ///< 1 or 0
};

/// A generated kernel, exported from the section cpu.so under the name of its
/// func.func. `arguments` are the addresses of the command's inputs, then of
/// its outputs, then of a Refusal; rows [rowBegin, rowEnd) are computed.
/// Several threads call it on disjoint ranges, each with a Refusal of its own.
/// Returns 0, or 1 + the position (row-major index of the element, or the row)
/// of the first datum that it refuses, and describes it.
using KernelFunction = int64_t (*)(void *const *arguments, int64_t rowBegin,
                                   int64_t rowEnd);

} // namespace accel::rt

#endif // ACCEL_RT_KERNEL_H
