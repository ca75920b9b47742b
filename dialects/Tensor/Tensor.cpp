// Conversions of tensors between doubles, the bytes of their element type and
// attributes.

#include "Tensor.h"

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace accel;

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

const rt::NumberFormat &accel::getNumberFormat(Type type) {
  return *llvm::TypeSwitch<Type, const rt::NumberFormat *>(type)
              .Case<Float64Type>([](Type) { return &rt::kF64; })
              .Case<Float32Type>([](Type) { return &rt::kF32; })
              .Case<Float16Type>([](Type) { return &rt::kF16; })
              .Case<BFloat16Type>([](Type) { return &rt::kBF16; })
              .Case<Float8E4M3FNType>([](Type) { return &rt::kF8E4M3FN; })
              .Case<Float8E5M2Type>([](Type) { return &rt::kF8E5M2; })
              .Case<Float8E8M0FNUType>([](Type) { return &rt::kF8E8M0FNU; })
              .Case<Float8E4M3FNUZType>([](Type) { return &rt::kF8E4M3FNUZ; })
              .Case<Float8E5M2FNUZType>([](Type) { return &rt::kF8E5M2FNUZ; })
              .Case<Float6E2M3FNType>([](Type) { return &rt::kF6E2M3FN; })
              .Case<Float6E3M2FNType>([](Type) { return &rt::kF6E3M2FN; })
              .Case<Float4E2M1FNType>([](Type) { return &rt::kF4E2M1FN; });
}

double accel::roundToType(double value, Type type) {
  return rt::roundToNumber(getNumberFormat(type), value);
}

int64_t accel::wrapToType(int64_t value, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 64)
    return value;
  if (bits == 1 || type.isUnsignedInteger())
    return value & ((int64_t(1) << bits) - 1);
  return llvm::SignExtend64(value, bits);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static int64_t elementBytes(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

static uint64_t readBits(const char *at, int64_t bytes) {
  uint64_t bits = 0;
  for (int64_t byte = 0; byte < bytes; ++byte)
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(at[byte])) << (8 * byte);
  return bits;
}

static void writeBits(char *at, uint64_t bits, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; ++byte)
    *at++ = static_cast<char>(bits >> (8 * byte));
}

static int64_t readInt(const char *at, Type type) {
  uint64_t bits = readBits(at, elementBytes(type));
  if (type.isInteger(1))
    return bits != 0;
  return wrapToType(static_cast<int64_t>(bits), type);
}

Tensor Tensor::fromBytes(RankedTensorType type, ArrayRef<char> bytes) {
  Tensor tensor(type);
  int64_t size = elementBytes(tensor.element);
  assert(static_cast<int64_t>(bytes.size()) == type.getNumElements() * size &&
         "bytes of another size than the tensor's");
  const char *at = bytes.data();
  if (tensor.isFloat()) {
    const rt::NumberFormat &format = getNumberFormat(tensor.element);
    for (double &value : *tensor.floatData) {
      value = rt::decodeNumber(format, readBits(at, size));
      at += size;
    }
    return tensor;
  }
  for (int64_t &value : *tensor.intData) {
    value = readInt(at, tensor.element);
    at += size;
  }
  return tensor;
}

int64_t Tensor::getElementBytes() const { return elementBytes(element); }

