// Import of operators whose results are known when the model is compiled.

#include "lib/Import/OpTable.h"
#include "lib/Import/Tensors.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

static LogicalResult importConstant(Importer &n) {
  using Attribute = onnx::AttributeProto;
  Builder &builder = n.graph.builder;
  if (n.node.attribute_size() != 1)
    return n.error() << "expected one attribute, found "
                     << n.node.attribute_size();
  StringRef name = n.node.attribute(0).name();
  Type real = computeType(builder.getF32Type(), n.graph.options.f64);
  if (name == "value") {
    const auto *tensor = n.attribute(name, Attribute::TENSOR);
    if (!tensor)
      return failure();
    DenseElementsAttr value =
        tensorValue(n.graph.file, tensor->t(), n.graph.options.f64, n.loc);
    return value ? n.finish(n.constant(value)) : failure();
  }
  if (name == "value_int")
    return n.finish(n.ints(n.intAttr(name, 0), {}));
  if (name == "value_ints") {
    SmallVector<int64_t> values =
        n.intsAttr(name).value_or(SmallVector<int64_t>());
    return n.finish(n.ints(values, static_cast<int64_t>(values.size())));
  }
  if (name == "value_float")
    return n.finish(n.splat({}, real, n.floatAttr(name, 0)));
  if (name == "value_floats") {
    const auto *list = n.attribute(name, Attribute::FLOATS);
    if (!list)
      return failure();
    SmallVector<mlir::Attribute> values;
    for (float value : list->floats())
      values.push_back(builder.getFloatAttr(real, value));
    return n.finish(n.constant(DenseElementsAttr::get(
        RankedTensorType::get(list->floats_size(), real), values)));
  }
  return n.error() << "expected attribute 'value', 'value_int', 'value_ints', "
                      "'value_float' or 'value_floats', found '"
                   << name << "'";
}

static LogicalResult importConstantOfShape(Importer &n) {
  using Attribute = onnx::AttributeProto;
  auto [shape, chosen] = n.constantSizes(0);
  auto finish = [&, chosen = chosen](Value value) {
    if (chosen && value)
      n.graph.choices.mark(value, *chosen);
    return n.finish(value);
  };
  for (int64_t size : shape)
    if (size < 0 || !isAddressable(shape))
      return n.error() << "expected sizes of a tensor whose elements can be "
                          "addressed, found ["
                       << shape << "]";
  Type real = computeType(n.graph.builder.getF32Type(), n.graph.options.f64);
  if (!n.hasAttribute("value"))
    return finish(n.splat(shape, real, 0));
  const auto *tensor = n.attribute("value", Attribute::TENSOR);
  if (!tensor)
    return failure();
  DenseElementsAttr value =
      tensorValue(n.graph.file, tensor->t(), n.graph.options.f64, n.loc);
  if (!value)
    return failure();
  if (value.getNumElements() != 1)
    return n.error() << "expected one value, found " << value.getType();
  return finish(n.constant(
      value.resizeSplat(RankedTensorType::get(shape, value.getElementType()))));
}

/// As many positions as no model has; a range is a constant.
static constexpr int64_t kMostNumbers = 1 << 24;

