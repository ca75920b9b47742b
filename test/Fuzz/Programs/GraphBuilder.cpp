// The ops of a program, with the shapes that follow.

#include "GraphBuilder.h"

#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

GraphBuilder::GraphBuilder(MLIRContext *context, Random &random)
    : random(random), b(context) {
  Location unknown = b.getUnknownLoc();
  module = ModuleOp::create(unknown);
  setPhase(*module, Phase::NN);
  b.setInsertionPointToEnd(module->getBody());
  entry = func::FuncOp::create(b, unknown, "main", b.getFunctionType({}, {}));
  nn::setEntryKind(entry, nn::EntryKind::forward);
  b.setInsertionPointToEnd(entry.addEntryBlock());
}

OwningOpRef<ModuleOp> GraphBuilder::finish(Value loss) {
  func::ReturnOp::create(b, b.getUnknownLoc(), loss);
  entry.setType(
      b.getFunctionType(entry.getBody().getArgumentTypes(), loss.getType()));
  entry.setResultAttr(0, nn::kOutputAttr, b.getStringAttr("loss"));
  return std::move(module);
}

Location GraphBuilder::loc(StringRef stem) {
  stem.consume_front("nn.");
  return NameLoc::get(b.getStringAttr(stem + "_" + Twine(numOps++)));
}

Value GraphBuilder::addArgument(unsigned place, Type type, StringRef attribute,
                                Attribute value, Location loc) {
  auto attributes = b.getDictionaryAttr(b.getNamedAttr(attribute, value));
  LogicalResult added = entry.insertArgument(place, type, attributes, loc);
  assert(succeeded(added) && "the entry has a body");
  (void)added;
  return entry.getArgument(place);
}

Value GraphBuilder::input(StringRef stem, ArrayRef<int64_t> shape, Type element,
                          StringRef batchDim) {
  StringAttr name =
      b.getStringAttr(stem + (numInputs ? Twine(numInputs) : Twine()));
  if (!batchDim.empty())
    batchDims.push_back((name.getValue() + "=" + batchDim).str());
  return addArgument(numInputs++, RankedTensorType::get(shape, element),
                     nn::kInputAttr, name, NameLoc::get(name));
}

Value GraphBuilder::state(StringRef stem, ArrayRef<int64_t> shape,
                          double spread, double middle, bool isFrozen,
                          nn::StateRole role) {
  auto type = RankedTensorType::get(shape, f64());
  SmallVector<double> numbers;
  for (int64_t at = 0; at < type.getNumElements(); ++at)
    // Few digits, so that its text is short, and no zero: functions have kinks
    // there.
    numbers.push_back(
        (2 * std::floor(64 * (middle +
                              spread * double(random.between(-32, 32)) / 32)) +
         1) /
        128);
  StringAttr name = b.getStringAttr(stem + "." + Twine(numStates));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entry);
  nn::StateOp::create(b, NameLoc::get(name), name, type,
                      DenseElementsAttr::get(type, ArrayRef(numbers)),
                      /*aliases=*/nullptr, /*initializers=*/nullptr,
                      /*stored=*/nullptr, /*logical=*/nullptr, isFrozen, role);
  return addArgument(numInputs + numStates++, type, nn::kStateAttr,
                     FlatSymbolRefAttr::get(name), NameLoc::get(name));
}

Value GraphBuilder::parameter(StringRef stem, ArrayRef<int64_t> shape,
                              double spread, double middle) {
  return state(stem, shape, spread, middle, /*isFrozen=*/false);
}
Value GraphBuilder::frozen(StringRef stem, ArrayRef<int64_t> shape,
                           double spread, double middle) {
  return state(stem, shape, spread, middle, /*isFrozen=*/true);
}
Value GraphBuilder::buffer(StringRef stem, ArrayRef<int64_t> shape,
                           double spread, double middle) {
  return state(stem, shape, spread, middle, /*isFrozen=*/false,
               nn::StateRole::buffer);
}

Value GraphBuilder::splat(double number, ArrayRef<int64_t> shape) {
  return make<nn::ConstantOp>(
      DenseElementsAttr::get(RankedTensorType::get(shape, f64()), number));
}
Value GraphBuilder::integer(int64_t number, ArrayRef<int64_t> shape) {
  return make<nn::ConstantOp>(
      DenseElementsAttr::get(RankedTensorType::get(shape, i64()), number));
}
Value GraphBuilder::integers(ArrayRef<int64_t> numbers,
                             ArrayRef<int64_t> shape) {
  return make<nn::ConstantOp>(
      DenseElementsAttr::get(RankedTensorType::get(shape, i64()), numbers));
}
Value GraphBuilder::floats(ArrayRef<double> numbers, ArrayRef<int64_t> shape) {
  return make<nn::ConstantOp>(
      DenseElementsAttr::get(RankedTensorType::get(shape, f64()), numbers));
}
Value GraphBuilder::iota(ArrayRef<int64_t> shape, int64_t dim) {
  return make<nn::IotaOp>(RankedTensorType::get(shape, i64()), dim,
                          /*start=*/0);
}

