// Which rows are in which group, known only when a grouped product runs: the
// rows sorted by group, in their own order within one, and cut into pieces of a
// few sizes for which products are prepared. A piece's last rows may be
// missing: those are multiplied as zeros.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_ROWGROUPS_H
#define ACCEL_RT_DEVICE_CPU_GEMM_ROWGROUPS_H

#include "accel-rt/Status.h"

#include <cstdint>
#include <vector>

namespace accel::rt::cpu {

class RowGroups {
public:
  /// Rows of one group that are multiplied at once: `count` of them, from place
  /// `first` of the sorted rows on, by the product of size number `size`.
  struct Piece {
    int32_t group, first, count, size;
  };

  RowGroups(int64_t rows, int64_t groups);

  /// The sizes of pieces, ascending.
  const std::vector<int64_t> &sizes() const { return pieceSizes; }
  /// Bytes of the order that `sort` writes.
  int64_t bytes() const;

  /// Sorts by `groups`, of i64 or (not `wide`) i32, into `order`. Errors: one
  /// outside [-1, groups).
  Status sort(const void *groups, bool wide, void *order) const;

  /// Of a sorted order: its pieces, those of a group, and the rows by place.
  int64_t countPieces(const void *order) const;
  const Piece *pieces(const void *order) const;
  const Piece *beginOfGroup(const void *order, int64_t group) const;
  const int32_t *rows(const void *order) const;
  /// The rows that are in no group.
  const int32_t *beginOfNone(const void *order) const;
  int64_t countNone(const void *order) const;

private:
  template <class Index>
  Status sortBy(const Index *groups, int32_t *order) const;
  /// Number of the size of a piece that is made of `rest` rows.
  int32_t chooseSize(int64_t rest) const;

  int64_t numRows, numGroups;
  std::vector<int64_t> pieceSizes;
  /// In numbers of 32 bits: where each part of an order begins. First the
  /// places where groups begin, the rows in none being the last of them, then
  /// the numbers of their first pieces.
  int64_t firstPieces, sorted, pieceTable, end;
};

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_ROWGROUPS_H
