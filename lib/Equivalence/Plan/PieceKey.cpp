// Which piece of a global tensor a rank has, in the words of either phase.

#include "Meaning.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// `dims` gives the names of the axes of each dimension.
template <class Range>
static PieceKey make(ArrayRef<int64_t> shape, Range dims,
                     dist::InterleavedAttr interleaved = {}) {
  PieceKey piece;
  piece.key.add(shape);
  piece.key.add(interleaved.getAsOpaquePointer());
  for (const auto &names : dims) {
    piece.key.add(int64_t(names.size()));
    for (StringAttr name : names) {
      piece.key.add(name.getAsOpaquePointer());
      piece.varies |= name.getValue() == dist::MeshOp::kMicroBatchAxis;
    }
  }
  return piece;
}

PieceKey PieceKey::of(dist::LayoutAttr layout) {
  SmallVector<SmallVector<StringAttr>> dims;
  for (dist::AxesAttr axes : layout.getDims())
    dims.emplace_back(axes.getNames());
  return make(layout.getShape(), dims, layout.getInterleaved());
}

PieceKey PieceKey::of(plan::PartAttr part) {
  SmallVector<SmallVector<StringAttr>> dims;
  for (auto axes : part.getAxes().getAsRange<ArrayAttr>())
    dims.emplace_back(axes.getAsRange<StringAttr>());
  return make(part.getShape(), dims, part.getInterleaved());
}

PieceKey PieceKey::whole(RankedTensorType type) {
  return make(type.getShape(),
              SmallVector<SmallVector<StringAttr>>(type.getRank()));
}
