// A file that is there whole or not at all: written beside its name at full
// size, synchronised, then renamed. Outputs and saved weights are such files.

#ifndef ACCEL_RUNTIME_DATA_ATOMICFILE_H
#define ACCEL_RUNTIME_DATA_ATOMICFILE_H

#include "Data/TensorFile.h"

namespace accel::rt {

/// Where processes of several machines write a file, which lies in a folder
/// that all of them see.
struct SharedName {
  /// What the temporary's name has more than the file's, the same for all;
  /// empty: one process writes.
  std::string suffix;
  /// Another process makes the file and gives it its name.
  bool isOthers = false;
};

class AtomicFile {
public:
  AtomicFile() = default;
  AtomicFile(AtomicFile &&) = default;
  AtomicFile &operator=(AtomicFile &&) = delete;
  /// Removes the temporary file, unless it was renamed. (Without a name, where
  /// the file system can, it vanishes whatever happens.)
  ~AtomicFile();

  /// Makes the temporary, `bytes` long, so that a full disk is found now.
  /// Requires bytes > 0. Errors: the folder is missing or not writable, the
  /// disk is full, or `path` is there and no regular file; of another
  /// process's, that it is not there.
  Status create(const std::string &path, uint64_t bytes,
                const SharedName &shared = {});
  /// Brings what this process has written to storage.
  Status synchronise();
  int descriptor() const { return file.get(); }
  const std::string &path() const { return finalPath; }

  /// Synchronises to storage, and names the temporary. All files of a group
  /// are completed before the first is published.
  Status complete();
  /// Renames it over `path`.
  Status publish();
  /// Where complete() or publish() failed: leaves the file under another name,
  /// beside `path` or, where that cannot be, as a copy in the current folder or
  /// that of temporary files. Returns its path; empty: nothing could be kept.
  std::string rescue();

private:
  Status join(const SharedName &shared, uint64_t bytes);
  Status fail(int error) const;
  /// Gives the temporary, or a copy of it, a name in `folder` that nothing has
  /// yet. Returns 0 or an error number.
  int link(const std::string &folder, std::string &name) const;
  int copy(const std::string &folder, std::string &name) const;
  FileHandle file;
  std::string finalPath, temporary;
  bool hasName = false; ///< The temporary one.
  bool isSynchronised = false;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_ATOMICFILE_H
