// An open file of samples, and whether it is still what it was when it was
// opened: a run reads it for days, and others can write to it meanwhile. It is
// read by pread and never mapped: a file that is cut short is an error of a
// read, not a signal, and its pages are the system's cache, not the process's.

#ifndef ACCEL_RUNTIME_DATA_DATAFILE_H
#define ACCEL_RUNTIME_DATA_DATAFILE_H

#include "Data/TensorFile.h"

namespace accel::rt {

class DataFile {
public:
  /// Errors: it cannot be opened, or is no regular file. `of` stands behind the
  /// name in the message: " of input 'x'".
  Status open(const std::string &path, const std::string &of = "");

  int descriptor() const { return file.get(); }
  const std::string &path() const { return name; }
  uint64_t bytes() const { return size; }

  /// An error where the file has another size or was written to since it was
  /// opened, which names both. A file that was moved, removed or replaced by
  /// another of its name is read on: the one that is open stays what it was.
  Status check() const;

  /// Reads all of [offset, offset + count). Errors: the file is shorter now,
  /// and the system's.
  Status read(uint64_t offset, void *target, uint64_t count) const {
    return readRange(file.get(), name, offset, target, count);
  }

  /// Tells the system that [offset, offset + count) will be read soon, so that
  /// it is in memory by then. Never waits for the file's bytes.
  void announce(uint64_t offset, uint64_t count) const;

private:
  FileHandle file;
  std::string name;
  uint64_t size = 0;
  int64_t writtenAt = 0; ///< Nanoseconds of the system's clock.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_DATAFILE_H