static LogicalResult importRange(Importer &n) {
  n.ignoreAttr("stash_type"); // in f64
  DenseElementsAttr bounds[3];
  for (int index = 0; index < 3; ++index) {
    bounds[index] = Importer::constantOf(n.operand(index));
    if (!bounds[index] || n.graph.choices.isSize(n.operand(index))) {
      n.refuseComputed(index);
      return failure();
    }
    if (bounds[index].getNumElements() != 1 ||
        bounds[index].getElementType() != bounds[0].getElementType())
      return n.error() << "expected three scalars of one type, found "
                       << bounds[index].getType() << " as operand #" << index;
  }
  Type element = bounds[0].getElementType();
  unsigned bits = element.getIntOrFloatBitWidth();
  // Checks the number of them, then makes the bits of each.
  auto makeRange = [&](__int128 count, auto bitsOf) -> LogicalResult {
    if (count > kMostNumbers)
      return n.error() << "expected a range of at most " << kMostNumbers
                       << " numbers, found more";
    if (count > n.graph.room)
      return n.error() << "expected constants of the whole model that take at "
                          "most "
                       << GraphImporter::kMostOperations
                       << " operations, found more";
    n.graph.room -= int64_t(count);
    std::vector<char> bytes(size_t(count) * (bits / 8));
    for (int64_t index = 0; index < count; ++index) {
      uint64_t word = bitsOf(index);
      std::memcpy(bytes.data() + index * (bits / 8), &word, bits / 8);
    }
    return n.finish(n.constant(DenseElementsAttr::getFromRawBuffer(
        RankedTensorType::get(int64_t(count), element), bytes)));
  };
  if (auto real = dyn_cast<FloatType>(element)) {
    double number[3];
    for (int index = 0; index < 3; ++index)
      number[index] =
          (*bounds[index].getValues<FloatAttr>().begin()).getValueAsDouble();
    if (number[2] == 0 || std::isnan(number[0] + number[1] + number[2]))
      return n.error() << "expected a step other than 0, found " << number[2];
    double count = std::ceil((number[1] - number[0]) / number[2]);
    // What is not finite is too many as well.
    return makeRange(count <= kMostNumbers
                         ? std::max<int64_t>(int64_t(count), 0)
                         : kMostNumbers + 1,
                     [&](int64_t index) {
                       APFloat value(number[0] + index * number[2]);
                       bool losesInfo = false;
                       value.convert(real.getFloatSemantics(),
                                     APFloat::rmNearestTiesToEven, &losesInfo);
                       return value.bitcastToAPInt().getZExtValue();
                     });
  }
  int64_t number[3];
  for (int index = 0; index < 3; ++index)
    number[index] = integerElements(bounds[index])[0];
  if (number[2] == 0)
    return n.error() << "expected a step other than 0, found 0";
  // In 128 bits neither the difference nor the last sum overflows.
  __int128 step = number[2], way = __int128(number[1]) - number[0];
  __int128 count = (way + step + (step > 0 ? -1 : 1)) / step;
  return makeRange(std::max<__int128>(count, 0), [&](int64_t index) {
    return static_cast<uint64_t>(number[0] + index * step);
  });
}

/// Ones where the column is the row and `k` more, of the shape of the operand,
/// whose elements mean nothing.
static LogicalResult importEyeLike(Importer &n) {
  Value x = n.operand(0);
  int64_t k = n.intAttr("k", 0);
  Type type = Importer::element(x);
  if (n.hasAttribute("dtype")) {
    int64_t number = n.intAttr("dtype", 0);
    type = elementType(number, n.loc.getContext());
    if (!type)
      return n.error() << "element type #" << number << " is not supported";
    type = computeType(type, n.graph.options.f64);
  }
  if (Importer::rank(x) != 2)
    return n.error() << "expected a matrix, found " << x.getType();
  int64_t rows = Importer::shape(x)[0], columns = Importer::shape(x)[1];
  if (__int128(rows) * columns > kMostNumbers)
    return n.error() << "expected a matrix of at most " << kMostNumbers
                     << " elements, found " << x.getType();
  SmallVector<int64_t> ofRows = llvm::to_vector(llvm::seq(k, k + rows));
  SmallVector<int64_t> ofColumns = llvm::to_vector(llvm::seq<int64_t>(columns));
  Value isOne = n.compare(nn::ComparePredicate::eq, n.ints(ofRows, {rows, 1}),
                          n.ints(ofColumns, {1, columns}));
  return n.finish(n.cast(isOne, type));
}

ArrayRef<OpRow> accel::import::constantOps() {
  static const OpRow rows[] = {
      {"", "Constant", 1, 0, 0, importConstant},
      {"", "ConstantOfShape", 9, 1, 1, importConstantOfShape},
      {"", "EyeLike", 9, 1, 1, importEyeLike},
      {"", "Range", 11, 3, 3, importRange},
  };
  return rows;
}