void Tensor::toBytes(MutableArrayRef<char> bytes) const {
  int64_t size = elementBytes(element);
  assert(static_cast<int64_t>(bytes.size()) == getNumElements() * size &&
         "bytes of another size than the tensor's");
  char *at = bytes.data();
  if (isFloat()) {
    const rt::NumberFormat &format = getNumberFormat(element);
    for (double value : *floatData) {
      writeBits(at, rt::encodeNumber(format, value), size);
      at += size;
    }
    return;
  }
  for (int64_t value : *intData) {
    writeBits(at, static_cast<uint64_t>(value), size);
    at += size;
  }
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Tensor::Tensor(ArrayRef<int64_t> shape, Type element)
    : shape(shape), element(element) {
  assert(element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 64);
  if (isFloat())
    floatData = std::make_shared<std::vector<double>>(getNumElements());
  else
    intData = std::make_shared<std::vector<int64_t>>(getNumElements());
}

MutableArrayRef<double> Tensor::mutableFloats() {
  if (floatData.use_count() > 1)
    floatData = std::make_shared<std::vector<double>>(*floatData);
  return *floatData;
}

MutableArrayRef<int64_t> Tensor::mutableInts() {
  if (intData.use_count() > 1)
    intData = std::make_shared<std::vector<int64_t>>(*intData);
  return *intData;
}

Tensor Tensor::reshape(ArrayRef<int64_t> newShape) const {
  assert(ShapedType::getNumElements(newShape) == getNumElements());
  Tensor result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}

SmallVector<int64_t> accel::getRowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

/// One loop per dimension; `visit` is inlined into the innermost.
template <typename Fn>
static void visitNested(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                        int64_t offset, Fn &visit) {
  if (shape.empty())
    return visit(offset);
  if (shape.size() > 1) {
    for (int64_t index = 0; index < shape[0]; ++index)
      visitNested(shape.drop_front(), strides.drop_front(),
                  offset + index * strides[0], visit);
    return;
  }
  for (int64_t index = 0; index < shape[0]; ++index)
    visit(offset + index * strides[0]);
}

/// Of no elements there may be billions of rows.
template <typename Fn>
static void visitPositions(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                           int64_t offset, Fn &visit) {
  if (!llvm::is_contained(shape, 0))
    visitNested(shape, strides, offset, visit);
}

void accel::forEachPosition(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                            int64_t offset,
                            llvm::function_ref<void(int64_t)> visit) {
  visitPositions(shape, strides, offset, visit);
}

Tensor Tensor::strided(ArrayRef<int64_t> newShape, ArrayRef<int64_t> strides,
                       int64_t offset) const {
  assert(newShape.size() == strides.size());
  Tensor result(newShape, element);
  auto copy = [&](const auto &source, auto *target) {
    auto visit = [&](int64_t position) { *target++ = source[position]; };
    visitPositions(newShape, strides, offset, visit);
  };
  if (isFloat())
    copy(*floatData, result.floatData->data());
  else
    copy(*intData, result.intData->data());
  return result;
}

void Tensor::roundToElementType() {
  if (!isFloat() || element.isF64())
    return;
  for (double &value : mutableFloats())
    value = roundToType(value, element);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

FailureOr<Tensor> Tensor::fromElements(ElementsAttr elements) {
  auto type = cast<RankedTensorType>(elements.getShapedType());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    int64_t bytes = type.getNumElements() * elementBytes(type.getElementType());
    if (!blob || static_cast<int64_t>(blob->getData().size()) != bytes)
      return failure();
    return fromBytes(type, blob->getData());
  }
  // Dense data is stored as fromBytes reads it, one element for a splat: the
  // quick way for big tables. Only i1 is packed otherwise.
  if (auto dense = dyn_cast<DenseElementsAttr>(elements)) {
    if (dense.isSplat())
      return fromBytes(RankedTensorType::get({}, type.getElementType()),
                       dense.getRawData())
          .strided(type.getShape(), SmallVector<int64_t>(type.getRank(), 0));
    if (!type.getElementType().isInteger(1))
      return fromBytes(type, dense.getRawData());
  }
  Tensor tensor(type);
  if (tensor.isFloat()) {
    auto values = elements.tryGetValues<APFloat>();
    if (!values)
      return failure();
    for (auto [target, value] : llvm::zip(*tensor.floatData, *values)) {
      bool lost;
      APFloat wide = value;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      target = wide.convertToDouble();
    }
    return tensor;
  }
  auto values = elements.tryGetValues<APInt>();
  if (!values)
    return failure();
  for (auto [target, value] : llvm::zip(*tensor.intData, *values))
    target = wrapToType(value.zextOrTrunc(64).getSExtValue(), tensor.element);
  return tensor;
}

/// Whether all values are the same bits; NaN never is.
template <typename T> static bool isUniform(const std::vector<T> &values) {
  return llvm::all_of(values, [&](T value) {
    return value == values.front() && value == value &&
           std::signbit(static_cast<double>(value)) ==
               std::signbit(static_cast<double>(values.front()));
  });
}

DenseElementsAttr Tensor::toElements(ShapedType type) const {
  assert(hasType(cast<RankedTensorType>(type)));
  int64_t count = getNumElements();
  bool splat =
      count > 1 && (isFloat() ? isUniform(*floatData) : isUniform(*intData));
  if (element.isInteger(1)) { // packed, so built value by value
    SmallVector<bool> values(intData->begin(), intData->end());
    if (splat)
      values.resize(1);
    return DenseElementsAttr::get(type, values);
  }
  Tensor source = splat ? strided({1}, {0}) : *this;
  std::vector<char> bytes(source.getNumElements() * getElementBytes());
  source.toBytes(bytes);
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}
