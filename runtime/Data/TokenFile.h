// Tokens to train on: a .npy of [samples, length] or of one stream, a raw file
// of little-endian integers, or a Megatron-LM dataset, cut into samples of the
// program's length.

#ifndef ACCEL_RUNTIME_DATA_TOKENFILE_H
#define ACCEL_RUNTIME_DATA_TOKENFILE_H

#include "Data/MegatronIndex.h"

#include <functional>

namespace accel::rt {

class TokenFile {
public:
  /// Opens `path`: a .npy file by name or by its first bytes; a Megatron-LM
  /// dataset, PREFIX, PREFIX.bin or PREFIX.idx, where PREFIX.idx begins as such
  /// an index; else raw integers of type `rawType` (uint16, int32, uint32,
  /// int64; empty: uint16). `length` is that of the program's samples, and
  /// `split` the part of a dataset's sequences that is read.
  /// Errors: another length of samples, elements that are no integers, less
  /// than one sample, a type given for a file that says its own, a split given
  /// for another kind of file, and those of MegatronIndex.
  Status open(const std::string &path, const std::string &rawType,
              int64_t length, const std::optional<DataSplit> &split = {});

  /// Adds the data, and the index of a dataset.
  void addTo(std::vector<const DataFile *> &files) const;
  /// The error of one of them that is no longer what it was. Allocates nothing.
  Status check() const;
  const std::string &path() const { return file.path(); }
  /// A stream's last tokens, less than a sample, are never read.
  int64_t numSamples() const { return samples; }
  /// How many tokens of a sample have one behind them, which is their label
  /// where labels are the next tokens: all in a stream, but for its very last
  /// token, and all but one where samples are rows of their own.
  int64_t numFollowed(int64_t sample) const {
    bool isCut = range.shape.size() == 1;
    bool hasNext = (sample + 1) * length < numElements(range.shape);
    return isCut && hasNext ? length : length - 1;
  }

  /// The XXH3-64 of all samples' bytes, which tells this data from other data
  /// of the same length. Reads the file once; `told` hears how many bytes are
  /// read, and of how many, as it goes.
  Status hash(const std::function<void(uint64_t, uint64_t)> &told,
              uint64_t &value) const;

  /// Reads tokens [begin, begin + count) of a sample into `tokens`. Requires
  /// the range to lie in it (and in the token behind it where the last one has
  /// one), and count <= kMaxRead. Allocates nothing.
  static constexpr int64_t kMaxRead = 512;
  Status read(int64_t sample, int64_t begin, int64_t count,
              int64_t *tokens) const;
  /// Tells the system that a sample will be read soon.
  void announce(int64_t sample) const;

private:
  Status openNumpy(const std::string &rawType);
  Status openRaw(const std::string &rawType);
  Status openDataset(const std::string &rawType, const DataSplit &split);
  Status refused(const std::string &message) const;
  /// A dataset's last sample has a token behind it, as GPTDataset's has; a
  /// stream is as many samples as it has.
  bool overlaps() const { return index.has_value(); }
  uint64_t placeOf(int64_t sample, int64_t token) const {
    return range.offset + static_cast<uint64_t>((sample * length + token) *
                                                dtypeBytes(range.dtype));
  }

  DataFile file;
  std::optional<MegatronIndex> index;
  TensorRange range;
  int64_t samples = 0, length = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_TOKENFILE_H
