// Preloaded into acc-run (LD_PRELOAD): what others do to a folder while weights
// are saved into it. ACCEL_CHANGE_SAVE is HOW:FILE, FILE that of
// --save-weights:
//   unnamed  files have the names beside FILE that this process would take
//   named    the same, and the file system has no files without a name
//   taken    before the file is named, FILE becomes a folder
//   gone     before the file is named, its folder is removed

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct Change {
  std::string how, file, folder;
  Change() {
    const char *text = std::getenv("ACCEL_CHANGE_SAVE");
    std::string all = text ? text : "";
    how = all.substr(0, all.find(':'));
    file = all.substr(std::min(all.size(), how.size() + 1));
    folder = file.substr(0, file.rfind('/'));
  }
  bool takesNames() const { return how == "unnamed" || how == "named"; }
};

Change &change() {
  static Change change;
  return change;
}

/// The first name a file, the second a link to a third.
void takeNames() {
  std::string first =
      change().file + ".tmp." + std::to_string(static_cast<int>(getpid()));
  for (const std::string &name : {first, change().folder + "/other"})
    if (FILE *file = std::fopen(name.c_str(), "wx")) {
      std::fputs("somebody's", file);
      std::fclose(file);
    }
  if (symlink("other", (first + ".1").c_str()) != 0 && errno != EEXIST)
    std::abort();
}

} // namespace

extern "C" {

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  static auto *real = reinterpret_cast<int (*)(const char *, int, ...)>(
      dlsym(RTLD_NEXT, "open"));
  if ((flags & O_TMPFILE) == O_TMPFILE && change().takesNames()) {
    takeNames();
    if (change().how == "named") {
      errno = EOPNOTSUPP;
      return -1;
    }
  }
  return real(path, flags, mode);
}

int fsync(int fd) {
  static auto *real = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"));
  if (change().how == "taken") {
    mkdir(change().file.c_str(), 0777);
  } else if (change().how == "gone") {
    rmdir(change().folder.c_str());
  }
  return real(fd);
}

} // extern "C"
