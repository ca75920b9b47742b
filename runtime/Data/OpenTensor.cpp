// From an open file and its header to a range of elements.

#include "Data/OpenTensor.h"

#include "Base/SystemError.h"

#include <cerrno>
#include <sys/mman.h>

namespace accel::rt {

static Status refuse(const std::string &path, const std::string &message) {
  return Status::error("cannot use " + inQuotes(path) + ": " + message);
}

static void fillRange(int fd, const std::string &path, TensorHeader &&header,
                      TensorRange &range) {
  range.fd = fd;
  range.path = path;
  range.offset = header.offset;
  range.dtype = header.dtype;
  range.shape = std::move(header.shape);
  range.strides = std::move(header.strides);
}

Status openNpy(int fd, const std::string &path, TensorRange &range) {
  uint64_t size, begin;
  ACCEL_RT_RETURN_IF_ERROR(sizeOfFile(fd, path, size));
  std::string front(std::min(size, kNpyStart), '\0');
  ACCEL_RT_RETURN_IF_ERROR(readRange(fd, path, 0, front.data(), front.size()));
  if (Status status = findNpyElements(front, size, begin); !status.ok())
    return refuse(path, status.message());
  front.resize(begin);
  ACCEL_RT_RETURN_IF_ERROR(readRange(fd, path, 0, front.data(), begin));
  TensorHeader header;
  if (Status status = readNpyHeader(front, size, header); !status.ok())
    return refuse(path, status.message());
  fillRange(fd, path, std::move(header), range);
  return Status();
}

Status openTensorProto(int fd, const std::string &path, TensorRange &range,
                       std::string &name, FileHandle &memory) {
  uint64_t size;
  ACCEL_RT_RETURN_IF_ERROR(sizeOfFile(fd, path, size));
  if (size == 0)
    return refuse(path, "expected a TensorProto, found an empty file");
  void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED)
    return refuse(path, std::string("cannot map it: ") + systemError(errno));
  TensorHeader header;
  std::optional<std::vector<char>> typed;
  Status status =
      readTensorProto({static_cast<const char *>(mapped), size}, header, typed);
  munmap(mapped, size);
  if (!status.ok())
    return refuse(path, status.message());
  if (typed) {
    memory = FileHandle(memfd_create("accel-input", MFD_CLOEXEC));
    if (!memory)
      return refuse(path, std::string("cannot make a file in memory for its "
                                      "elements: ") +
                              systemError(errno));
    ACCEL_RT_RETURN_IF_ERROR(
        writeRange(memory.get(), path, 0, typed->data(), typed->size()));
    fd = memory.get();
  }
  name = header.name;
  fillRange(fd, path, std::move(header), range);
  return Status();
}

} // namespace accel::rt
