// Safetensors files (https://github.com/huggingface/safetensors, README,
// "Format"): u64 header length, a JSON header of names, types, shapes and
// offsets, the elements without gaps. Nothing in them is executed.

#ifndef ACCEL_RUNTIME_DATA_SAFETENSORS_H
#define ACCEL_RUNTIME_DATA_SAFETENSORS_H

#include "Data/TensorFile.h"

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

/// Reads the header of an open file: `start` is the byte where the elements
/// begin. Entries come in the header's order. Errors: no such file, ranges
/// outside it, types that we do not have.
Status readSafetensors(int fd, const std::string &path,
                       std::vector<SafetensorsEntry> &entries, uint64_t &start);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_SAFETENSORS_H
