// The system calls of an atomic write.

#include "Data/AtomicFile.h"
#include "Base/SyncName.h"
#include "Base/SystemError.h"
#include "Base/UniqueName.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// A file that was not there, nor a link of that name.
FileHandle makeNew(const std::string &name) {
  return FileHandle(::open(
      name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
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

Status AtomicFile::join(const SharedName &shared, uint64_t bytes) {
  std::string name = nameBeside(folderOf(finalPath), finalPath, shared.suffix);
  file = FileHandle(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (file && fstat(file.get(), &info) == 0 &&
      info.st_size == static_cast<off_t>(bytes))
    return Status();
  return Status::error("cannot write " + inQuotes(finalPath) +
                       ": expected the file that rank 0 has made beside it, in "
                       "a folder that all machines share, found " +
                       (file ? "another" : systemError(errno)));
}

Status AtomicFile::create(const std::string &path, uint64_t bytes,
                          const SharedName &shared) {
  finalPath = path;
  if (shared.isOthers)
    return join(shared, bytes);
  // A device or a folder cannot be renamed over. A name that cannot be looked
  // up cannot be given either, and the temporary would not show it.
  struct stat info;
  bool isThere = stat(path.c_str(), &info) == 0;
  if (isThere && !S_ISREG(info.st_mode))
    return Status::error("cannot write " + inQuotes(path) +
                         ": expected a regular file");
  if (!isThere && errno != ENOENT)
    return fail(errno);
  if (shared.suffix.empty())
    file = FileHandle(
        ::open(folderOf(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666));
  hasName = !file &&
            (!shared.suffix.empty() || errno == EOPNOTSUPP || errno == EISDIR);
  int error = errno;
  if (!shared.suffix.empty()) {
    temporary = nameBeside(folderOf(path), path, shared.suffix);
    file = makeNew(temporary);
    error = errno;
  } else if (hasName)
    error = makeUnique(folderOf(path), path, temporary,
                       [&](auto &name) { return bool(file = makeNew(name)); });
  hasName = hasName && file;
  if (!file)
    return fail(error);
  error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  return error ? fail(error) : Status();
}

int AtomicFile::link(const std::string &folder, std::string &name) const {
  std::string unnamed = "/proc/self/fd/" + std::to_string(file.get());
  return makeUnique(folder, finalPath, name, [&](const std::string &unique) {
    return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, unique.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
  });
}

int AtomicFile::copy(const std::string &folder, std::string &name) const {
  FileHandle target;
  if (int error = makeUnique(folder, finalPath, name, [&](auto &unique) {
        return bool(target = makeNew(unique));
      }))
    return error;
  struct stat info;
  off_t done = 0;
  int error = fstat(file.get(), &info) != 0 ? errno : 0;
  for (std::vector<char> buffer(1 << 20); !error && done < info.st_size;) {
    size_t count = std::min<size_t>(buffer.size(),
                                    static_cast<size_t>(info.st_size - done));
    auto at = static_cast<uint64_t>(done);
    errno = EIO; // where the file has become shorter
    if (!readRange(file.get(), finalPath, at, buffer.data(), count).ok() ||
        !writeRange(target.get(), name, at, buffer.data(), count).ok())
      error = errno;
    done += static_cast<off_t>(count);
  }
  if (!error && fsync(target.get()) != 0)
    error = errno;
  if (error)
    unlink(name.c_str());
  return error;
}

Status AtomicFile::synchronise() {
  return fsync(file.get()) == 0 ? Status() : fail(errno);
}

Status AtomicFile::complete() {
  ACCEL_RT_RETURN_IF_ERROR(synchronise());
  isSynchronised = true;
  if (hasName)
    return Status();
  if (int error = link(folderOf(finalPath), temporary))
    return fail(error);
  hasName = true;
  return Status();
}

std::string AtomicFile::rescue() {
  // Beside the path already. Where it did not reach storage its bytes are in
  // memory only, and the system will not try to write them again.
  if (hasName && isSynchronised) {
    hasName = false;
    return temporary;
  }
  const char *scratch = std::getenv("TMPDIR");
  std::string name;
  for (const std::string &folder :
       {folderOf(finalPath), std::string("."),
        (scratch && *scratch ? std::string(scratch) : "/tmp") + "/"})
    if (file && copy(folder, name) == 0)
      return name;
  return "";
}

Status AtomicFile::publish() {
  if (rename(temporary.c_str(), finalPath.c_str()) != 0)
    return fail(errno);
  hasName = false;
  int error = syncName(finalPath, file.get());
  return error ? fail(error) : Status();
}

} // namespace accel::rt
