// Output files, whole or not at all.

#include "Core/InputOutput.h"
#include "Data/Npy.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {

Outputs::~Outputs() {
  for (const Output &output : outputs)
    if (output.hasName)
      unlink(output.temporary.c_str());
}

Status Outputs::create(const Executable &executable,
                       const std::string &folder) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return Status::error("cannot make the folder " + inQuotes(folder) +
                         " for outputs: " + std::strerror(errno));
  for (const TensorPlan &tensor : executable.outputs) {
    std::string path = folder + "/" + fileNameOf(tensor.name) + ".npy";
    std::string temporary = path + ".tmp." + std::to_string(getpid());
    auto fail = [&](int error) {
      return Status::error("cannot write " + inQuotes(path) + ": " +
                           std::strerror(error));
    };
    FileHandle file(
        ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666));
    bool hasName = !file && (errno == EOPNOTSUPP || errno == EISDIR);
    if (hasName)
      file = FileHandle(::open(temporary.c_str(),
                               O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file)
      return fail(errno);
    outputs.push_back({temporary, path, hasName});
    std::string header = npyHeader(tensor.dtype, tensor.part.shape);
    uint64_t bytes = static_cast<uint64_t>(numElements(tensor.part.shape)) *
                     static_cast<uint64_t>(dtypeBytes(tensor.dtype));
    if (int error = posix_fallocate(file.get(), 0,
                                    static_cast<off_t>(header.size() + bytes)))
      return fail(error);
    ACCEL_RT_RETURN_IF_ERROR(
        writeRange(file.get(), path, 0, header.data(), header.size()));
    OpenTensor open;
    open.name = tensor.name;
    open.range = {file.get(),        path,
                  header.size(),     tensor.dtype,
                  tensor.part.shape, rowMajorStrides(tensor.part.shape)};
    tensors.push_back(std::move(open));
    files.push_back(std::move(file));
  }
  return Status();
}

const TensorRange *Outputs::find(const std::string &name) const {
  for (const OpenTensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor.range;
  return nullptr;
}

Status Outputs::finish() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output &output = outputs[i];
    auto fail = [&] {
      return Status::error("cannot write " + inQuotes(output.path) + ": " +
                           std::strerror(errno));
    };
    if (fsync(files[i].get()) != 0)
      return fail();
    if (!output.hasName) {
      std::string unnamed = "/proc/self/fd/" + std::to_string(files[i].get());
      if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, output.temporary.c_str(),
                 AT_SYMLINK_FOLLOW) != 0)
        return fail();
      output.hasName = true;
    }
  }
  // All are complete: only now the old ones go.
  for (Output &output : outputs) {
    if (rename(output.temporary.c_str(), output.path.c_str()) != 0)
      return Status::error("cannot write " + inQuotes(output.path) + ": " +
                           std::strerror(errno));
    output.hasName = false;
  }
  return Status();
}

} // namespace accel::rt
