// Cutting global tensors by the axes of a mesh, and the way back.

#include "lib/Evaluate/Placement.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

int64_t MeshPoint::getCoordinate(StringRef axis) {
  return axis == dist::MeshOp::kMicroBatchAxis ? microBatch
                                               : mesh.getCoordinate(rank, axis);
}

std::optional<int64_t> MeshPoint::getAxisSize(StringRef axis) {
  return mesh ? mesh.findAxisSize(axis) : std::nullopt;
}

int64_t MeshPoint::getIndex(ArrayRef<StringAttr> axes) {
  int64_t index = 0;
  for (StringAttr axis : axes)
    index = index * *getAxisSize(axis) + getCoordinate(axis);
  return index;
}

Placement Placement::replicated(ArrayRef<int64_t> shape) {
  Placement result;
  result.shape.assign(shape.begin(), shape.end());
  result.axes.resize(shape.size());
  return result;
}

LogicalResult Placement::verify(MeshPoint point, Location loc) const {
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t parts = 1;
    for (StringAttr axis : axes[dim]) {
      std::optional<int64_t> extent = point.getAxisSize(axis);
      if (!extent)
        return emitError(loc) << "the mesh has no axis " << axis;
      parts *= *extent;
    }
    if (size % parts != 0)
      return emitError(loc)
             << "dimension " << dim << " of size " << size
             << " cannot be split into " << parts << " equal parts";
  }
  return success();
}

void Placement::locate(MeshPoint point, SmallVectorImpl<int64_t> &pieceShape,
                       int64_t &offset) const {
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  offset = 0;
  pieceShape.clear();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t parts = 1;
    for (StringAttr axis : axes[dim])
      parts *= *point.getAxisSize(axis);
    pieceShape.push_back(size / parts);
    offset += point.getIndex(axes[dim]) * (size / parts) * strides[dim];
  }
}

/// A tensor with parts of a dimension interleaved, or put back.
static Tensor reorder(const Tensor &tensor, dist::InterleavedAttr interleaved,
                      bool isBack) {
  ArrayRef<int64_t> shape = tensor.getShape();
  int64_t size = interleaved.getSize(), inner = 1;
  for (int64_t behind : shape.drop_front(interleaved.getDim() + 1))
    inner *= behind;
  Tensor result(tensor.getType());
  auto move = [&](auto source, auto target) {
    for (int64_t start = 0; start < tensor.getNumElements();
         start += size * inner)
      interleaved.forEachRun([&](int64_t from, int64_t to, int64_t count) {
        if (isBack)
          std::swap(from, to);
        std::copy_n(source.begin() + start + from * inner, count * inner,
                    target.begin() + start + to * inner);
      });
  };
  if (tensor.isFloat())
    move(tensor.floats(), result.mutableFloats());
  else
    move(tensor.ints(), result.mutableInts());
  return result;
}

Tensor Placement::cut(const Tensor &whole, MeshPoint point) const {
  Tensor global =
      interleaved ? reorder(whole, interleaved, /*isBack=*/false) : whole;
  SmallVector<int64_t> pieceShape;
  int64_t offset;
  locate(point, pieceShape, offset);
  if (ArrayRef<int64_t>(pieceShape) == global.getShape())
    return global;
  return global.strided(pieceShape, getRowMajorStrides(shape), offset);
}

Assembly::Assembly(Placement placement, Type element)
    : placement(placement), global(placement.shape, element),
      given(global.getNumElements(), false) {}

/// Equal bits, so that NaN equals itself and -0 is not 0.
static bool sameBits(double x, double y) {
  return std::memcmp(&x, &y, sizeof(x)) == 0;
}
static bool sameBits(int64_t x, int64_t y) { return x == y; }

LogicalResult Assembly::add(const Tensor &piece, MeshPoint point, Location loc,
                            StringRef what) {
  SmallVector<int64_t> pieceShape;
  int64_t offset;
  placement.locate(point, pieceShape, offset);
  if (piece.getShape() != ArrayRef<int64_t>(pieceShape))
    return emitError(loc) << "expected a piece of " << what << " of shape ["
                          << ArrayRef<int64_t>(pieceShape) << "], found ["
                          << piece.getShape() << "]";
  bool agrees = true;
  auto insert = [&](auto source, auto target) {
    auto element = source.begin();
    forEachPosition(pieceShape, getRowMajorStrides(placement.shape), offset,
                    [&](int64_t at) {
                      if (given[at])
                        agrees = agrees && sameBits(target[at], *element);
                      given[at] = true;
                      target[at] = *element++;
                    });
  };
  if (piece.isFloat())
    insert(piece.floats(), global.mutableFloats());
  else
    insert(piece.ints(), global.mutableInts());
  if (agrees)
    return success();
  return emitError(loc) << "expected equal copies of " << what
                        << " on all ranks, found other bits on rank "
                        << point.rank;
}

FailureOr<Tensor> Assembly::finish(Location loc, StringRef what) {
  if (llvm::is_contained(given, false))
    return emitError(loc) << "expected every element of " << what
                          << " from some rank, found "
                          << llvm::count(given, false) << " missing";
  if (placement.interleaved)
    return reorder(global, placement.interleaved, /*isBack=*/true);
  return global;
}
