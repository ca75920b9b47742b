// Evaluation of constants, op by op: what shape arithmetic needs to vanish as
// the import goes, and attention masks to be recognisable.

#include "FoldConstants.h"

#include "dialects/Interfaces/Cost.h"
#include "dialects/Interfaces/Evaluate.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace accel;
using namespace accel::transforms;

/// Results with more elements than this stay computed: the compiler's memory
/// and the file would hold them.
static constexpr int64_t kLargestConstant = int64_t(1) << 24;
/// So do those that take more operations: some ten seconds.
static constexpr int64_t kMostOperations = int64_t(1) << 28;

DenseElementsAttr transforms::getConstantValue(Value value) {
  auto constant = value ? value.getDefiningOp<nn::ConstantOp>() : nullptr;
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

std::optional<double> transforms::getSplatValue(Value value) {
  DenseElementsAttr known = getConstantValue(value);
  if (!known || !known.isSplat())
    return std::nullopt;
  if (isa<FloatType>(known.getElementType()))
    return known.getSplatValue<FloatAttr>().getValueAsDouble();
  APInt number = known.getSplatValue<APInt>();
  return number.getBitWidth() == 1 || known.getElementType().isUnsignedInteger()
             ? static_cast<double>(number.getZExtValue())
             : static_cast<double>(number.getSExtValue());
}

/// The value of `op` if it only moves the elements of a splat (evaluation would
/// spell the elements out first).
static DenseElementsAttr foldSplatMove(Operation *op) {
  auto source = dyn_cast<KernelSourceOpInterface>(op);
  if (!source || source.getKernelRole() != KernelRole::Movement ||
      op->getNumOperands() != 1)
    return nullptr;
  DenseElementsAttr value = getConstantValue(op->getOperand(0));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!value || !value.isSplat() || type.getNumElements() == 0)
    return nullptr;
  return value.resizeSplat(type);
}

/// Broadcasts of constants to more elements than this stay ops: repetition over
/// a batch would be computed with, over and over, and stored.
static constexpr int64_t kLargestRepetition = 4096;

static bool isKeptBroadcast(Operation *op) {
  auto broadcast = dyn_cast<nn::BroadcastOp>(op);
  return broadcast && broadcast.getType().getNumElements() > kLargestRepetition;
}

/// The constant that `value` is or repeats; null if it is computed.
static DenseElementsAttr knownSource(Value value) {
  if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>())
    value = broadcast.getInput();
  return getConstantValue(value);
}

/// The tensor broadcast to `shape` (aligned at the last dimension).
static Tensor broadcastTensor(const Tensor &tensor, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = tensor.getShape();
  if (from == shape)
    return tensor;
  SmallVector<int64_t> strides(shape.size(), 0), index(shape.size(), 0);
  int64_t stride = 1, lead = shape.size() - from.size();
  for (int64_t dim = from.size() - 1; dim >= 0; --dim) {
    strides[lead + dim] = from[dim] == 1 ? 0 : stride;
    stride *= from[dim];
  }
  Tensor result(shape, tensor.getElementType());
  int64_t count = ShapedType::getNumElements(shape);
  auto copy = [&](auto to, auto source) {
    for (int64_t place = 0; place < count; ++place) {
      int64_t at = 0;
      for (size_t dim = 0; dim < index.size(); ++dim)
        at += index[dim] * strides[dim];
      to[place] = source[at];
      for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
        if (++index[dim] < shape[dim])
          break;
        index[dim] = 0;
      }
    }
  };
  if (tensor.isFloat())
    copy(result.mutableFloats(), tensor.floats());
  else
    copy(result.mutableInts(), tensor.ints());
  return result;
}

/// The smallest shape from which an elementwise op on these operands can be
/// broadcast: dimension by dimension, the largest of the constants'.
static SmallVector<int64_t> narrowShape(ArrayRef<DenseElementsAttr> sources,
                                        size_t rank) {
  SmallVector<int64_t> narrow(rank, 1);
  for (DenseElementsAttr source : sources)
    if (!source.isSplat())
      for (auto [size, all] :
           llvm::zip(llvm::reverse(source.getType().getShape()),
                     llvm::reverse(narrow)))
        all = std::max(all, size);
  return narrow;
}

/// Whether an op spells out in `elements` what far fewer say, as the zeros
/// around the gradient of a slice or of a choice. A program of many slices
/// would hold as many tensors as large as what is cut.
static bool isSpread(int64_t elements, ArrayRef<DenseElementsAttr> sources) {
  int64_t held = 0;
  for (DenseElementsAttr source : sources)
    held += source.isSplat() ? 1 : source.getNumElements();
  return elements > kLargestRepetition && elements / 2 > held;
}

