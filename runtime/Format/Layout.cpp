// Merging of dimensions, strided copies and the arithmetic of parts.

#include "Format/Layout.h"

#include <cstring>

namespace accel::rt {

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}

int64_t numElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t spanBytes(const View &view) {
  int64_t last = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 0)
      return 0;
    last += (view.shape[i] - 1) * view.strides[i];
  }
  return (last + 1) * dtypeBytes(view.dtype);
}

PairLayout::PairLayout(const std::vector<int64_t> &shape,
                       const std::vector<int64_t> &stridesA,
                       const std::vector<int64_t> &stridesB) {
  rank = 0;
  total = numElements(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1)
      continue;
    Dim dim{shape[i], stridesA[i], stridesB[i]};
    if (rank > 0 && dims[rank - 1].a == dim.a * dim.size &&
        dims[rank - 1].b == dim.b * dim.size)
      dims[rank - 1] = {dims[rank - 1].size * dim.size, dim.a, dim.b};
    else
      dims[rank++] = dim;
  }
  if (rank == 0)
    dims[rank++] = {1, 1, 1};
}

template <class T>
static void copyTyped(void *target, int64_t targetStride, const void *source,
                      int64_t sourceStride, int64_t count) {
  T *out = static_cast<T *>(target);
  const T *in = static_cast<const T *>(source);
  if (targetStride == 1 && sourceStride == 1) {
    // The two may be the same bytes: an in-place collective.
    std::memmove(out, in, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    out[i * targetStride] = in[i * sourceStride];
}

void copyStrided(int64_t bytes, void *target, int64_t targetStride,
                 const void *source, int64_t sourceStride, int64_t count) {
  switch (bytes) {
  case 1:
    return copyTyped<uint8_t>(target, targetStride, source, sourceStride,
                              count);
  case 2:
    return copyTyped<uint16_t>(target, targetStride, source, sourceStride,
                               count);
  case 4:
    return copyTyped<uint32_t>(target, targetStride, source, sourceStride,
                               count);
  default:
    return copyTyped<uint64_t>(target, targetStride, source, sourceStride,
                               count);
  }
}

void copyElements(const PairLayout &layout, int64_t bytes, void *target,
                  const void *source, int64_t begin, int64_t end) {
  layout.forRange(
      begin, end,
      [&](int64_t to, int64_t from, int64_t toStride, int64_t fromStride,
          int64_t count) {
        copyStrided(bytes, static_cast<char *>(target) + to * bytes, toStride,
                    static_cast<const char *>(source) + from * bytes,
                    fromStride, count);
      });
}

Coordinates Coordinates::of(const std::vector<Axis> &mesh, int64_t rank) {
  Coordinates coordinates{mesh, std::vector<int64_t>(mesh.size())};
  for (size_t i = mesh.size(); i-- > 0; rank /= mesh[i].size)
    coordinates.values[i] = rank % mesh[i].size;
  return coordinates;
}

int64_t Coordinates::at(const std::string &axis) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == axis)
      return values[i];
  return 0;
}

int64_t Coordinates::size(const std::string &axis) const {
  for (const Axis &candidate : axes)
    if (candidate.name == axis)
      return candidate.size;
  return 1;
}

int64_t Coordinates::index(const std::vector<std::string> &names) const {
  int64_t index = 0;
  for (const std::string &name : names)
    index = index * size(name) + at(name);
  return index;
}

int64_t Coordinates::count(const std::vector<std::string> &names) const {
  int64_t count = 1;
  for (const std::string &name : names)
    count *= size(name);
  return count;
}

std::vector<int64_t> pieceStart(const Part &part,
                                const std::vector<int64_t> &piece,
                                const Coordinates &coordinates,
                                int64_t microBatch) {
  std::vector<int64_t> start(piece.size());
  for (size_t d = 0; d < piece.size(); ++d) {
    int64_t ranks = coordinates.count(part.axes[d]), index = 0;
    for (const std::string &axis : part.axes[d]) {
      int64_t batches = piece[d] ? part.shape[d] / (ranks * piece[d]) : 1;
      index = axis == "mb"
                  ? index * batches + microBatch
                  : index * coordinates.size(axis) + coordinates.at(axis);
    }
    start[d] = index * piece[d];
  }
  return start;
}

