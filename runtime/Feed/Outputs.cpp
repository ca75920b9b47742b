// Output files, whole or not at all.

#include "Base/SyncName.h"
#include "Base/SystemError.h"
#include "Base/UniqueName.h"
#include "Data/OpenTensor.h"
#include "Feed/InputOutput.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>

namespace accel::rt {

std::vector<std::string> otherNames(const Executable &executable,
                                    const std::string &output) {
  std::vector<std::string> names;
  for (const StatePlan &state : executable.states)
    if (state.name + ".grad" == output)
      for (const std::string &alias : state.aliases)
        names.push_back(alias + ".grad");
  return names;
}

const std::vector<int64_t> &outerShape(const Executable &executable,
                                       const TensorPlan &output) {
  for (const StatePlan &state : executable.states)
    if (state.name + ".grad" == output.name && state.shape == output.shape)
      return state.valueShape();
  return output.shape;
}

/// Makes `other` a second name of a published file, in one step.
static Status linkFile(const AtomicFile &file, const std::string &other) {
  std::string temporary;
  int error = makeUnique(folderOf(other), other, temporary, [&](auto &name) {
    return link(file.path().c_str(), name.c_str()) == 0;
  });
  if (!error && rename(temporary.c_str(), other.c_str()) != 0) {
    error = errno;
    unlink(temporary.c_str());
  }
  if (!error)
    error = syncName(other, file.descriptor());
  return error ? Status::error("cannot write " + inQuotes(other) + ": " +
                               systemError(error))
               : Status();
}

/// Makes the folder, so that it stays whatever becomes of the power.
static Status makeFolder(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  int error = mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST ? errno : 0;
  if (!error) {
    FileHandle handle(
        ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Files can be made in a folder that cannot be listed.
    error = handle            ? syncName(folder, handle.get())
            : errno != EACCES ? errno
                              : 0;
  }
  return error ? Status::error("cannot make the folder " + inQuotes(folder) +
                               " for outputs: " + systemError(error))
               : Status();
}

/// Refuses names of outputs that no file can have, or that two would have: a
/// second name is given to a file when the work is done.
static Status checkNames(const Executable &executable,
                         const std::vector<TensorPlan> &wanted) {
  constexpr size_t kLongest = 255; // of Linux's file systems
  std::unordered_map<std::string, std::string> names;
  for (const TensorPlan &tensor : wanted) {
    if (isReport(executable, tensor.name))
      continue;
    std::vector<std::string> all = otherNames(executable, tensor.name);
    all.insert(all.begin(), tensor.name);
    for (const std::string &name : all) {
      std::string file = fileNameOf(name) + ".npy";
      if (file.size() > kLongest)
        return Status::error(
            "cannot write output " + inQuotes(name.substr(0, 40) + "…") +
            ": its file's name takes " + std::to_string(file.size()) +
            " bytes, and has " + std::to_string(kLongest) +
            " at most: export the model with a shorter name of it, or run it "
            "without --outputs");
      auto [other, isFirst] = names.emplace(file, name);
      if (!isFirst && other->second != name)
        return Status::error("cannot write outputs " + inQuotes(other->second) +
                             " and " + inQuotes(name) + ": both are " +
                             inQuotes(file) +
                             ": export the model with other names of them");
    }
  }
  return Status();
}

Status Outputs::create(const Executable &executable,
                       const std::vector<TensorPlan> &wanted,
                       const std::string &folder, const SharedName &shared) {
  ACCEL_RT_RETURN_IF_ERROR(checkNames(executable, wanted));
  if (!shared.isOthers)
    ACCEL_RT_RETURN_IF_ERROR(makeFolder(folder));
  for (const TensorPlan &tensor : wanted) {
    if (isReport(executable, tensor.name))
      continue;
    std::string path = folder + "/" + fileNameOf(tensor.name) + ".npy";
    const std::vector<int64_t> &shape = outerShape(executable, tensor);
    std::string header = npyHeader(tensor.dtype, shape);
    uint64_t bytes = static_cast<uint64_t>(numElements(shape)) *
                     static_cast<uint64_t>(dtypeBytes(tensor.dtype));
    AtomicFile file;
    ACCEL_RT_RETURN_IF_ERROR(file.create(path, header.size() + bytes, shared));
    if (!shared.isOthers)
      ACCEL_RT_RETURN_IF_ERROR(
          writeRange(file.descriptor(), path, 0, header.data(), header.size()));
    OpenTensor open;
    open.name = tensor.name;
    open.range = {file.descriptor(), path,  header.size(),
                  tensor.dtype,      shape, rowMajorStrides(shape)};
    for (const std::string &name : otherNames(executable, tensor.name))
      links.push_back({files.size(), folder + "/" + fileNameOf(name) + ".npy"});
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

std::vector<std::string> Outputs::paths() const {
  std::vector<std::string> all;
  for (const AtomicFile &file : files)
    all.push_back(file.path());
  for (const auto &[file, other] : links)
    all.push_back(other);
  return all;
}

Status Outputs::synchronise() {
  for (AtomicFile &file : files)
    ACCEL_RT_RETURN_IF_ERROR(file.synchronise());
  return Status();
}

Status Outputs::finish() {
  for (AtomicFile &file : files)
    ACCEL_RT_RETURN_IF_ERROR(file.complete());
  // All are complete: only now the old ones go.
  for (AtomicFile &file : files)
    ACCEL_RT_RETURN_IF_ERROR(file.publish());
  for (const auto &[file, other] : links)
    ACCEL_RT_RETURN_IF_ERROR(linkFile(files[file], other));
  return Status();
}

} // namespace accel::rt
