// Files by descriptor, relative to a folder that was checked once: what a name
// stands for may change in between, a descriptor does not.

#include "Cache.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace accel::cpu;

/// Larger than any library of kernels; a file that says it is larger still is
/// not worth the memory.
static constexpr off_t kLargestEntry = off_t(1) << 30;
/// What an unfinished entry is called, before its random digits.
static constexpr const char *kUnfinished = ".new-";
/// Seconds after which whoever was writing an unfinished entry is gone.
static constexpr time_t kAbandoned = 3600;

std::string accel::cpu::getCacheFolder() {
  auto get = [](const char *name) {
    return sys::Process::GetEnv(name).value_or("");
  };
  if (std::string given = get("ACCEL_CACHE"); !given.empty())
    return given;
  // The XDG Base Directory Specification: a relative path is to be ignored.
  auto isPlace = [](StringRef path) { return sys::path::is_absolute(path); };
  SmallString<128> folder(get("XDG_CACHE_HOME"));
  if (!isPlace(folder)) {
    folder = get("HOME");
    if (!isPlace(folder))
      return "";
    sys::path::append(folder, ".cache");
  }
  sys::path::append(folder, "acc");
  return std::string(folder);
}

std::string Cache::hash(StringRef bytes) {
  SHA256 hasher;
  hasher.update(bytes);
  return toHex(hasher.final(), /*LowerCase=*/true);
}

/// What keeps others from being trusted with a file; empty if nothing does.
static std::string findForeign(const struct stat &status) {
  if (status.st_uid != geteuid())
    return "one of user " + std::to_string(status.st_uid);
  char digits[8];
  std::snprintf(digits, sizeof(digits), "%04o", status.st_mode & 07777);
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return std::string("mode ") + digits;
  return "";
}

Cache::Cache(std::string folder, StringRef kind, StringRef what, Warn warn)
    : folder(std::move(folder)), kind(kind), what(what), warn(std::move(warn)) {
  // A link with a slash behind it would be followed.
  while (this->folder.size() > 1 && this->folder.back() == '/')
    this->folder.pop_back();
}

Cache::~Cache() {
  if (descriptor >= 0)
    ::close(descriptor);
}

