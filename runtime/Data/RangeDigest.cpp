// Cutting ranges into blocks, and hashing them.

#include "Data/RangeDigest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace accel::rt {

RangeBlocks::RangeBlocks(const TensorRange &range, const Part &part,
                         const Coordinates &coordinates) {
  for (size_t d = 0; d < part.shape.size(); ++d) {
    int64_t count = coordinates.count(part.axes[d]);
    if (count <= 1)
      continue;
    Split split{
        d, range.shape[d], part.shape[d] / count, count,
        static_cast<uint64_t>(range.strides[d] * dtypeBytes(range.dtype))};
    if (part.interleaved && part.interleaved->dim == static_cast<int64_t>(d)) {
      split.runs = interleavedRuns(*part.interleaved, split.piece);
      std::sort(split.runs.begin(), split.runs.end(),
                [](const PieceRun &a, const PieceRun &b) {
                  return a.inFile < b.inFile;
                });
    }
    // What changes fastest in the file ends a run: of as many bytes the one
    // that is cut, and not the single row that they are (padded to several).
    uint64_t whole = static_cast<uint64_t>(split.size) * split.bytes,
             ownRun = static_cast<uint64_t>(split.piece) * split.bytes;
    if (whole &&
        (!period || std::pair(whole, ownRun) < std::pair(period, run))) {
      period = whole;
      run = ownRun;
      fastest = splits.size();
    }
    pieces *= static_cast<size_t>(count);
    splits.push_back(std::move(split));
  }
}

const PieceRun &RangeBlocks::Split::runAt(int64_t index) const {
  auto after = std::upper_bound(
      runs.begin(), runs.end(), index,
      [](int64_t at, const PieceRun &run) { return at < run.inFile; });
  return *std::prev(after);
}

uint64_t RangeBlocks::endOf(uint64_t at) const {
  if (!isSplit())
    return UINT64_MAX;
  uint64_t start = at / period * period, within = at - start;
  if (const Split &split = splits[fastest]; !split.runs.empty()) {
    const PieceRun &held =
        split.runAt(static_cast<int64_t>(within / split.bytes));
    return start +
           static_cast<uint64_t>(held.inFile + held.count) * split.bytes;
  }
  return start + std::min(period, (within / run + 1) * run);
}

size_t RangeBlocks::pieceAt(uint64_t at) const {
  size_t number = 0;
  if (isSplit())
    for (const Split &split : splits) {
      auto index = static_cast<int64_t>(at / split.bytes) % split.size;
      index =
          split.runs.empty() ? index / split.piece : split.runAt(index).piece;
      number = number * static_cast<size_t>(split.count) +
               static_cast<size_t>(index);
    }
  return number;
}

size_t RangeBlocks::pieceOf(const Part &part,
                            const Coordinates &coordinates) const {
  size_t number = 0;
  for (const Split &split : splits)
    number = number * static_cast<size_t>(split.count) +
             static_cast<size_t>(coordinates.index(part.axes[split.dim]));
  return number;
}

struct RangeDigest::Hasher {
  XXH3_state_t state;
};

RangeDigest::RangeDigest(const RangeBlocks &blocks)
    : blocks(blocks), hasher(std::make_unique<Hasher>()),
      sums(blocks.numPieces()) {
  XXH3_64bits_reset(&hasher->state);
  isOpen = !blocks.isSplit(); // it is there even if it is empty
}

RangeDigest::~RangeDigest() = default;

void RangeDigest::add(uint64_t at, const void *bytes, uint64_t count) {
  auto *next = static_cast<const char *>(bytes);
  while (count > 0) {
    uint64_t end = blocks.endOf(at), here = std::min(count, end - at);
    if (!isOpen && at + here == end) { // all of a block at once
      sums[blocks.pieceAt(at)] += XXH3_64bits_withSeed(next, here, at);
    } else {
      if (!isOpen)
        XXH3_64bits_reset_withSeed(&hasher->state, begin = at);
      isOpen = true;
      XXH3_64bits_update(&hasher->state, next, here);
      if (at + here == end)
        close();
    }
    next += here;
    at += here;
    count -= here;
  }
}

void RangeDigest::close() {
  sums[blocks.pieceAt(begin)] += XXH3_64bits_digest(&hasher->state);
  isOpen = false;
}

uint64_t RangeDigest::value() {
  if (isOpen)
    close();
  uint64_t sum = 0;
  for (uint64_t piece : sums)
    sum += piece;
  return sum;
}

} // namespace accel::rt
