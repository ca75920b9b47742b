// What the tasks of products, attention and kernels read from their commands
// alike.

#ifndef ACCEL_RUNTIME_DEVICE_CPU_PRODUCTFORMS_H
#define ACCEL_RUNTIME_DEVICE_CPU_PRODUCTFORMS_H

#include "Device/CPU/Gemm/Gemm.h"
#include "Format/Layout.h"
#include "accel-rt/PlanFormat.h"

#include <algorithm>

namespace accel::rt::cpu {

inline Status getType(DType dtype, GemmType &type) {
  switch (dtype) {
  case DType::F32:
    type = GemmType::F32;
    return Status();
  case DType::BF16:
    type = GemmType::BF16;
    return Status();
  case DType::F64:
    type = GemmType::F64;
    return Status();
  case DType::F16:
    type = GemmType::F16;
    return Status();
  case DType::F8E4M3FN:
    type = GemmType::F8E4M3FN;
    return Status();
  case DType::F8E5M2:
    type = GemmType::F8E5M2;
    return Status();
  default:
    return Status::error(std::string("expected a type of floats, found ") +
                         dtypeName(dtype));
  }
}

/// An integer of a form; `otherwise` where the form has none of that name.
inline int64_t getInteger(const Form &form, const char *name,
                          int64_t otherwise) {
  auto found = form.find(name);
  if (found == form.end())
    return otherwise;
  auto *value = std::get_if<int64_t>(&found->second);
  return value ? *value : otherwise;
}

/// How many threads the planned scratch serves, `shared` bytes of which are for
/// all of them.
inline int scratchThreads(const std::optional<View> &scratch,
                          int64_t bytesPerThread, int threads,
                          int64_t shared = 0) {
  int64_t planned = (scratch ? spanBytes(*scratch) : 0) - shared;
  if (planned < 0)
    return 0;
  if (bytesPerThread == 0)
    return threads;
  return static_cast<int>(std::min<int64_t>(planned / bytesPerThread, threads));
}

inline Status noScratch(int64_t needed) {
  return Status::error("expected " + std::to_string(needed) +
                       " bytes of scratch a thread, found less in the plan");
}

} // namespace accel::rt::cpu

#endif // ACCEL_RUNTIME_DEVICE_CPU_PRODUCTFORMS_H
