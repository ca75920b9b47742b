// Collectives as functions from a group's tensors to a group's tensors.

#include "lib/Evaluate/Collectives.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

static double combineTwo(dist::Reduction kind, double x, double y) {
  switch (kind) {
  case dist::Reduction::sum:
    return x + y;
  case dist::Reduction::max: // NaN stays
    return x > y || std::isnan(x) ? x : y;
  case dist::Reduction::min:
    return x < y || std::isnan(x) ? x : y;
  }
  llvm_unreachable("a reduction without meaning");
}

static int64_t combineTwo(dist::Reduction kind, int64_t x, int64_t y) {
  switch (kind) {
  case dist::Reduction::sum: // wraps around
    return static_cast<uint64_t>(x) + static_cast<uint64_t>(y);
  case dist::Reduction::max:
    return std::max(x, y);
  case dist::Reduction::min:
    return std::min(x, y);
  }
  llvm_unreachable("a reduction without meaning");
}

Tensor evaluate::combine(dist::Reduction kind, const GroupTensors &group) {
  Tensor result = group.front();
  for (const Tensor &tensor : ArrayRef(group).drop_front()) {
    if (tensor.isFloat())
      for (auto [into, value] :
           llvm::zip(result.mutableFloats(), tensor.floats()))
        into = combineTwo(kind, into, value);
    else
      for (auto [into, value] : llvm::zip(result.mutableInts(), tensor.ints()))
        into =
            wrapToType(combineTwo(kind, into, value), tensor.getElementType());
  }
  return result;
}

Tensor evaluate::takeChunk(const Tensor &tensor, int64_t dim, int64_t index,
                           int64_t count) {
  SmallVector<int64_t> shape(tensor.getShape());
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  assert(shape[dim] % count == 0 && "the verifiers check this");
  shape[dim] /= count;
  return tensor.strided(shape, strides, index * shape[dim] * strides[dim]);
}

Tensor evaluate::join(const GroupTensors &group, int64_t dim) {
  SmallVector<int64_t> shape(group.front().getShape());
  int64_t size = shape[dim];
  shape[dim] *= group.size();
  Tensor result(shape, group.front().getElementType());
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  int64_t offset = 0;
  for (const Tensor &tensor : group) {
    auto insert = [&](auto source, auto target) {
      auto element = source.begin();
      forEachPosition(tensor.getShape(), strides, offset,
                      [&](int64_t at) { target[at] = *element++; });
    };
    if (tensor.isFloat())
      insert(tensor.floats(), result.mutableFloats());
    else
      insert(tensor.ints(), result.mutableInts());
    offset += size * strides[dim];
  }
  return result;
}

GroupTensors evaluate::allReduce(dist::Reduction kind,
                                 const GroupTensors &group) {
  return GroupTensors(group.size(), combine(kind, group));
}

GroupTensors evaluate::reduceScatter(dist::Reduction kind,
                                     const GroupTensors &group, int64_t dim) {
  Tensor whole = combine(kind, group);
  GroupTensors results;
  for (size_t index = 0; index < group.size(); ++index)
    results.push_back(takeChunk(whole, dim, index, group.size()));
  return results;
}

GroupTensors evaluate::allGather(const GroupTensors &group, int64_t dim) {
  return GroupTensors(group.size(), join(group, dim));
}

GroupTensors evaluate::allToAll(const GroupTensors &group, int64_t splitDim,
                                int64_t concatDim) {
  GroupTensors results;
  for (size_t index = 0; index < group.size(); ++index) {
    GroupTensors chunks;
    for (const Tensor &tensor : group)
      chunks.push_back(takeChunk(tensor, splitDim, index, group.size()));
    results.push_back(join(chunks, concatDim));
  }
  return results;
}

GroupTensors evaluate::permute(const GroupTensors &group,
                               ArrayRef<int64_t> sources) {
  GroupTensors results;
  for (int64_t source : sources)
    results.push_back(group[source]);
  return results;
}

GroupTensors evaluate::broadcast(const GroupTensors &group, int64_t root) {
  return GroupTensors(group.size(), group[root]);
}

FailureOr<GroupTensors> evaluate::fetchRows(Operation *op,
                                            const GroupTensors &group,
                                            const GroupTensors &indices) {
  Tensor all = join(group, 0);
  int64_t count = all.getShape()[0],
          length = count == 0 ? 0 : all.getNumElements() / count;
  GroupTensors results;
  for (const Tensor &index : indices) {
    SmallVector<int64_t> shape(all.getShape());
    shape[0] = index.getNumElements();
    Tensor fetched(RankedTensorType::get(shape, all.getElementType()));
    for (auto [row, from] : llvm::enumerate(index.ints())) {
      if (from < -1 || from >= count)
        return op->emitOpError() << "expected rows in [0, " << count
                                 << "), or -1 for none, found " << from;
      for (int64_t at = 0; from >= 0 && at < length; ++at)
        if (all.isFloat())
          fetched.mutableFloats()[row * length + at] =
              all.floats()[from * length + at];
        else
          fetched.mutableInts()[row * length + at] =
              all.ints()[from * length + at];
    }
    results.push_back(std::move(fetched));
  }
  return results;
}
