// Which acc this is: what its tools answer to --version. The version is that of
// CMakeLists.txt; the commit is found at each build (cmake/WriteVersion.cmake).

#ifndef ACCEL_RT_VERSION_H
#define ACCEL_RT_VERSION_H

#include <cstdint>
#include <string>

namespace accel::rt {

/// Of the checkpoints that are written. Version 1 did not tell which data there
/// were, version 2 knew one order of them, from the first step on, and version
/// 3 one way to go from one epoch to the next; all are still read.
inline constexpr int64_t kCheckpointVersion = 5;

/// MAJOR.MINOR.PATCH (semver.org).
std::string version();
/// The commit's first ten digits; "unknown" where the sources were no clone and
/// no archive of one.
std::string commit();
/// What `tool --version` prints: name, version and commit, as GNU's standards
/// have it, then the formats of files. Ends with a newline.
std::string versionText(const std::string &tool);

} // namespace accel::rt

#endif // ACCEL_RT_VERSION_H
