// Walking two strided tensors of one shape side by side: what copies,
// reductions and reads from files have in common.

#ifndef ACCEL_RUNTIME_FORMAT_LAYOUT_H
#define ACCEL_RUNTIME_FORMAT_LAYOUT_H

#include "accel-rt/Memory.h"
#include "accel-rt/PlanFormat.h"

#include <algorithm>
#include <array>

namespace accel::rt {

inline constexpr size_t kMaxRank = 8;

/// Row-major strides of `shape`, in elements.
std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape);

/// Number of elements of `shape`.
int64_t numElements(const std::vector<int64_t> &shape);

/// Bytes from the first to the end of the last element of a view.
int64_t spanBytes(const View &view);

/// One shape with the strides of two tensors, neighbouring dimensions merged
/// where both allow it. Fixed size: it can live in a command.
class PairLayout {
public:
  PairLayout() = default;
  /// Strides in elements. Requires shape.size() <= kMaxRank and as many
  /// strides.
  PairLayout(const std::vector<int64_t> &shape,
             const std::vector<int64_t> &stridesA,
             const std::vector<int64_t> &stridesB);

  int64_t elements() const { return total; }
  /// Whether every run has stride 1 in both tensors.
  bool contiguousRuns() const { return inner().a == 1 && inner().b == 1; }
  /// Elements of one run of the innermost merged dimension.
  int64_t runLength() const { return inner().size; }

  /// Calls f(offsetA, offsetB, strideA, strideB, count) for the runs that make
  /// up the elements [begin, end) of the row-major order; offsets in elements.
  template <class F> void forRange(int64_t begin, int64_t end, F &&f) const {
    const Dim &last = inner();
    while (begin < end) {
      int64_t outer = begin / last.size, at = begin % last.size;
      int64_t count = std::min(last.size - at, end - begin);
      int64_t offsetA = at * last.a, offsetB = at * last.b;
      for (size_t d = rank - 1; d-- > 0; outer /= dims[d].size) {
        int64_t index = outer % dims[d].size;
        offsetA += index * dims[d].a;
        offsetB += index * dims[d].b;
      }
      f(offsetA, offsetB, last.a, last.b, count);
      begin += count;
    }
  }

private:
  struct Dim {
    int64_t size = 1, a = 1, b = 1;
  };
  const Dim &inner() const { return dims[rank - 1]; }
  std::array<Dim, kMaxRank> dims;
  size_t rank = 1;
  int64_t total = 1;
};

/// Copies `count` elements of `bytes` bytes (1, 2, 4 or 8); strides in
/// elements.
void copyStrided(int64_t bytes, void *target, int64_t targetStride,
                 const void *source, int64_t sourceStride, int64_t count);

/// Copies the elements [begin, end) of `layout` (A is the target, B the
/// source), each of `bytes` bytes (1, 2, 4 or 8).
void copyElements(const PairLayout &layout, int64_t bytes, void *target,
                  const void *source, int64_t begin, int64_t end);

/// What Memory::upload, download and fill come to where arenas are memory of
/// this process.
void uploadRows(char *target, const void *source, const Rows &rows);
void downloadRows(void *target, const char *source, const Rows &rows);
void fillRows(char *target, int byte, const Rows &rows);

/// This rank's coordinate on every axis, by name; "mb" among them where known.
struct Coordinates {
  std::vector<Axis> axes; ///< As the mesh has them.
  std::vector<int64_t> values;

  /// Coordinates of a rank of a mesh, major to minor.
  static Coordinates of(const std::vector<Axis> &mesh, int64_t rank);
  /// 0 for an axis that the mesh lacks.
  int64_t at(const std::string &axis) const;
  int64_t size(const std::string &axis) const; ///< 1 for such an axis.
  /// Index over several axes, major to minor, and the number of such indices.
  int64_t index(const std::vector<std::string> &names) const;
  int64_t count(const std::vector<std::string> &names) const;
};

/// Where a rank's piece of a logical tensor starts, per dimension, if the piece
/// has the shape `piece` (which tells how many micro-batches there are).
std::vector<int64_t> pieceStart(const Part &part,
                                const std::vector<int64_t> &piece,
                                const Coordinates &coordinates,
                                int64_t microBatch);

/// Elements of an interleaved dimension that follow each other in files, from
/// `inFile` on, and in one piece, from `inPiece` on.
struct PieceRun {
  int64_t inFile, piece, inPiece, count;
};
/// All of a dimension, cut into pieces of `size` elements, piece by piece.
std::vector<PieceRun> interleavedRuns(const Interleaved &order, int64_t size);

/// Whether a rank is the one that writes its piece: the first of those that
/// hold the same.
bool isWriter(const Part &part, const Coordinates &coordinates);

/// What a rank keeps of a state, in a buffer that may keep more than it.
struct KeptPiece {
  Part part;         ///< How ranks share the state.
  View view;         ///< The rank's piece of it …
  int64_t bytes = 0; ///< … so far behind the start of all that is kept.
};
/// Of what `part` and `view` say of all that StatePlan::keptAs names, the
/// state's own. Nothing where the row is another rank's.
std::optional<KeptPiece> findKept(const StatePlan &state, const Part &part,
                                  const View &view,
                                  const Coordinates &coordinates);
/// The same of row `row` of a stack, be it one of padding.
std::optional<KeptPiece> findRow(int64_t row, const Part &part,
                                 const View &view,
                                 const Coordinates &coordinates);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FORMAT_LAYOUT_H
