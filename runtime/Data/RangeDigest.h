// The hash of exactly the bytes that were read, whoever reads which of them: a
// tensor's range of a file is cut into blocks that no rank's piece divides, and
// the digest of some blocks is the sum of their XXH3-64, each seeded with where
// it starts. So pieces are checked as they arrive, against what somebody who
// has read the whole range knows of them. A range that nobody splits is one
// block: its digest is the XXH3-64 of its bytes, as files and manifests have
// it.

#ifndef ACCEL_RUNTIME_DATA_RANGEDIGEST_H
#define ACCEL_RUNTIME_DATA_RANGEDIGEST_H

#include "Data/TensorFile.h"

namespace accel::rt {

/// How a range is cut, in bytes from its start.
class RangeBlocks {
public:
  /// One block, however long.
  RangeBlocks() = default;
  /// For a tensor that `part` deals out. Requires the strides of `range` to be
  /// those of its shape in some order of its dimensions.
  RangeBlocks(const TensorRange &range, const Part &part,
              const Coordinates &coordinates);

  /// Whether ranks have different pieces.
  bool isSplit() const { return period != 0; }
  /// The end of the block that `at` lies in.
  uint64_t endOf(uint64_t at) const;
  /// The number of the piece that holds the byte `at`, and of the piece at
  /// `coordinates`.
  size_t pieceAt(uint64_t at) const;
  size_t pieceOf(const Part &part, const Coordinates &coordinates) const;
  size_t numPieces() const { return pieces; }

private:
  struct Split {
    size_t dim;
    int64_t size, piece, count; ///< In elements; count of pieces.
    uint64_t bytes;             ///< From one index to the next.
    /// Of an interleaved dimension, by where they are in the file.
    std::vector<PieceRun> runs = {};

    /// The run that holds an index.
    const PieceRun &runAt(int64_t index) const;
  };
  std::vector<Split> splits;
  /// Bytes of a run that one piece has, and of all pieces' runs that follow
  /// each other; 0: the range is one block.
  uint64_t run = 0, period = 0;
  size_t fastest = 0; ///< The split whose pieces these are.
  size_t pieces = 1;
};

/// The digest of what was added so far.
class RangeDigest {
public:
  explicit RangeDigest(const RangeBlocks &blocks);
  ~RangeDigest();
  RangeDigest(const RangeDigest &) = delete;
  RangeDigest &operator=(const RangeDigest &) = delete;

  /// Adds bytes that were read at `at` of the range. A block comes from its
  /// start to its end, in one call or several.
  void add(uint64_t at, const void *bytes, uint64_t count);
  /// The sum over the blocks that have been added, or of those of one piece.
  uint64_t value();
  uint64_t valueOf(size_t piece) { return value(), sums[piece]; }

private:
  void close();
  struct Hasher;
  const RangeBlocks &blocks;
  std::unique_ptr<Hasher> hasher;
  uint64_t begin = 0; ///< Of the block at hand.
  bool isOpen = false;
  std::vector<uint64_t> sums; ///< By piece.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_RANGEDIGEST_H