bool Cache::open(bool create) {
  if (descriptor >= 0)
    return true;
  if (refused)
    return false;
  auto tryOpen = [&] {
    return ::open(folder.c_str(),
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  };
  int opened = tryOpen();
  if (opened < 0 && errno == ENOENT && create) {
    std::error_code made = sys::fs::create_directories(
        sys::path::parent_path(folder), /*IgnoreExisting=*/true,
        sys::fs::owner_all);
    int error = ::mkdir(folder.c_str(), 0700) != 0 ? errno : 0;
    opened = tryOpen();
    if (opened < 0 && errno == ENOENT) {
      errno = made ? made.value() : error;
      return false;
    }
  }
  if (opened < 0 && errno == ENOENT)
    return false; // nothing was kept
  std::string found;
  struct stat status;
  if (opened < 0)
    found = errno == ENOTDIR || errno == ELOOP ? "a link or a file"
                                               : std::strerror(errno);
  else if (::fstat(opened, &status) != 0)
    found = std::strerror(errno);
  else
    found = findForeign(status);
  if (found.empty()) {
    descriptor = opened;
    return true;
  }
  if (opened >= 0)
    ::close(opened);
  refused = true;
  warn(Twine(what) + " are not kept: expected '" + folder +
       "' to be a folder of user " + Twine(geteuid()) +
       " that nobody else can write to, found " + found +
       "; change its owner and mode (chmod 700), or name another folder in "
       "ACCEL_CACHE");
  return false;
}

std::string Cache::identify(StringRef inputs) const {
  return hash(kind + '\0' + inputs.str());
}

/// What stands before the content.
static std::string getHeader(StringRef id, StringRef content) {
  return "acc cache 1\ninputs " + id.str() + "\nlength " +
         utohexstr(content.size(), /*LowerCase=*/true, 16) + "\ncontent " +
         Cache::hash(content) + "\n";
}

/// Reads a file that is one's own to its end; what is wrong with it if that is
/// impossible. Never mapped: a file that shrinks would be a signal.
static std::string readEntry(int file, std::string &bytes) {
  struct stat status;
  if (::fstat(file, &status) != 0)
    return std::strerror(errno);
  if (!S_ISREG(status.st_mode))
    return "no file";
  if (std::string foreign = findForeign(status); !foreign.empty())
    return foreign;
  if (status.st_size > kLargestEntry)
    return std::to_string(status.st_size) + " bytes";
  bytes.resize(status.st_size);
  size_t filled = 0;
  while (filled < bytes.size()) {
    ssize_t count = ::read(file, &bytes[filled], bytes.size() - filled);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return std::strerror(errno);
    if (count == 0)
      break; // it shrinks: the zeros behind are not what was written
    filled += count;
  }
  return "";
}

std::optional<std::string> Cache::find(StringRef inputs) {
  if (!open(/*create=*/false))
    return std::nullopt;
  std::string id = identify(inputs), bytes, bad;
  // A pipe in the place of an entry would never be opened without O_NONBLOCK.
  int file = ::openat(descriptor, (id + "." + kind).c_str(),
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT)
    return std::nullopt;
  if (file < 0) {
    bad = errno == ELOOP ? "a link" : std::strerror(errno);
  } else {
    bad = readEntry(file, bytes);
    ::close(file);
  }
  if (!bad.empty()) {
    discard(inputs,
            "a file of user " + Twine(geteuid()) + " that only they can write",
            bad);
    return std::nullopt;
  }
  // The header is made again from what was asked for and what was read, and
  // compared as a whole: no bit of an entry is left unchecked.
  size_t length = getHeader(id, "").size();
  StringRef entry(bytes),
      content = entry.drop_front(std::min(length, entry.size()));
  if (entry.take_front(length) != getHeader(id, content)) {
    discard(inputs, "what was written there",
            Twine(bytes.size()) + " bytes that are damaged");
    return std::nullopt;
  }
  return content.str();
}

void Cache::discard(StringRef inputs, const Twine &expected,
                    const Twine &found) {
  std::string name = identify(inputs) + "." + kind;
  ::unlinkat(descriptor, name.c_str(), 0);
  warn("expected '" + Twine(folder) + "/" + name + "' to be " + expected +
       ", found " + found + "; threw it away, and " + what + " are made again");
}

/// Writes a new file down to the disk; false if that is impossible.
static bool writeFile(int file, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    bytes = bytes.drop_front(count);
  }
  return ::fsync(file) == 0;
}

bool Cache::fail(int error) const {
  static std::atomic_flag isTold = ATOMIC_FLAG_INIT; // of all kinds of things
  if (!folder.empty() && !isTold.test_and_set())
    warn(Twine(what) + " are not kept: cannot write to '" + folder + "': " +
         std::strerror(error) + "; name a folder of your own in ACCEL_CACHE");
  return false;
}

bool Cache::insert(StringRef inputs, StringRef content) {
  uint64_t random;
  if (!open(/*create=*/true))
    return !refused && fail(errno);
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random))
    return fail(errno);
  removeAbandoned();
  std::string id = identify(inputs);
  std::string unfinished =
      kUnfinished + utohexstr(random, /*LowerCase=*/true, 16);
  int file =
      ::openat(descriptor, unfinished.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(errno);
  errno = 0;
  bool good = writeFile(file, getHeader(id, content) + content.str());
  int error = errno;
  if (::close(file) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && ::renameat(descriptor, unfinished.c_str(), descriptor,
                         (id + "." + kind).c_str()) != 0) {
    good = false;
    error = errno;
  }
  if (!good) {
    ::unlinkat(descriptor, unfinished.c_str(), 0);
    return fail(error);
  }
  // The name may be lost with the power, which costs time only.
  return true;
}

/// Whoever is killed while writing leaves an unfinished file behind.
void Cache::removeAbandoned() const {
  int again = ::openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = again < 0 ? nullptr : ::fdopendir(again);
  if (!entries)
    return;
  scope_exit close([&] { ::closedir(entries); });
  while (const dirent *entry = ::readdir(entries)) {
    struct stat status;
    if (StringRef(entry->d_name).starts_with(kUnfinished) &&
        ::fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ==
            0 &&
        status.st_mtime < ::time(nullptr) - kAbandoned)
      ::unlinkat(descriptor, entry->d_name, 0);
  }
}
