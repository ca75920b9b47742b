// Names, listing and locking of folders of checkpoints.

#include "State/CheckpointFolder.h"
#include "Base/SyncName.h"
#include "Base/SystemError.h"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

constexpr const char *kPrefix = "step-", *kTemporary = ".tmp-step-",
                     *kLockFile = ".lock";

/// The step of a folder's name; -1 for other names.
int64_t stepOf(const std::string &name, const std::string &prefix) {
  if (name.rfind(prefix, 0) != 0)
    return -1;
  std::string digits = name.substr(prefix.size());
  if (digits.size() < 8 || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::strtoll(digits.c_str(), nullptr, 10);
}

/// Errors: what the system says, but not of a folder that is not there.
template <class F> Status forEachName(const std::string &folder, F &&f) {
  DIR *stream = opendir(folder.c_str());
  int error = stream || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
  while (stream) {
    errno = 0; // at the end it stays so
    dirent *entry = readdir(stream);
    error = entry ? 0 : errno;
    if (!entry)
      break;
    f(std::string(entry->d_name));
  }
  if (stream)
    closedir(stream);
  return error ? Status::error("cannot list the folder " + inQuotes(folder) +
                               ": " + systemError(error))
               : Status();
}

} // namespace

CheckpointName::CheckpointName(int64_t step, bool temporary) {
  std::snprintf(buffer, sizeof buffer, "%s%08lld",
                temporary ? kTemporary : kPrefix, static_cast<long long>(step));
}

Status listCheckpoints(const std::string &folder,
                       std::vector<FoundCheckpoint> &found) {
  Status status;
  auto add = [&](const std::string &name) {
    FoundCheckpoint checkpoint{stepOf(name, kPrefix), folder + "/" + name};
    if (checkpoint.step < 0)
      return;
    std::string path = checkpoint.path + "/" + kManifestFile;
    checkpoint.isWhole = access(path.c_str(), F_OK) == 0;
    if (!checkpoint.isWhole && errno != ENOENT && errno != ENOTDIR &&
        status.ok())
      status = Status::error("cannot tell whether there is a checkpoint " +
                             inQuotes(path) + ": " + systemError(errno));
    found.push_back(std::move(checkpoint));
  };
  ACCEL_RT_RETURN_IF_ERROR(forEachName(folder, add));
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.step < b.step; });
  return status;
}

void CheckpointFolder::shareLock(int lock) const {
  // A killed run leaves it behind, and it must not keep out whoever else may
  // write to the folder: it gets the folder's owner, group and right to write,
  // as far as this process may give them.
  struct stat info;
  if (fstat(handle.get(), &info) != 0)
    return;
  if (fchown(lock, info.st_uid, info.st_gid) != 0 &&
      fchown(lock, static_cast<uid_t>(-1), info.st_gid) != 0)
    info.st_mode &=
        static_cast<mode_t>(~S_IWGRP); // it would be another group's
  (void)fchmod(lock, info.st_mode & 0222);
}

Status CheckpointFolder::open(const std::string &path) {
  folderPath = path;
  while (folderPath.size() > 1 && folderPath.back() == '/')
    folderPath.pop_back();
  auto fail = [&](const char *what) {
    return Status::error(std::string("cannot ") + what + " the folder " +
                         inQuotes(folderPath) +
                         " for checkpoints: " + systemError(errno));
  };
  if (mkdir(folderPath.c_str(), 0777) != 0 && errno != EEXIST)
    return fail("make");
  handle = FileHandle(
      ::open(folderPath.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle)
    return fail("open");
  // Or else the power may take the folder, and all that will be in it. An
  // earlier run that made it may not have come to this.
  errno = syncName(folderPath, handle.get());
  if (errno)
    return fail("synchronise");
  while (!lockFile) {
    // Nobody may read it, so that only who may write checkpoints can lock it:
    // the folder itself could be locked by all who may list it.
    constexpr int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    FileHandle file(
        openat(handle.get(), kLockFile, flags | O_CREAT | O_EXCL, 0200));
    if (file)
      shareLock(file.get()); // never one that was there: it may be any file
    else if (errno == EEXIST)
      file = FileHandle(openat(handle.get(), kLockFile, flags));
    else
      return fail("lock");
    if (!file && errno == ENOENT)
      continue; // another run has ended meanwhile
    if (!file)
      return Status::error(
          "cannot open " + inQuotes(folderPath + "/" + kLockFile) +
          ", which locks the folder for checkpoints: " + systemError(errno) +
          "; where no run is writing there, remove it");
    // Where a file system has no locks, two runs are the user's own look-out.
    struct flock all = {};
    all.l_type = F_WRLCK;
    if (fcntl(file.get(), F_OFD_SETLK, &all) != 0 &&
        (errno == EAGAIN || errno == EACCES))
      return Status::error("expected to be the only run that writes "
                           "checkpoints to " +
                           inQuotes(folderPath) + ", found another");
    // Another run may have removed it since it was opened.
    struct stat locked, named;
    bool isThere =
        fstatat(handle.get(), kLockFile, &named, AT_SYMLINK_NOFOLLOW) == 0;
    if ((!isThere && errno != ENOENT) || fstat(file.get(), &locked) != 0)
      return fail("lock");
    if (isThere && locked.st_dev == named.st_dev &&
        locked.st_ino == named.st_ino)
      lockFile = std::move(file);
  }
  // What is in the way of a checkpoint would be found after days of training.
  return clean();
}

Status CheckpointFolder::join(const std::string &path) {
  folderPath = path;
  handle = FileHandle(
      ::open(folderPath.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return handle
             ? Status()
             : Status::error("cannot open the folder " + inQuotes(folderPath) +
                             " for checkpoints, which all machines must "
                             "share: " +
                             systemError(errno));
}

CheckpointFolder::~CheckpointFolder() {
  if (lockFile)
    unlinkat(handle.get(), kLockFile, 0); // while it is locked
}

std::string CheckpointFolder::whereNow() const {
  struct stat opened, found;
  auto isHere = [&](const std::string &path) {
    return fstat(handle.get(), &opened) == 0 &&
           stat(path.c_str(), &found) == 0 && opened.st_dev == found.st_dev &&
           opened.st_ino == found.st_ino;
  };
  if (isHere(folderPath))
    return folderPath;
  char path[4096];
  std::string link = "/proc/self/fd/" + std::to_string(handle.get());
  ssize_t length = readlink(link.c_str(), path, sizeof path);
  std::string moved(path, length > 0 ? static_cast<size_t>(length) : 0);
  return isHere(moved) ? moved : "";
}

Status CheckpointFolder::clean() const {
  std::string path = whereNow();
  (void)unlinkat(handle.get(), kBestTemporary, 0); // in nobody's way
  std::vector<std::string> stale;
  ACCEL_RT_RETURN_IF_ERROR(forEachName(path, [&](const std::string &name) {
    if (stepOf(name, kTemporary) >= 0)
      stale.push_back(path + "/" + name);
  }));
  for (const std::string &left : stale) {
    int error = 0;
    auto note = [&](int result) {
      if (result != 0 && errno != ENOENT && !error)
        error = errno;
    };
    for (const char *file : kCheckpointFiles)
      note(unlink((left + "/" + file).c_str()));
    note(unlink((left + "/" + kManifestFile).c_str()));
    note(rmdir(left.c_str()));
    if (error)
      return Status::error(
          "cannot remove " + inQuotes(left) +
          ", which an earlier run left behind: " + systemError(error));
  }
  return Status();
}

} // namespace accel::rt
