// The index of Megatron-LM's datasets (PREFIX.idx beside PREFIX.bin): of which
// tokens each sequence, and of which sequences each document is made. After
// megatron/core/datasets/indexed_dataset.py: the bytes "MMIDIDX\0\0", version 1
// and the count of sequences and of document bounds as u64 (between them a byte
// that says the tokens' type), then i32 lengths and i64 places of sequences and
// i64 bounds of documents, all little-endian.

#ifndef ACCEL_RUNTIME_DATA_MEGATRONINDEX_H
#define ACCEL_RUNTIME_DATA_MEGATRONINDEX_H

#include "Data/DataFile.h"

#include <array>
#include <optional>

namespace accel::rt {

/// Which part of a dataset's sequences is read: those in [begin, end), of 1.
struct DataSplit {
  double begin = 0, end = 1;
};

/// Reads "949,50,1" as Megatron-LM does its --split: the shares of training,
/// validation and test, in any unit; the last ones may be left out. Errors: no
/// such numbers, or none that is more than 0.
Status readSplit(const std::string &text, std::array<DataSplit, 3> &splits);

class MegatronIndex {
public:
  /// Whether the file begins as an index does.
  static bool isIndex(const DataFile &file);

  /// Reads the header of the index and goes through its sequences once.
  /// `dataBytes` are those of PREFIX.bin. Errors: it is no index of version 1,
  /// its tokens are no integers, sequences do not follow each other in the
  /// data from their first byte to their last, documents do not end where
  /// sequences do, or files of other sizes.
  Status open(const std::string &path, uint64_t dataBytes);

  const DataFile &source() const { return file; }
  DType dtype() const { return type; }
  int64_t numSequences() const { return sequences; }
  /// The tokens [begin, end) of a part's sequences: sequence k of n belongs to
  /// it if round(split.begin · n) <= k < round(split.end · n), where halves
  /// are rounded to the even number, as Megatron-LM's builder does it.
  Status tokensOf(const DataSplit &split, int64_t &begin, int64_t &end) const;

private:
  Status checkSequences(uint64_t dataBytes) const;
  Status checkDocuments() const;
  uint64_t pointersAt() const;
  /// The number of tokens before a sequence.
  Status tokensBefore(int64_t sequence, int64_t &tokens) const;

  DataFile file;
  DType type = DType::UI16;
  int64_t sequences = 0, bounds = 0, tokens = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_MEGATRONINDEX_H
