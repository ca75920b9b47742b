// Tokens to train on: a .npy of [samples, length] or of one stream, or a raw
// file of little-endian integers, cut into samples of the program's length.

#ifndef ACCEL_RUNTIME_DATA_TOKENFILE_H
#define ACCEL_RUNTIME_DATA_TOKENFILE_H

#include "Data/TensorFile.h"

#include <functional>

namespace accel::rt {

class TokenFile {
public:
  /// Opens `path`, a .npy file by name or by its first bytes, else raw integers
  /// of type `rawType` (uint16, int32, uint32, int64; empty: uint16).
  /// `length` is that of the program's samples. Errors: another length of
  /// samples, elements that are no integers, less than one sample, a type given
  /// for a .npy file.
  Status open(const std::string &path, const std::string &rawType,
              int64_t length);

  int descriptor() const { return file.get(); }
  /// A stream's last tokens, less than a sample, are never read.
  int64_t numSamples() const { return samples; }

  /// The XXH3-64 of all samples' bytes, which tells this data from other data
  /// of the same length. Reads the file once; `told` hears how many bytes are
  /// read, and of how many, as it goes.
  Status hash(const std::function<void(uint64_t, uint64_t)> &told,
              uint64_t &value) const;

  /// Reads tokens [begin, begin + count) of a sample into `tokens`. Requires
  /// the range to lie in it, and count <= kMaxRead. Allocates nothing.
  static constexpr int64_t kMaxRead = 512;
  Status read(int64_t sample, int64_t begin, int64_t count,
              int64_t *tokens) const;

private:
  FileHandle file;
  TensorRange range;
  int64_t samples = 0, length = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_TOKENFILE_H