/// Operations that evaluating `op` takes, to a result of `elements`. To read
/// its operands takes less.
static int64_t getOperations(Operation *op, int64_t elements) {
  auto cost = dyn_cast<CostOpInterface>(op);
  if (op->hasTrait<nn::Elementwise>())
    return elements;
  int64_t read = 0;
  for (Value operand : op->getOperands())
    read += cast<RankedTensorType>(operand.getType()).getNumElements() / 8;
  int64_t flops = cost ? cost.getFlops() : 0;
  return flops < 0 // of large products more than it holds
             ? std::numeric_limits<int64_t>::max()
             : std::max({elements, flops, read});
}

/// The value of `op`, null if it is not known; fails where the op refuses the
/// values (an index out of range), after an error. An elementwise op may give a
/// value of fewer elements, which broadcasts to the op's.
static FailureOr<DenseElementsAttr> foldByEvaluation(Operation *op,
                                                     int64_t *room) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<DenseElementsAttr> sources(
      llvm::map_range(op->getOperands(), knownSource));
  if (!isa<EvaluateOpInterface>(op) || isKeptBroadcast(op) ||
      llvm::any_of(sources, [](DenseElementsAttr known) { return !known; }))
    return DenseElementsAttr();
  bool narrows = op->hasTrait<nn::Elementwise>() &&
                 type.getNumElements() > kLargestRepetition;
  SmallVector<int64_t> shape(type.getShape());
  if (narrows) {
    llvm::transform(sources, sources.begin(), withoutRepeats);
    shape = narrowShape(sources, shape.size());
  }
  int64_t elements = ShapedType::getNumElements(shape);
  int64_t operations = getOperations(op, elements);
  // The importer's are those of masks and tables, which it must know.
  if (!room && !narrows && isSpread(elements, sources))
    return DenseElementsAttr();
  if (elements > kLargestConstant ||
      operations > (room ? *room : kMostOperations))
    return DenseElementsAttr();
  if (room)
    *room -= operations;

  SmallVector<Tensor> operands, results;
  for (auto [operand, source] : llvm::zip(op->getOperands(), sources)) {
    auto full = cast<RankedTensorType>(operand.getType());
    if (!narrows && full.getNumElements() > kLargestConstant)
      return DenseElementsAttr();
    // A splat of many elements is read as one.
    if (source.isSplat() && source.getNumElements() > 1)
      source =
          source.resizeSplat(RankedTensorType::get({}, full.getElementType()));
    FailureOr<Tensor> tensor = Tensor::fromElements(source);
    if (failed(tensor))
      return DenseElementsAttr();
    operands.push_back(broadcastTensor(
        *tensor, narrows ? ArrayRef<int64_t>(shape) : full.getShape()));
  }
  Operation *evaluated = op;
  if (ArrayRef<int64_t>(shape) != type.getShape()) {
    // The same op on the narrow shape, on stand-ins for its operands, for as
    // long as it is evaluated. No listener of the caller's hears of them.
    OpBuilder builder(op);
    OperationState state(op->getLoc(), op->getName());
    for (const Tensor &operand : operands)
      state.addOperands(
          nn::IotaOp::create(builder, op->getLoc(), operand.getType(), 0, 0)
              .getResult());
    state.addTypes(RankedTensorType::get(shape, type.getElementType()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    evaluated = builder.create(state);
  }
  LogicalResult done =
      evaluateOp(evaluated, operands, EvaluationMode::OwnTypes, results);
  if (evaluated != op) {
    SmallVector<Value> stands(evaluated->getOperands());
    evaluated->erase();
    for (Value stand : stands)
      stand.getDefiningOp()->erase();
  }
  if (failed(done))
    return failure();
  return results[0].toElements();
}

/// Erases `op`; a pattern driver that `builder` belongs to must hear of it.
static void eraseOp(OpBuilder &builder, Operation *op) {
  if (auto *listener =
          dyn_cast_if_present<RewriterBase::Listener>(builder.getListener()))
    listener->notifyOperationErased(op);
  op->erase();
}

Value transforms::foldOrKeep(OpBuilder &builder, Operation *op, int64_t *room) {
  Value result = op->getResult(0);
  SmallVector<OpFoldResult, 1> folded;
  DenseElementsAttr known;
  if (succeeded(op->fold(folded)) && folded.size() == 1) {
    if (auto value = dyn_cast<Value>(folded[0])) {
      if (value != result)
        eraseOp(builder, op);
      return value;
    }
    known = dyn_cast<DenseElementsAttr>(cast<Attribute>(folded[0]));
  }
  if (!known)
    known = foldSplatMove(op);
  if (!known) {
    FailureOr<DenseElementsAttr> evaluated = foldByEvaluation(op, room);
    if (failed(evaluated)) {
      eraseOp(builder, op);
      return nullptr;
    }
    known = *evaluated;
  }
  if (!known)
    return result;
  auto type = cast<RankedTensorType>(result.getType());
  if (known.isSplat() && known.getType() != type)
    known = known.resizeSplat(type);
  Value constant = nn::ConstantOp::create(builder, op->getLoc(), known);
  if (known.getType() != type)
    constant = nn::BroadcastOp::create(builder, op->getLoc(), type, constant);
  eraseOp(builder, op);
  return constant;
}
