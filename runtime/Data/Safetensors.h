// Reads safetensors files; their format is accel-rt/SafetensorsFormat.h's.

#ifndef ACCEL_RUNTIME_DATA_SAFETENSORS_H
#define ACCEL_RUNTIME_DATA_SAFETENSORS_H

#include "Data/TensorFile.h"
#include "accel-rt/SafetensorsFormat.h"

namespace accel::rt {

/// Reads the header of an open file: `start` is the byte where the elements
/// begin. Errors: no such file, and those of readSafetensorsHeader.
Status readSafetensors(int fd, const std::string &path,
                       std::vector<SafetensorsEntry> &entries, uint64_t &start);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_SAFETENSORS_H
