// Constants without the copies that broadcasting at import put into them.

#include "FoldConstants.h"
#include "Passes.h"

#include <cstring>

using namespace mlir;

/// The elements as bytes, one per i1.
static std::vector<char> elementBytes(DenseElementsAttr value) {
  if (value.getElementType().isInteger(1)) {
    auto bits = value.getValues<bool>();
    return std::vector<char>(bits.begin(), bits.end());
  }
  ArrayRef<char> raw = value.getRawData();
  return std::vector<char>(raw.begin(), raw.end());
}

DenseElementsAttr accel::transforms::withoutRepeats(DenseElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  Type element = type.getElementType();
  SmallVector<int64_t> shape(type.getShape());
  if (type.getNumElements() == 0)
    return value;
  if (value.isSplat()) {
    shape.assign(shape.size(), 1);
    return value.resizeSplat(RankedTensorType::get(shape, element));
  }
  std::vector<char> bytes = elementBytes(value);
  size_t width = bytes.size() / type.getNumElements();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1)
      continue;
    size_t chunk = width; // bytes of what one index of `dim` holds
    for (int64_t size : ArrayRef(shape).drop_front(dim + 1))
      chunk *= size;
    size_t block = chunk * shape[dim];
    bool repeats = true;
    for (size_t start = 0; repeats && start < bytes.size(); start += block)
      for (size_t at = chunk; repeats && at < block; at += chunk)
        repeats = std::memcmp(&bytes[start], &bytes[start + at], chunk) == 0;
    if (!repeats)
      continue;
    std::vector<char> once;
    for (size_t start = 0; start < bytes.size(); start += block)
      once.insert(once.end(), bytes.begin() + start,
                  bytes.begin() + start + chunk);
    bytes = std::move(once);
    shape[dim] = 1;
  }
  auto narrow = RankedTensorType::get(shape, element);
  if (narrow == type)
    return value;
  if (element.isInteger(1))
    return DenseElementsAttr::get(
        narrow, SmallVector<bool>(bytes.begin(), bytes.end()));
  return DenseElementsAttr::getFromRawBuffer(narrow, bytes);
}

namespace accel::transforms {
#define GEN_PASS_DEF_NARROWCONSTANTSPASS
#include "lib/Transforms/Passes.h.inc"

namespace {
struct NarrowConstantsPass
    : impl::NarrowConstantsPassBase<NarrowConstantsPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](nn::ConstantOp constant) {
      DenseElementsAttr value = getConstantValue(constant.getResult());
      if (!value || value.isSplat() || constant.getType().getEncoding())
        return;
      DenseElementsAttr narrow = withoutRepeats(value);
      if (narrow == value)
        return;
      OpBuilder builder(constant);
      // A constant that folding has moved or merged has no node of its own:
      // what widens it belongs to who reads it.
      Location reader = constant->use_empty()
                            ? constant.getLoc()
                            : (*constant->user_begin())->getLoc();
      Value once = nn::ConstantOp::create(builder, constant.getLoc(), narrow);
      Value wide =
          nn::BroadcastOp::create(builder, reader, constant.getType(), once);
      constant.replaceAllUsesWith(wide);
      constant.erase();
    });
  }
};
} // namespace
} // namespace accel::transforms
