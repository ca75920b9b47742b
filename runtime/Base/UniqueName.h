// Names for temporaries that nobody else has: whether two runs end up with one
// name is decided by the file system alone, because process numbers are the
// same in every container, and a killed run leaves its temporaries behind.

#ifndef ACCEL_RUNTIME_BASE_UNIQUENAME_H
#define ACCEL_RUNTIME_BASE_UNIQUENAME_H

#include <algorithm>
#include <cerrno>
#include <linux/limits.h>
#include <string>
#include <unistd.h>

namespace accel::rt {

/// The folder of `path`, with its slash; "." without one.
inline std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// The name of `path` in `folder`, with `suffix`: of a long one less of its
/// end, so that wherever `path` can be, this can.
inline std::string nameBeside(const std::string &folder,
                              const std::string &path,
                              const std::string &suffix) {
  std::string where = folder == "." ? "" : folder;
  size_t room = std::min<size_t>(
      NAME_MAX, PATH_MAX - 1 - std::min<size_t>(where.size(), PATH_MAX - 1));
  std::string stem = path.substr(path.rfind('/') + 1);
  if (stem.size() + suffix.size() > room)
    stem.resize(room - std::min(room, suffix.size()));
  return where + stem + suffix;
}

/// Calls `make` with names in `folder` that are like that of `path`, one after
/// another, until one is not there already: `make` returns whether it made it,
/// with EEXIST where it is there. Returns 0 or an error number.
template <class F>
int makeUnique(const std::string &folder, const std::string &path,
               std::string &name, F &&make) {
  constexpr int kMostNames = 1000;
  std::string suffix = ".tmp." + std::to_string(getpid());
  for (int i = 0; i < kMostNames; ++i) {
    name =
        nameBeside(folder, path, suffix + (i ? "." + std::to_string(i) : ""));
    if (make(name))
      return 0;
    if (errno != EEXIST)
      return errno;
  }
  return EEXIST;
}

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_UNIQUENAME_H
