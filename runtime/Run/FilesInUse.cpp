// Looking files up by device and inode.

#include "Run/FilesInUse.h"

#include "Base/UniqueName.h"

#include <sys/stat.h>

namespace accel::rt {

void FilesInUse::reads(int fd, const std::string &what) {
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0)
    inputs.try_emplace({info.st_dev, info.st_ino}, what);
}

void FilesInUse::reads(const std::string &path, const std::string &what) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    inputs.try_emplace({info.st_dev, info.st_ino}, what);
}

Status FilesInUse::writes(const std::string &path, const std::string &option) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    if (auto found = inputs.find({info.st_dev, info.st_ino});
        found != inputs.end())
      return Status::error("cannot write " + inQuotes(path) + " for option " +
                           inQuotes(option) + ": this run reads it as " +
                           found->second + "; give another name");
  if (stat(folderOf(path).c_str(), &info) != 0)
    return Status(); // whoever makes the file says so
  auto [other, isNew] = outputs.try_emplace(
      {{info.st_dev, info.st_ino}, path.substr(path.rfind('/') + 1)}, option);
  return isNew ? Status()
               : Status::error(
                     "cannot write " + inQuotes(path) + " for option " +
                     inQuotes(option) + ": it is to be written for " +
                     inQuotes(other->second) + ", too; give another name");
}

} // namespace accel::rt