std::vector<PieceRun> interleavedRuns(const Interleaved &order, int64_t size) {
  std::vector<PieceRun> runs;
  int64_t held = 0;
  for (int64_t share = 0; share < order.by; ++share) {
    int64_t part = 0;
    for (int64_t time = 0; time < order.times; ++time)
      for (int64_t whole : order.sizes) {
        int64_t file = part + share * (whole / order.by),
                end = file + whole / order.by;
        while (file < end) {
          int64_t count = std::min(end - file, size - held % size);
          runs.push_back({file, held / size, held % size, count});
          file += count;
          held += count;
        }
        part += whole;
      }
  }
  return runs;
}

/// Rows whose sizes are those of elements are a strided copy.
static void copyRows(char *target, int64_t targetStep, const char *source,
                     int64_t sourceStep, const Rows &rows) {
  int64_t bytes = static_cast<int64_t>(rows.bytes);
  bool isElement = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (rows.count > 1 && isElement && targetStep % bytes == 0 &&
      sourceStep % bytes == 0)
    return copyStrided(bytes, target, targetStep / bytes, source,
                       sourceStep / bytes, rows.count);
  for (int64_t i = 0; i < rows.count; ++i)
    std::memcpy(target + i * targetStep, source + i * sourceStep, rows.bytes);
}

void uploadRows(char *target, const void *source, const Rows &rows) {
  copyRows(target, rows.inArena, static_cast<const char *>(source), rows.onHost,
           rows);
}

void downloadRows(void *target, const char *source, const Rows &rows) {
  copyRows(static_cast<char *>(target), rows.onHost, source, rows.inArena,
           rows);
}

void fillRows(char *target, int byte, const Rows &rows) {
  for (int64_t i = 0; i < rows.count; ++i)
    std::memset(target + i * rows.inArena, byte, rows.bytes);
}

bool isWriter(const Part &part, const Coordinates &coordinates) {
  for (size_t i = 0; i < coordinates.axes.size(); ++i) {
    bool splits = false;
    for (const auto &axes : part.axes)
      splits |= std::find(axes.begin(), axes.end(), coordinates.axes[i].name) !=
                axes.end();
    if (!splits && coordinates.values[i] != 0 &&
        coordinates.axes[i].name != "pp")
      return false;
  }
  return true;
}

Part StatePlan::keptPart() const {
  Part kept = part();
  if (!inStack)
    return kept;
  kept.shape.insert(kept.shape.begin(), inStack->rows);
  kept.axes.insert(kept.axes.begin(), inStack->axes);
  if (kept.interleaved)
    ++kept.interleaved->dim;
  return kept;
}

std::optional<KeptPiece> findRow(int64_t row, const Part &part,
                                 const View &view,
                                 const Coordinates &coordinates) {
  int64_t here = view.shape.front(),
          place = row - coordinates.index(part.axes.front()) * here;
  if (place < 0 || place >= here)
    return std::nullopt;
  KeptPiece piece{part, view, 0};
  piece.bytes = place * view.strides.front() * dtypeBytes(view.dtype);
  piece.view.offset += piece.bytes;
  for (auto *list : {&piece.part.shape, &piece.view.shape, &piece.view.strides})
    list->erase(list->begin());
  piece.part.axes.erase(piece.part.axes.begin());
  if (piece.part.interleaved)
    --piece.part.interleaved->dim;
  return piece;
}

std::optional<KeptPiece> findKept(const StatePlan &state, const Part &part,
                                  const View &view,
                                  const Coordinates &coordinates) {
  if (!state.inStack)
    return KeptPiece{part, view, 0};
  return findRow(state.inStack->row, part, view, coordinates);
}

} // namespace accel::rt