Shape GraphBuilder::join(ArrayRef<int64_t> x, ArrayRef<int64_t> y) {
  if (x.size() < y.size())
    std::swap(x, y);
  Shape shape(x);
  for (size_t at = 0; at < y.size(); ++at) {
    int64_t &size = shape[x.size() - 1 - at];
    size = size == 1 ? y[y.size() - 1 - at] : size;
  }
  return shape;
}

Value GraphBuilder::select(Value condition, Value x, Value y) {
  Shape shape = join(join(shapeOf(condition), shapeOf(x)), shapeOf(y));
  return make<nn::SelectOp>(broadcast(condition, shape), broadcast(x, shape),
                            broadcast(y, shape));
}
Value GraphBuilder::compare(nn::ComparePredicate predicate, Value x, Value y) {
  Shape shape = join(shapeOf(x), shapeOf(y));
  return make<nn::CompareOp>(predicate, broadcast(x, shape),
                             broadcast(y, shape));
}

Value GraphBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return make<nn::ReshapeOp>(RankedTensorType::get(shape, elementOf(value)),
                             value);
}
Value GraphBuilder::broadcast(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return make<nn::BroadcastOp>(RankedTensorType::get(shape, elementOf(value)),
                               value);
}
Value GraphBuilder::transpose(Value value, ArrayRef<int64_t> permutation) {
  return make<nn::TransposeOp>(value, permutation);
}

Value GraphBuilder::slice(Value value, int64_t dim, int64_t start, int64_t size,
                          int64_t step) {
  Shape starts(rankOf(value), 0), sizes(shapeOf(value)),
      steps(rankOf(value), 1);
  starts[dim] = start;
  sizes[dim] = size;
  steps[dim] = step;
  return make<nn::SliceOp>(value, starts, sizes, steps);
}
Value GraphBuilder::concat(ArrayRef<Value> values, int64_t dim) {
  return make<nn::ConcatOp>(ValueRange(values), dim);
}
Value GraphBuilder::pad(Value value, int64_t dim, int64_t low, int64_t high,
                        double filler) {
  Shape before(rankOf(value), 0), after(rankOf(value), 0);
  before[dim] = low;
  after[dim] = high;
  Value with =
      elementOf(value).isF64() ? splat(filler) : integer(int64_t(filler), {});
  return make<nn::PadOp>(value, with, before, after);
}
Value GraphBuilder::unsqueeze(Value value, int64_t dim) {
  Shape shape(shapeOf(value));
  shape.insert(shape.begin() + dim, 1);
  return reshape(value, shape);
}

Value GraphBuilder::reduce(nn::ReductionKind kind, Value value,
                           ArrayRef<int64_t> dims, bool keep) {
  Value result = make<nn::ReduceOp>(kind, value, dims, /*first=*/false);
  if (!keep)
    return result;
  Shape shape(shapeOf(value));
  for (int64_t dim : dims)
    shape[dim] = 1;
  return reshape(result, shape);
}
Value GraphBuilder::sumAll(Value value) {
  Shape dims = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(value)));
  return dims.empty() ? value : sum(value, dims);
}
Value GraphBuilder::mean(Value value, ArrayRef<int64_t> dims, bool keep) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shapeOf(value)[dim];
  return mul(sum(value, dims, keep), 1.0 / double(count));
}
Value GraphBuilder::meanAll(Value value) {
  return mul(sumAll(value),
             1.0 / double(ShapedType::getNumElements(shapeOf(value))));
}
Value GraphBuilder::matmul(Value x, Value y, bool transposeX, bool transposeY) {
  return make<nn::MatmulOp>(x, y, transposeX, transposeY);
}
Value GraphBuilder::softmax(Value value, int64_t dim, bool log) {
  return make<nn::SoftmaxOp>(value, dim, log);
}
Value GraphBuilder::layerNorm(Value value, Value scale, Value bias,
                              int64_t dim) {
  // A number that files of float32 attributes hold exactly.
  return make<nn::LayerNormOp>(value.getType(), value, scale, bias,
                               b.getI64IntegerAttr(dim),
                               b.getF64FloatAttr(0x1p-10));
}
Value GraphBuilder::gather(Value table, Value indices, int64_t dim,
                           int64_t padding) {
  return make<nn::GatherOp>(table, indices, dim,
                            padding < 0 ? IntegerAttr()
                                        : b.getI64IntegerAttr(padding),
                            /*non_negative=*/false);
}
Value GraphBuilder::cast(Value value, Type element) {
  return make<nn::CastOp>(RankedTensorType::get(shapeOf(value), element),
                          value);
}
