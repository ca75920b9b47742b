// Arithmetic on positions in mixed digits.

#include "IndexMap.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

SmallVector<int64_t> accel::equivalence::denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    strides[dim] = stride;
  return strides;
}

IndexMap IndexMap::dense(int64_t count) {
  IndexMap map;
  map.steps.push_back({count, 1});
  map.normalize();
  return map;
}

IndexMap IndexMap::strided(int64_t offset, ArrayRef<int64_t> shape,
                           ArrayRef<int64_t> strides) {
  IndexMap map;
  map.offset = offset;
  for (auto [size, stride] : llvm::zip_equal(shape, strides))
    map.steps.push_back({size, stride});
  map.normalize();
  return map;
}

int64_t IndexMap::count() const {
  int64_t count = 1;
  for (Step step : steps)
    count *= step.size;
  return count;
}

std::pair<int64_t, int64_t> IndexMap::range() const {
  int64_t low = offset, high = offset;
  auto reach = [&](int64_t size, int64_t stride) {
    (stride < 0 ? low : high) += (size - 1) * stride;
  };
  for (Step step : steps)
    reach(step.size, step.stride);
  for (const Coordinate &coordinate : coordinates)
    reach(coordinate.size, coordinate.stride);
  return {low, high};
}

void IndexMap::add(Coordinate coordinate) {
  if (coordinate.size == 1 || coordinate.stride == 0)
    return;
  auto *at = llvm::lower_bound(
      coordinates, coordinate,
      [](const Coordinate &lhs, const Coordinate &rhs) {
        return std::pair(lhs.axis.getValue(), lhs.microBatch) <
               std::pair(rhs.axis.getValue(), rhs.microBatch);
      });
  if (at == coordinates.end() || !at->isOf(coordinate)) {
    coordinates.insert(at, coordinate);
    return;
  }
  at->stride += coordinate.stride;
  if (at->stride == 0)
    coordinates.erase(at);
}

IndexMap IndexMap::at(StringAttr axis, int64_t number) const {
  IndexMap map = *this;
  for (const Coordinate &coordinate : coordinates)
    if (coordinate.axis == axis)
      map.offset += number * coordinate.stride;
  llvm::erase_if(map.coordinates, [&](const Coordinate &coordinate) {
    return coordinate.axis == axis;
  });
  return map;
}

IndexMap IndexMap::atNumbers(StringAttr axis) const {
  IndexMap map = *this;
  auto isNumber = [&](const Coordinate &coordinate) {
    return coordinate.axis == axis && coordinate.microBatch;
  };
  for (const Coordinate &coordinate : coordinates)
    if (isNumber(coordinate))
      map.offset += *coordinate.microBatch * coordinate.stride;
  llvm::erase_if(map.coordinates, isNumber);
  return map;
}

void IndexMap::normalize() {
  SmallVector<Step, 4> kept;
  for (Step step : steps) {
    if (step.size == 1)
      continue;
    if (!kept.empty() && kept.back().stride == step.size * step.stride)
      kept.back() = {kept.back().size * step.size, step.stride};
    else
      kept.push_back(step);
  }
  steps = std::move(kept);
}

std::optional<std::pair<SmallVector<Step, 4>, SmallVector<Step, 4>>>
IndexMap::splitAt(int64_t rows) const {
  std::pair<SmallVector<Step, 4>, SmallVector<Step, 4>> parts;
  int64_t left = rows;
  for (Step step : steps) {
    if (left == 1) {
      parts.second.push_back(step);
    } else if (left % step.size == 0) {
      parts.first.push_back(step);
      left /= step.size;
    } else if (step.size % left == 0) {
      int64_t minor = step.size / left;
      parts.first.push_back({left, step.stride * minor});
      parts.second.push_back({minor, step.stride});
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  if (left != 1)
    return std::nullopt;
  return parts;
}

namespace {
/// Writes strides in the digits of a map.
class Digits {
public:
  explicit Digits(const IndexMap &map) : map(map), used(map.steps.size()) {
    weights.resize(map.steps.size());
    total = 1;
    for (size_t digit = weights.size(); digit-- > 0;) {
      weights[digit] = total;
      total *= map.steps[digit].size;
    }
  }

  /// Where a fixed position leads.
  std::optional<int64_t> place(int64_t position) {
    if (position < 0 || position >= total)
      return std::nullopt;
    int64_t result = map.offset;
    for (auto [digit, weight] : llvm::enumerate(weights)) {
      int64_t value = position / weight % map.steps[digit].size;
      used[digit] += value;
      result += value * map.steps[digit].stride;
    }
    return result;
  }

  /// What a digit of `size` positions, `stride` apart, becomes: one digit, or
  /// several if it counts through several of the map's.
  bool place(int64_t size, int64_t stride, SmallVectorImpl<Step> &result) {
    if (size == 1)
      return true;
    if (stride == 0) {
      result.push_back({size, 0});
      return true;
    }
    const auto *found = llvm::find_if(
        weights, [&](int64_t weight) { return weight <= stride; });
    if (stride < 0 || found == weights.end() || stride % *found != 0)
      return false;
    size_t digit = found - weights.begin();
    int64_t times = stride / *found, reach = times * (size - 1);
    if (reach < map.steps[digit].size) {
      used[digit] += reach;
      result.push_back({size, times * map.steps[digit].stride});
      return true;
    }
    if (digit == 0)
      return false;
    int64_t next = weights[digit - 1];
    if (next % stride != 0 || size % (next / stride) != 0)
      return false;
    int64_t low = next / stride;
    return place(size / low, next, result) && place(low, stride, result);
  }

  /// Whether no digit can overflow into the next.
  bool fits() const {
    for (auto [step, most] : llvm::zip_equal(map.steps, used))
      if (most >= step.size)
        return false;
    return true;
  }

private:
  const IndexMap &map;
  SmallVector<int64_t> weights, used;
  int64_t total;
};
} // namespace

std::optional<IndexMap> accel::equivalence::compose(const IndexMap &outer,
                                                    const IndexMap &inner) {
  IndexMap result;
  Digits digits(outer);
  std::optional<int64_t> offset = digits.place(inner.offset);
  if (!offset)
    return std::nullopt;
  result.offset = *offset;
  for (Step step : inner.steps)
    if (!digits.place(step.size, step.stride, result.steps))
      return std::nullopt;
  result.coordinates = outer.coordinates;
  for (const Coordinate &coordinate : inner.coordinates) {
    SmallVector<Step, 2> placed;
    if (!digits.place(coordinate.size, coordinate.stride, placed) ||
        placed.size() != 1)
      return std::nullopt;
    Coordinate made = coordinate;
    made.stride = placed.front().stride;
    result.add(made);
  }
  if (!digits.fits())
    return std::nullopt;
  result.normalize();
  return result;
}
