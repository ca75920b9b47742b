// Writes an executable file whole or not at all: into a temporary beside it,
// synchronised to storage, then renamed over the name.

#include "Base/SyncName.h"
#include "Base/SystemError.h"
#include "Base/UniqueName.h"
#include "Format/FileSection.h"
#include "Format/Json.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Removes the temporary unless it was renamed.
struct Temporary {
  std::string path;
  int fd = -1;
  ~Temporary() {
    if (fd >= 0)
      close(fd);
    if (!path.empty())
      unlink(path.c_str());
  }
};

Status cannotWrite(const std::string &path) {
  return Status::error("cannot write " + inQuotes(path) + ": " +
                       systemError(errno));
}

bool writeAll(int fd, const void *data, uint64_t bytes) {
  auto *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(fd, next, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    next += written;
    bytes -= static_cast<uint64_t>(written);
  }
  return true;
}

uint64_t alignUp(uint64_t value) {
  return (value + kSectionAlignment - 1) / kSectionAlignment *
         kSectionAlignment;
}

bool pad(int fd, uint64_t from) {
  static const char zeros[kSectionAlignment] = {};
  return writeAll(fd, zeros, alignUp(from) - from);
}

/// Copies the bytes behind what `fd` has, and holds them to their hash: between
/// hashing and copying the file may have changed.
Status copySection(const FileSection &section, int fd,
                   const std::string &path) {
  bool written = true;
  uint64_t hash = 0;
  ACCEL_RT_RETURN_IF_ERROR(readSection(
      section,
      [&](const char *data, uint64_t bytes) {
        return written = writeAll(fd, data, bytes);
      },
      hash));
  if (!written)
    return cannotWrite(path);
  if (hash != section.hash)
    return Status::error("cannot write " + inQuotes(path) +
                         ": expected the weights in " + inQuotes(section.path) +
                         " as they were when they were read first, found "
                         "other bytes");
  return pad(fd, section.bytes) ? Status() : cannotWrite(path);
}

/// The JSON string that has a NUL in it, as it is written; empty: none has.
std::string findNul(const std::string &json) {
  const std::string nul = "\\u0000";
  for (size_t at = json.find(nul); at != std::string::npos;
       at = json.find(nul, at + 1)) {
    size_t slashes = 0;
    while (slashes < at && json[at - slashes - 1] == '\\')
      ++slashes;
    if (slashes % 2 == 0) { // else a backslash stands before a u
      size_t begin = json.rfind('"', at), end = json.find('"', at);
      return inQuotes(json.substr(begin + 1, end - begin - 1));
    }
  }
  return "";
}

/// Notes each way in which a command calls a kernel, once.
void signKernels(Executable &executable) {
  std::set<std::pair<std::string, uint64_t>> known;
  executable.kernels.clear();
  for (const Program &program : executable.programs)
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands)
        if (auto kernel = kernelSignature(program, command);
            kernel &&
            known.insert({kernel->function, kernel->signature}).second)
          executable.kernels.push_back(std::move(*kernel));
}

} // namespace

Status writeExecutableFile(Executable executable,
                           const std::vector<SectionData> &sections,
                           const std::string &path) {
  return writeExecutableFile(std::move(executable), sections, {}, path);
}

Status writeExecutableFile(Executable executable,
                           const std::vector<SectionData> &sections,
                           const std::vector<FileSection> &fromFiles,
                           const std::string &path) {
  executable.sections.clear();
  uint64_t offset = 0;
  for (const SectionData &data : sections) {
    executable.sections.push_back({data.name, data.dtype, data.shape, offset,
                                   data.bytes,
                                   hashBytes(data.data, data.bytes)});
    offset = alignUp(offset + data.bytes);
  }
  for (const FileSection &section : fromFiles) {
    executable.sections.push_back({section.name, section.dtype, section.shape,
                                   offset, section.bytes, section.hash});
    offset = alignUp(offset + section.bytes);
  }
  signKernels(executable);
  if (Status status = validate(executable); !status.ok())
    return Status::error("cannot write " + inQuotes(path) + ": " +
                         status.message());
  std::string header = format::toJson(executable);
  if (std::string text = findNul(header); !text.empty())
    return Status::error("cannot write " + inQuotes(path) +
                         ": expected names without NUL, which no reader takes, "
                         "found " +
                         text);
  uint64_t length = header.size(), hash = hashBytes(header.data(), length);

  // A device or pipe cannot be renamed over; nobody means to replace one.
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Status::error("cannot write " + inQuotes(path) +
                         ": expected a regular file");
  Temporary file;
  errno = makeUnique(folderOf(path), path, file.path, [&](auto &name) {
    file.fd =
        ::open(name.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return file.fd >= 0;
  });
  if (errno) {
    file.path.clear();
    return cannotWrite(path);
  }
  if (!writeAll(file.fd, &length, sizeof length) ||
      !writeAll(file.fd, header.data(), length) ||
      !writeAll(file.fd, &hash, sizeof hash) ||
      !pad(file.fd, length + 2 * sizeof length))
    return cannotWrite(path);
  for (const SectionData &data : sections)
    if (!writeAll(file.fd, data.data, data.bytes) || !pad(file.fd, data.bytes))
      return cannotWrite(path);
  for (const FileSection &section : fromFiles)
    if (Status status = copySection(section, file.fd, path); !status.ok())
      return status;
  if (fsync(file.fd) != 0)
    return cannotWrite(path);
  if (rename(file.path.c_str(), path.c_str()) != 0)
    return cannotWrite(path);
  file.path.clear();
  errno = syncName(path, file.fd);
  return errno ? cannotWrite(path) : Status();
}

} // namespace accel::rt
