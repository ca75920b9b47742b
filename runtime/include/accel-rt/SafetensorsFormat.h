// Safetensors files (https://github.com/huggingface/safetensors, README,
// "Format"), as the compiler and the runtime both read them: u64 header length,
// a JSON header of names, types, shapes and offsets, the elements without gaps.
// Nothing in them is executed.

#ifndef ACCEL_RT_SAFETENSORSFORMAT_H
#define ACCEL_RT_SAFETENSORSFORMAT_H

#include "accel-rt/Status.h"
#include "accel-rt/TensorFormat.h"

#include <string_view>

namespace accel::rt {

/// One tensor of a file; `begin` counts from the end of the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, bytes = 0;
};

/// Length and JSON header of a file of `entries`, padded to 8 bytes, with the
/// metadata that PyTorch's users write. Puts the entries in the order of the
/// format's own writer (the largest elements first, so that all are aligned,
/// then by name) and fills `begin` and `bytes`.
std::string safetensorsHeader(std::vector<SafetensorsEntry> &entries);

/// Fails where no header can be as long as the first 8 bytes of a file of
/// `fileBytes` say.
Status checkSafetensorsLength(uint64_t length, uint64_t fileBytes);

/// Reads the header's text, behind which `payload` bytes stand in the file.
/// Entries come in the header's order. Refuses names that stand twice, ranges
/// outside the file or that overlap, types that we do not have, and a file that
/// is longer or shorter than the header says.
Status readSafetensorsHeader(std::string_view text, uint64_t payload,
                             std::vector<SafetensorsEntry> &entries);

} // namespace accel::rt

#endif // ACCEL_RT_SAFETENSORSFORMAT_H
