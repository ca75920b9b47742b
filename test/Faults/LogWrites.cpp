// Preloaded into acc-opt or acc-run (LD_PRELOAD): writes down, in one order for
// all processes, what is done to files and folders, so that a driver (power.py)
// can tell what would be left of them had the power gone at any moment.
// ACCEL_LOG is the file that gets a line for each call that succeeded; inodes
// are DEVICE:NUMBER, names and bytes in hexadecimal digits:
//   file FOLDER NAME INODE, folder FOLDER NAME INODE, unnamed INODE
//   write INODE OFFSET BYTES, size INODE LENGTH
//   sync INODE, syncall
//   rename FOLDER NAME FOLDER NAME, link INODE FOLDER NAME, remove FOLDER NAME
//   said LENGTH   of the standard output, where that is a file

#include "UnnamedFiles.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

template <class Function> Function *realOf(const char *name, Function *) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

#define REAL(name)                                                             \
  ([] {                                                                        \
    static auto *real = realOf(#name, &::name);                                \
    return real;                                                               \
  }())

/// From the call to its line nothing else happens to any file.
class Line {
public:
  Line() {
    const char *path = std::getenv("ACCEL_LOG");
    log =
        REAL(open)(path ? path : "/dev/null", O_WRONLY | O_APPEND | O_CLOEXEC);
    flock(log, LOCK_EX);
  }
  ~Line() {
    int error = errno;
    if (!text.empty()) {
      text += '\n';
      if (REAL(write)(log, text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()))
        _exit(98);
    }
    close(log);
    errno = error;
  }
  Line &operator<<(const std::string &word) {
    text += (text.empty() ? "" : " ") + word;
    return *this;
  }

private:
  int log;
  std::string text;
};

std::string hex(const void *bytes, size_t count) {
  auto *from = static_cast<const unsigned char *>(bytes);
  std::string text = "x"; // also where there are none
  for (size_t i = 0; i < count; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", from[i]);
    text += digits;
  }
  return text;
}

std::string inodeOf(const struct stat &info) {
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

std::string inodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? inodeOf(info) : "?";
}

/// A name in a folder: the folder's inode, and the name in it.
std::string placeOf(int folder, const std::string &path) {
  std::string whole = path;
  while (whole.size() > 1 && whole.back() == '/')
    whole.pop_back();
  size_t slash = whole.rfind('/');
  std::string parent =
      slash == std::string::npos ? "." : whole.substr(0, slash + 1);
  std::string name =
      slash == std::string::npos ? whole : whole.substr(slash + 1);
  struct stat info;
  std::string inode =
      fstatat(folder, parent.c_str(), &info, 0) == 0 ? inodeOf(info) : "?";
  return inode + " " + hex(name.data(), name.size());
}

bool exists(int folder, const char *path) {
  struct stat info;
  return fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/// An open that may make a file, or one without a name.
template <class Open>
int openLogged(int folder, const char *path, int flags, Open &&open) {
  if (!(flags & (O_CREAT | O_TRUNC | O_TMPFILE)) || (flags & O_PATH))
    return open();
  bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (!unnamed && !(flags & (O_CREAT | O_TRUNC)))
    return open(); // a folder: O_TMPFILE has the bit of O_DIRECTORY
  Line line;
  bool isNew = !unnamed && !exists(folder, path);
  int fd = open();
  if (fd < 0)
    return fd;
  if (unnamed)
    line << "unnamed" << inodeOf(fd);
  else if (isNew)
    line << "file" << placeOf(folder, path) << inodeOf(fd);
  else if (flags & O_TRUNC)
    line << "size" << inodeOf(fd) << "0";
  return fd;
}

void logSize(Line &line, int fd) {
  struct stat info;
  if (fstat(fd, &info) == 0)
    line << "size" << inodeOf(info) << std::to_string(info.st_size);
}

template <class Write>
ssize_t writeLogged(int fd, const void *from, off_t at, Write &&write) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return write();
  Line line;
  ssize_t put = write();
  if (put <= 0)
    return put;
  off_t offset = at >= 0 ? at : lseek(fd, 0, SEEK_CUR) - put;
  line << "write" << inodeOf(info) << std::to_string(offset)
       << hex(from, static_cast<size_t>(put));
  return put;
}

template <class Call>
int moveLogged(const char *what, const std::string &from, const std::string &to,
               Call &&call) {
  Line line;
  int result = call();
  if (result == 0) {
    line << what << from;
    if (!to.empty())
      line << to;
  }
  return result;
}

#define MODE_OF(flags)                                                         \
  mode_t mode = 0;                                                             \
  if ((flags) & (O_CREAT | O_TMPFILE)) {                                       \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    mode = va_arg(list, mode_t);                                               \
    va_end(list);                                                              \
  }

} // namespace

