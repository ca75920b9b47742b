// Opens an executable file: every byte of the header is checked before use, and
// every section's hash when it is read.

#include "Base/SystemError.h"
#include "Format/Json.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Headers are some hundred bytes a command; a length above this is corruption.
constexpr uint64_t kMaxHeader = uint64_t(1) << 31;

/// 1 if all bytes were read, 0 if the file ended, -1 on an error (errno).
int readAll(int fd, void *target, uint64_t bytes, uint64_t offset) {
  auto *next = static_cast<char *>(target);
  while (bytes > 0) {
    ssize_t got = pread(fd, next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? -1 : 0;
    next += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return 1;
}

Status damaged(const std::string &path, const std::string &message) {
  return Status::error(inQuotes(path) + " is damaged: " + message);
}

} // namespace

ExecutableFile::~ExecutableFile() {
  if (fd >= 0)
    close(fd);
}

Status ExecutableFile::open(const std::string &path,
                            std::unique_ptr<ExecutableFile> &result) {
  std::unique_ptr<ExecutableFile> file(new ExecutableFile);
  file->filePath = path;
  file->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file->fd < 0 || fstat(file->fd, &info) != 0)
    return Status::error("cannot open " + inQuotes(path) + ": " +
                         systemError(errno));
  if (!S_ISREG(info.st_mode))
    return Status::error("cannot open " + inQuotes(path) +
                         ": expected a regular file");
  uint64_t size = static_cast<uint64_t>(info.st_size), length = 0, hash = 0;
  int got = readAll(file->fd, &length, sizeof length, 0);
  if (got < 0)
    return Status::error("cannot read " + inQuotes(path) + ": " +
                         systemError(errno));
  if (got == 0 || length < 2 || length > kMaxHeader)
    return Status::error(
        inQuotes(path) +
        " is no executable of acc, which acc-opt writes: expected a "
        "header length");
  if (size < length + 16)
    return damaged(path, "expected a header of " + std::to_string(length) +
                             " bytes, found " + std::to_string(size) +
                             " bytes in the file");
  std::string header(length, '\0');
  errno = EIO; // where the file has become shorter
  if (readAll(file->fd, header.data(), length, 8) != 1 ||
      readAll(file->fd, &hash, sizeof hash, 8 + length) != 1)
    return Status::error("cannot read " + inQuotes(path) + ": " +
                         systemError(errno));
  if (header[0] != '{')
    return Status::error(
        inQuotes(path) +
        " is no executable of acc, which acc-opt writes: expected a "
        "JSON header");
  if (hash != hashBytes(header.data(), length))
    return damaged(path, "the header does not match its hash");
  if (Status status = format::fromJson(header, file->executable); !status.ok())
    return Status::error("cannot use " + inQuotes(path) + ": " +
                         status.message());
  file->payloadStart = (length + 16 + kSectionAlignment - 1) /
                       kSectionAlignment * kSectionAlignment;
  for (const Section &section : file->executable.sections)
    if (section.offset > size || section.bytes > size ||
        file->payloadStart + section.offset + section.bytes > size)
      return damaged(path, "expected section " + inQuotes(section.name) +
                               " to end at byte " +
                               std::to_string(file->payloadStart +
                                              section.offset + section.bytes) +
                               ", found " + std::to_string(size) +
                               " bytes in the file");
  if (Status status = validate(file->executable); !status.ok())
    return damaged(path, status.message());
  file->sections.reserve(file->executable.sections.size());
  for (const Section &section : file->executable.sections)
    file->sections.emplace(section.name, &section);
  result = std::move(file);
  return Status();
}

const Section *ExecutableFile::find(const std::string &name) const {
  auto found = sections.find(name);
  return found == sections.end() ? nullptr : found->second;
}

Status ExecutableFile::read(const Section &section, void *target) const {
  int got = readAll(fd, target, section.bytes, fileOffset(section));
  if (got < 0)
    return Status::error("cannot read " + inQuotes(filePath) + ": " +
                         systemError(errno));
  if (got == 0 || hashBytes(target, section.bytes) != section.hash)
    return damaged(filePath, "section " + inQuotes(section.name) +
                                 " does not match its hash");
  return Status();
}

} // namespace accel::rt
