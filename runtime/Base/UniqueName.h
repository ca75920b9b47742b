// Names for temporaries that nobody else has: whether two runs end up with one
// name is decided by the file system alone, because process numbers are the
// same in every container, and a killed run leaves its temporaries behind.

#ifndef ACCEL_RUNTIME_BASE_UNIQUENAME_H
#define ACCEL_RUNTIME_BASE_UNIQUENAME_H

#include <cerrno>
#include <string>
#include <unistd.h>

namespace accel::rt {

/// The folder of `path`, with its slash; "." without one.
inline std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Calls `make` with names in `folder` that are like that of `path`, one after
/// another, until one is not there already: `make` returns whether it made it,
/// with EEXIST where it is there. Returns 0 or an error number.
template <class F>
int makeUnique(const std::string &folder, const std::string &path,
               std::string &name, F &&make) {
  constexpr int kMostNames = 1000;
  std::string stem =
      path.substr(path.rfind('/') + 1) + ".tmp." + std::to_string(getpid());
  for (int i = 0; i < kMostNames; ++i) {
    name = (folder == "." ? "" : folder) + stem +
           (i ? "." + std::to_string(i) : "");
    if (make(name))
      return 0;
    if (errno != EEXIST)
      return errno;
  }
  return EEXIST;
}

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_UNIQUENAME_H
