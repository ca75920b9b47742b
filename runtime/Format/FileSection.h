// Reading a section's bytes out of another file, piece by piece.

#ifndef ACCEL_RUNTIME_FORMAT_FILESECTION_H
#define ACCEL_RUNTIME_FORMAT_FILESECTION_H

#include "accel-rt/SectionFormat.h"

#include <functional>

namespace accel::rt {

/// Reads all bytes in order and hands them to `take`, which says whether to go
/// on; where it does not, the result is no error. `hash` gets that of the
/// bytes.
Status readSection(const FileSection &section,
                   const std::function<bool(const char *, uint64_t)> &take,
                   uint64_t &hash);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FORMAT_FILESECTION_H
