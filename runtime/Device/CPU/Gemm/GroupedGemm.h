// Grouped products on the CPU: each row times its group's matrix, and of each
// group the products of its rows summed. The rows of a group are copied side by
// side into the thread's scratch, some hundred at a time, and multiplied as one
// product: the copies are one number for each row of the matrix that it is
// multiplied with, and the library sees dense operands.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_GROUPEDGEMM_H
#define ACCEL_RT_DEVICE_CPU_GEMM_GROUPEDGEMM_H

#include "Device/CPU/Gemm/Gemm.h"
#include "Device/CPU/Gemm/RowGroups.h"

namespace accel::rt::cpu {

/// A row-major matrix [rows, k], and for each of `groups` one [k, n]: c [rows,
/// n]. Of the gradient b is [rows, n] and c for each group [k, n]. Strides
/// count elements; columns of rows lie side by side.
struct GroupedGemmDesc {
  GemmType type = GemmType::F32, outType = GemmType::F32;
  int64_t rows = 1, groups = 1, k = 1, n = 1;
  int64_t aRow = 0;
  /// Of matrices between groups, rows and columns; of the gradient's b between
  /// rows, the others 0 and 1.
  int64_t bGroup = 0, bRow = 0, bCol = 1;
  int64_t cGroup = 0, cRow = 0; ///< the former of the gradient alone
  bool accumulate = false;      ///< of the gradient: c is added to
};

/// Columns of c in a chunk (0: all).
struct GroupedGemmForm {
  int64_t chunkColumns = 0;
};
/// So many that there are chunks for all threads where few groups have rows.
GroupedGemmForm getDefaultForm(const GroupedGemmDesc &desc, int64_t threads);

/// A prepared product; used as a Gemm is, after `sort`.
class GroupedGemm {
public:
  /// `isGradient`: which of the two. Errors: strides or types that no form
  /// serves.
  static Status create(const GroupedGemmDesc &desc, const GroupedGemmForm &form,
                       bool isGradient, int threads,
                       std::unique_ptr<GroupedGemm> &gemm);
  virtual ~GroupedGemm();

  /// Bytes of the order, which all threads share, and of one thread's scratch.
  int64_t orderBytes() const { return groups.bytes(); }
  virtual int64_t scratchBytes() const = 0;
  /// Sorts the rows. Errors: a group that is outside.
  Status sort(const void *rowGroups, bool wide, void *order) const {
    return groups.sort(rowGroups, wide, order);
  }
  /// Number of chunks of sorted rows.
  virtual int64_t chunks(const void *order) const = 0;
  /// Computes a chunk on the calling thread.
  virtual void run(int64_t chunk, int thread, const void *a, const void *b,
                   void *c, const void *order, void *scratch) const = 0;

protected:
  explicit GroupedGemm(const GroupedGemmDesc &desc)
      : groups(desc.rows, desc.groups) {}
  RowGroups groups;
};

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_GROUPEDGEMM_H
