// Which files a run reads and which it is to write: an output never takes the
// place of an input, nor of another output. Files are told apart by what they
// are on disk, because one file has many names.

#ifndef ACCEL_RUNTIME_RUN_FILESINUSE_H
#define ACCEL_RUNTIME_RUN_FILESINUSE_H

#include "accel-rt/Status.h"

#include <cstdint>
#include <map>
#include <set>

namespace accel::rt {

class FilesInUse {
public:
  /// Notes a file that is read, for what; one that is not there is no file.
  void reads(int fd, const std::string &what);
  void reads(const std::string &path, const std::string &what);

  /// Notes a file that is to be written, by an option. Errors: it is read, or
  /// another one is to be written there.
  Status writes(const std::string &path, const std::string &option);

private:
  using Identity = std::pair<uint64_t, uint64_t>; ///< Device and inode.
  std::map<Identity, std::string> inputs;
  /// By the folder and the name in it: what is written need not be there yet.
  std::map<std::pair<Identity, std::string>, std::string> outputs;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_FILESINUSE_H
