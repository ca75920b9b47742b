// Conversion of ONNX tensors: element types by number, payloads into dense
// attributes, and small constants from numbers.

#include "Tensors.h"

#include "mlir/IR/Diagnostics.h"
#include <limits>

using namespace mlir;
using namespace accel;

Type import::elementType(int32_t dataType, MLIRContext *context) {
  using onnx::TensorProto;
  switch (dataType) {
  case TensorProto::FLOAT:
    return Float32Type::get(context);
  case TensorProto::DOUBLE:
    return Float64Type::get(context);
  case TensorProto::FLOAT16:
    return Float16Type::get(context);
  case TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case TensorProto::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case TensorProto::FLOAT6E2M3:
    return Float6E2M3FNType::get(context);
  case TensorProto::FLOAT6E3M2:
    return Float6E3M2FNType::get(context);
  case TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case TensorProto::INT64:
    return IntegerType::get(context, 64);
  case TensorProto::INT32:
    return IntegerType::get(context, 32);
  case TensorProto::INT16:
    return IntegerType::get(context, 16);
  case TensorProto::INT8:
    return IntegerType::get(context, 8);
  case TensorProto::INT4:
    return IntegerType::get(context, 4);
  case TensorProto::INT2:
    return IntegerType::get(context, 2);
  case TensorProto::UINT4:
    return IntegerType::get(context, 4, IntegerType::Unsigned);
  case TensorProto::UINT2:
    return IntegerType::get(context, 2, IntegerType::Unsigned);
  case TensorProto::UINT64:
    return IntegerType::get(context, 64, IntegerType::Unsigned);
  case TensorProto::UINT32:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  case TensorProto::UINT16:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case TensorProto::UINT8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case TensorProto::BOOL:
    return IntegerType::get(context, 1);
  default:
    return nullptr;
  }
}

Type import::computeType(Type element, bool f64) {
  return f64 && isa<FloatType>(element) ? Float64Type::get(element.getContext())
                                        : element;
}

bool import::isAddressable(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size > (int64_t(1) << 56) / count)
      return false;
    count *= std::max<int64_t>(size, 1);
  }
  return true;
}

double import::widenNumber(double number) {
  return number == std::numeric_limits<float>::epsilon()
             ? std::numeric_limits<double>::epsilon()
             : number;
}

/// A byte for each element of less, of which the first has the low bits.
static std::vector<char> unpack(ArrayRef<char> data, Type element,
                                int64_t count) {
  int64_t bits = element.getIntOrFloatBitWidth();
  std::vector<char> codes(count);
  for (auto [index, code] : llvm::enumerate(codes)) {
    int64_t value = 0;
    for (int64_t bit = 0; bit < bits; ++bit) {
      int64_t at = int64_t(index) * bits + bit;
      value |= int64_t(data[at / 8] >> (at % 8) & 1) << bit;
    }
    bool hasSign = !isa<FloatType>(element) && !element.isUnsignedInteger();
    code = static_cast<char>(hasSign ? llvm::SignExtend64(value, bits) : value);
  }
  return codes;
}

DenseElementsAttr import::tensorValue(const onnxio::OnnxFile &file,
                                      const onnx::TensorProto &tensor, bool f64,
                                      Location loc) {
  Type element = elementType(tensor.data_type(), loc.getContext());
  if (!element) {
    emitError(loc) << "element type '"
                   << onnxio::elementTypeName(tensor.data_type())
                   << "' of tensor '" << tensor.name() << "' is not supported";
    return nullptr;
  }
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  auto type = RankedTensorType::get(shape, element);
  ArrayRef<char> data = file.values(tensor);
  DenseElementsAttr value;
  if (element.isInteger(1)) {
    SmallVector<bool> bits(
        llvm::map_range(data, [](char byte) { return byte != 0; }));
    value = DenseElementsAttr::get(type, bits);
  } else if (element.getIntOrFloatBitWidth() < 8) {
    std::vector<char> codes = unpack(data, element, type.getNumElements());
    value = DenseElementsAttr::getFromRawBuffer(type, codes);
  } else {
    value = DenseElementsAttr::getFromRawBuffer(type, data);
  }
  auto floatType = dyn_cast<FloatType>(element);
  if (!f64 || !floatType || element.isF64())
    return value;
  return cast<DenseFPElementsAttr>(value).mapValues(
      Float64Type::get(loc.getContext()), [](const APFloat &number) {
        APFloat wide = number;
        bool lossy;
        wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                     &lossy);
        return APFloat(widenNumber(wide.convertToDouble())).bitcastToAPInt();
      });
}

DenseElementsAttr import::splatValue(ArrayRef<int64_t> shape, Type element,
                                     double value) {
  auto type = RankedTensorType::get(shape, element);
  if (auto floatType = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool lossy;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &lossy);
    return DenseElementsAttr::get(type, number);
  }
  return DenseElementsAttr::get(
      type, APInt(element.getIntOrFloatBitWidth(),
                  static_cast<uint64_t>(static_cast<int64_t>(value)),
                  /*isSigned=*/true, /*implicitTrunc=*/true));
}

SmallVector<int64_t> import::integerElements(ElementsAttr value) {
  Type element = value.getShapedType().getElementType();
  bool isUnsigned = element.isInteger(1) || element.isUnsignedInteger();
  return llvm::map_to_vector(cast<DenseElementsAttr>(value).getValues<APInt>(),
                             [&](const APInt &number) {
                               return isUnsigned ? static_cast<int64_t>(
                                                       number.getZExtValue())
                                                 : number.getSExtValue();
                             });
}

DenseElementsAttr import::transposeBack(DenseElementsAttr value,
                                        ArrayRef<int64_t> permutation) {
  ArrayRef<int64_t> shape = value.getType().getShape();
  SmallVector<int64_t> original(shape.size()), strides(shape.size());
  for (auto [dim, from] : llvm::enumerate(permutation))
    original[from] = shape[dim];
  // strides[d]: how far dimension d of the original reaches in `value`.
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    strides[permutation[dim]] = stride;
    stride *= shape[dim];
  }
  SmallVector<Attribute> elements(value.getValues<Attribute>());
  SmallVector<Attribute> result;
  result.reserve(elements.size());
  SmallVector<int64_t> index(original.size(), 0);
  for (size_t count = 0; count < elements.size(); ++count) {
    int64_t place = 0;
    for (auto [at, step] : llvm::zip(index, strides))
      place += at * step;
    result.push_back(elements[place]);
    for (int64_t dim = index.size() - 1; dim >= 0; --dim) {
      if (++index[dim] < original[dim])
        break;
      index[dim] = 0;
    }
  }
  return DenseElementsAttr::get(
      RankedTensorType::get(original, value.getElementType()), result);
}
