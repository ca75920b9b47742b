// Opens the folder of a name, and synchronises it.

#include "Base/SyncName.h"
#include "Base/UniqueName.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace accel::rt {

int syncName(const std::string &path, int fd) {
  int folder =
      ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Who may write to a folder need not be allowed to list it: then all of the
  // file system is synchronised.
  if (folder < 0)
    return errno != EACCES || syncfs(fd) != 0 ? errno : 0;
  int error = fsync(folder) != 0 && errno != EINVAL ? errno : 0;
  close(folder);
  return error;
}

} // namespace accel::rt
