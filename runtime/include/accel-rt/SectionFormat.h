// Executables that carry their weights: sections whose bytes lie in other files
// when an executable is written, and are copied from there without ever being
// in memory as a whole.

#ifndef ACCEL_RT_SECTIONFORMAT_H
#define ACCEL_RT_SECTIONFORMAT_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt {

/// The bytes [offset, offset + bytes) of the file `path`, of `shape` as they
/// lie there.
struct FileSection {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::string path;
  uint64_t offset = 0, bytes = 0;
  uint64_t hash = 0; ///< As hashBytes has it.
};

/// Reads the bytes once and fills `hash`. Errors: the file cannot be read, or
/// ends before them.
Status hashSection(FileSection &section);

/// As the other of that name, with sections from files behind those from
/// memory. Errors besides: a file cannot be read any more, or has other bytes
/// than `hash` says.
Status writeExecutableFile(Executable executable,
                           const std::vector<SectionData> &sections,
                           const std::vector<FileSection> &fromFiles,
                           const std::string &path);

} // namespace accel::rt

#endif // ACCEL_RT_SECTIONFORMAT_H
