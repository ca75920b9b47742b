// The system calls that tell whether a file could be written.

#include "OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

std::string accel::driver::whyNotWrite(StringRef output, bool replaces,
                                       ArrayRef<std::string> inputs) {
  if (output == "-")
    return "";
  std::string path = output.str();
  struct stat found, other;
  bool isThere = ::stat(path.c_str(), &found) == 0;
  if (!isThere && errno != ENOENT)
    return std::strerror(errno);
  if (isThere && S_ISDIR(found.st_mode))
    return "Is a directory";
  if (isThere && S_ISREG(found.st_mode))
    for (const std::string &input : inputs)
      if (::stat(input.c_str(), &other) == 0 && other.st_dev == found.st_dev &&
          other.st_ino == found.st_ino)
        return "it is read here as '" + input + "'; give another name";
  if (isThere && (!S_ISREG(found.st_mode) || !replaces))
    return ::access(path.c_str(), W_OK) != 0 ? std::strerror(errno) : "";
  SmallString<128> folder = sys::path::parent_path(output);
  if (folder.empty())
    folder = ".";
  return ::access(folder.c_str(), W_OK | X_OK) != 0 ? std::strerror(errno) : "";
}

std::string accel::driver::keepOutput(ToolOutputFile &output) {
  output.os().flush();
  if (output.os().has_error()) {
    std::string why = output.os().error().message();
    output.os().clear_error(); // or else LLVM ends the process by itself
    return why;
  }
  output.keep();
  return "";
}
