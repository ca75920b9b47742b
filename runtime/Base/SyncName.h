// Names on storage: a file that was synchronised can still lose its name with
// the power, because that stands in its folder.

#ifndef ACCEL_RUNTIME_BASE_SYNCNAME_H
#define ACCEL_RUNTIME_BASE_SYNCNAME_H

#include <string>

namespace accel::rt {

/// Brings the name `path` of what `fd` has open to storage. A file system that
/// cannot synchronise folders is no error. Returns 0 or an error number.
int syncName(const std::string &path, int fd);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_SYNCNAME_H
