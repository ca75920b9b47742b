// The system calls of an atomic write.

#include "Data/AtomicFile.h"
#include "Format/SystemError.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

AtomicFile::~AtomicFile() {
  if (file && hasName)
    unlink(temporary.c_str());
}

Status AtomicFile::fail(int error) const {
  return Status::error("cannot write " + inQuotes(finalPath) + ": " +
                       systemError(error));
}

Status AtomicFile::create(const std::string &path, uint64_t bytes) {
  finalPath = path;
  temporary = path + ".tmp." + std::to_string(getpid());
  // A device or a folder cannot be renamed over.
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Status::error("cannot write " + inQuotes(path) +
                         ": expected a regular file");
  file = FileHandle(
      ::open(folderOf(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666));
  hasName = !file && (errno == EOPNOTSUPP || errno == EISDIR);
  if (hasName)
    file = FileHandle(::open(temporary.c_str(),
                             O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file)
    return fail(errno);
  if (int error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)))
    return fail(error);
  return Status();
}

Status AtomicFile::complete() {
  if (fsync(file.get()) != 0)
    return fail(errno);
  if (hasName)
    return Status();
  std::string unnamed = "/proc/self/fd/" + std::to_string(file.get());
  if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary.c_str(),
             AT_SYMLINK_FOLLOW) != 0)
    return fail(errno);
  hasName = true;
  return Status();
}

Status AtomicFile::publish() {
  if (rename(temporary.c_str(), finalPath.c_str()) != 0)
    return fail(errno);
  hasName = false;
  // The rename itself reaches storage with its folder; a file system that
  // cannot synchronise folders is no error.
  FileHandle folder(
      ::open(folderOf(finalPath).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder)
    (void)fsync(folder.get());
  return Status();
}

} // namespace accel::rt
