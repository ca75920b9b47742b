// The place of kernels and product forms on disk.

#include "CacheFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace llvm;

std::string accel::cpu::getCacheFolder() {
  auto get = [](const char *name) {
    return sys::Process::GetEnv(name).value_or("");
  };
  if (std::string given = get("ACCEL_CACHE"); !given.empty())
    return given;
  SmallString<128> folder(get("XDG_CACHE_HOME"));
  if (folder.empty()) {
    folder = get("HOME");
    if (folder.empty())
      return "";
    sys::path::append(folder, ".cache");
  }
  sys::path::append(folder, "acc");
  return std::string(folder);
}