extern "C" {

int open(const char *path, int flags, ...) {
  MODE_OF(flags)
  if (accel::test::isRefused(flags))
    return -1;
  return openLogged(AT_FDCWD, path, flags,
                    [&] { return REAL(open)(path, flags, mode); });
}
int open64(const char *path, int flags, ...) {
  MODE_OF(flags)
  return openLogged(AT_FDCWD, path, flags,
                    [&] { return REAL(open64)(path, flags, mode); });
}
int openat(int folder, const char *path, int flags, ...) {
  MODE_OF(flags)
  return openLogged(folder, path, flags,
                    [&] { return REAL(openat)(folder, path, flags, mode); });
}
int openat64(int folder, const char *path, int flags, ...) {
  MODE_OF(flags)
  return openLogged(folder, path, flags,
                    [&] { return REAL(openat64)(folder, path, flags, mode); });
}

ssize_t write(int fd, const void *from, size_t bytes) {
  return writeLogged(fd, from, -1,
                     [&] { return REAL(write)(fd, from, bytes); });
}
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) {
  return writeLogged(fd, from, at,
                     [&] { return REAL(pwrite)(fd, from, bytes, at); });
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t at) {
  return writeLogged(fd, from, at,
                     [&] { return REAL(pwrite64)(fd, from, bytes, at); });
}

// NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters have theirs.
#define LOG_SIZE(NAME, PARAMETERS, ARGUMENTS)                                  \
  int NAME PARAMETERS {                                                        \
    Line line;                                                                 \
    int result = REAL(NAME) ARGUMENTS;                                         \
    if (result == 0)                                                           \
      logSize(line, fd);                                                       \
    return result;                                                             \
  }
// NOLINTEND(bugprone-macro-parentheses)
LOG_SIZE(ftruncate, (int fd, off_t bytes), (fd, bytes))
LOG_SIZE(ftruncate64, (int fd, off_t bytes), (fd, bytes))
LOG_SIZE(posix_fallocate, (int fd, off_t at, off_t bytes), (fd, at, bytes))
LOG_SIZE(posix_fallocate64, (int fd, off_t at, off_t bytes), (fd, at, bytes))

int fsync(int fd) {
  return moveLogged("sync", inodeOf(fd), "", [&] { return REAL(fsync)(fd); });
}
int fdatasync(int fd) {
  return moveLogged("sync", inodeOf(fd), "",
                    [&] { return REAL(fdatasync)(fd); });
}
int syncfs(int fd) {
  return moveLogged("syncall", inodeOf(fd), "",
                    [&] { return REAL(syncfs)(fd); });
}

int mkdir(const char *path, mode_t mode) {
  return mkdirat(AT_FDCWD, path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
  // What was saved before is said first, and not by chance only after more is.
  usleep(50000);
  Line line;
  int result = REAL(mkdirat)(folder, path, mode);
  struct stat info;
  if (result == 0 && fstatat(folder, path, &info, 0) == 0)
    line << "folder" << placeOf(folder, path) << inodeOf(info);
  return result;
}
int rename(const char *from, const char *to) {
  return moveLogged("rename", placeOf(AT_FDCWD, from), placeOf(AT_FDCWD, to),
                    [&] { return REAL(rename)(from, to); });
}
int renameat(int old, const char *from, int folder, const char *to) {
  return moveLogged("rename", placeOf(old, from), placeOf(folder, to),
                    [&] { return REAL(renameat)(old, from, folder, to); });
}
int link(const char *from, const char *to) {
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int linkat(int old, const char *from, int folder, const char *to, int flags) {
  Line line;
  int result = REAL(linkat)(old, from, folder, to, flags);
  struct stat info;
  if (result == 0 && fstatat(folder, to, &info, AT_SYMLINK_NOFOLLOW) == 0)
    line << "link" << inodeOf(info) << placeOf(folder, to);
  return result;
}
int unlink(const char *path) {
  return moveLogged("remove", placeOf(AT_FDCWD, path), "",
                    [&] { return REAL(unlink)(path); });
}
int rmdir(const char *path) {
  return moveLogged("remove", placeOf(AT_FDCWD, path), "",
                    [&] { return REAL(rmdir)(path); });
}
int remove(const char *path) {
  return moveLogged("remove", placeOf(AT_FDCWD, path), "",
                    [&] { return REAL(remove)(path); });
}
int unlinkat(int folder, const char *path, int flags) {
  return moveLogged("remove", placeOf(folder, path), "",
                    [&] { return REAL(unlinkat)(folder, path, flags); });
}

int fflush(FILE *stream) {
  int result = REAL(fflush)(stream);
  if (stream == stdout && result == 0)
    if (off_t length = lseek(STDOUT_FILENO, 0, SEEK_CUR); length > 0)
      Line() << "said" << std::to_string(length);
  return result;
}

} // extern "C"
