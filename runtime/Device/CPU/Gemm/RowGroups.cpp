// A counting sort, and the cutting of groups into pieces.

#include "Device/CPU/Gemm/RowGroups.h"

#include <algorithm>
#include <string>

namespace accel::rt::cpu {
namespace {
/// Pieces of fewer rows would read a matrix for too few products; those of more
/// would not stay in cache while they are multiplied.
constexpr int64_t kLeast = 8, kMost = 256;
} // namespace

RowGroups::RowGroups(int64_t rows, int64_t groups)
    : numRows(rows), numGroups(groups) {
  // As large as a group is twice over, if all are of one size.
  int64_t wanted = 2 * ((rows + groups - 1) / groups);
  pieceSizes.push_back(kLeast);
  while (pieceSizes.back() < std::min(wanted, kMost))
    pieceSizes.push_back(2 * pieceSizes.back());
  int64_t most = rows / pieceSizes.back() +
                 groups * static_cast<int64_t>(pieceSizes.size());
  firstPieces = groups + 2;
  sorted = firstPieces + groups + 1;
  pieceTable = sorted + rows;
  end = pieceTable + most * int64_t(sizeof(Piece) / sizeof(int32_t));
}

int64_t RowGroups::bytes() const {
  return (end * int64_t(sizeof(int32_t)) + 63) / 64 * 64;
}

int32_t RowGroups::chooseSize(int64_t rest) const {
  size_t size = pieceSizes.size() - 1;
  while (size > 0 && pieceSizes[size - 1] >= rest)
    --size;
  // A quarter of zeros costs less than a product more.
  if (size > 0 && rest < pieceSizes[size] / 4 * 3)
    --size;
  return static_cast<int32_t>(size);
}

template <class Index>
Status RowGroups::sortBy(const Index *groups, int32_t *order) const {
  int32_t *begins = order, *rows = order + sorted;
  std::fill_n(begins, numGroups + 2, 0);
  // The number of a group's rows where the next one will begin.
  for (int64_t row = 0; row < numRows; ++row) {
    int64_t group = groups[row];
    if (group < -1 || group >= numGroups)
      return Status::error("expected groups in [0, " +
                           std::to_string(numGroups) +
                           "), or -1 for none, found " + std::to_string(group) +
                           " of row " + std::to_string(row));
    ++begins[(group < 0 ? numGroups : group) + 1];
  }
  for (int64_t group = 0; group <= numGroups; ++group)
    begins[group + 1] += begins[group];
  for (int64_t row = 0; row < numRows; ++row) {
    int64_t group = groups[row];
    rows[begins[group < 0 ? numGroups : group]++] = static_cast<int32_t>(row);
  }
  // Each begin has moved to its group's end.
  std::copy_backward(begins, begins + numGroups + 1, begins + numGroups + 2);
  begins[0] = 0;

  auto *piece = reinterpret_cast<Piece *>(order + pieceTable), *first = piece;
  for (int64_t group = 0; group < numGroups; ++group) {
    order[firstPieces + group] = static_cast<int32_t>(piece - first);
    for (int32_t at = begins[group]; at < begins[group + 1];) {
      int32_t size = chooseSize(begins[group + 1] - at);
      auto count = static_cast<int32_t>(std::min<int64_t>(
          pieceSizes[static_cast<size_t>(size)], begins[group + 1] - at));
      *piece++ = {static_cast<int32_t>(group), at, count, size};
      at += count;
    }
  }
  order[firstPieces + numGroups] = static_cast<int32_t>(piece - first);
  return Status();
}

Status RowGroups::sort(const void *groups, bool wide, void *order) const {
  return wide ? sortBy(static_cast<const int64_t *>(groups),
                       static_cast<int32_t *>(order))
              : sortBy(static_cast<const int32_t *>(groups),
                       static_cast<int32_t *>(order));
}

int64_t RowGroups::countPieces(const void *order) const {
  return static_cast<const int32_t *>(order)[firstPieces + numGroups];
}

const RowGroups::Piece *RowGroups::pieces(const void *order) const {
  return reinterpret_cast<const Piece *>(static_cast<const int32_t *>(order) +
                                         pieceTable);
}

const RowGroups::Piece *RowGroups::beginOfGroup(const void *order,
                                                int64_t group) const {
  return pieces(order) +
         static_cast<const int32_t *>(order)[firstPieces + group];
}

const int32_t *RowGroups::rows(const void *order) const {
  return static_cast<const int32_t *>(order) + sorted;
}

const int32_t *RowGroups::beginOfNone(const void *order) const {
  return rows(order) + static_cast<const int32_t *>(order)[numGroups];
}

int64_t RowGroups::countNone(const void *order) const {
  const int32_t *begins = static_cast<const int32_t *>(order);
  return begins[numGroups + 1] - begins[numGroups];
}

} // namespace accel::rt::cpu
