// Tensors of convolutions with their channels last: those that are computed
// from each other element by element change together, and transposes stand
// where others read or make them.

#include "Passes.h"

#include "dialects/NN/TensorTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_PUTCHANNELSLASTPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

int64_t rankOf(Value value) { return typeOf(value).getRank(); }

/// Dimensions as they are to be: [n, s…, c] of [n, c, s…].
SmallVector<int64_t> getOrder(int64_t rank) {
  SmallVector<int64_t> order{0};
  llvm::append_range(order, llvm::seq<int64_t>(2, rank));
  order.push_back(1);
  return order;
}
/// And back.
SmallVector<int64_t> getInverse(int64_t rank) {
  SmallVector<int64_t> order{0, rank - 1};
  llvm::append_range(order, llvm::seq<int64_t>(1, rank - 1));
  return order;
}
/// Where a dimension is to be.
int64_t move(int64_t dim, int64_t rank) {
  return dim == 0 ? 0 : dim == 1 ? rank - 1 : dim - 1;
}

SmallVector<int64_t> reorder(ArrayRef<int64_t> list) {
  return llvm::map_to_vector(getOrder(list.size()),
                             [&](int64_t dim) { return list[dim]; });
}
RankedTensorType reorder(RankedTensorType type) {
  return RankedTensorType::get(reorder(type.getShape()), type.getElementType());
}

/// A convolution that knows no groups, and reads and makes samples.
bool isConvolution(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<nn::ConvOp, nn::ConvInputGradOp>([](auto conv) {
        return rankOf(conv.getResult()) == int64_t(conv.getSizes().size()) + 2;
      })
      .Default(false);
}

/// Whether elements are computed from those of the same coordinates, whatever
/// these are.
bool isElementwise(Operation *op) {
  return (op->hasTrait<nn::Elementwise>() && !isa<nn::RandomUniformOp>(op)) ||
         isa<nn::StopGradientOp>(op);
}

/// The operands of `op` that have their channels where the result has them;
/// none where `op` does not know how to do with others.
SmallVector<Value> getAlike(Operation *op) {
  if (op->getNumResults() != 1)
    return {};
  if (isElementwise(op))
    return llvm::to_vector(op->getOperands());
  if (auto concat = dyn_cast<nn::ConcatOp>(op))
    return llvm::to_vector(concat.getInputs());
  if (isConvolution(op) || isa<nn::BatchNormOp, nn::PadOp, nn::SliceOp>(op))
    return {op->getOperand(0)};
  return {};
}

/// The constant of one value that `op` is, if it is one.
SplatElementsAttr getSplat(Operation *op) {
  SplatElementsAttr splat;
  return op && matchPattern(op, m_Constant(&splat)) ? splat
                                                    : SplatElementsAttr();
}

/// Whether a tensor costs nothing to make with its channels last: another
/// transpose, and what repeats one value or a smaller tensor.
bool isMadeAnyway(Operation *op) {
  return isa_and_nonnull<nn::BroadcastOp, nn::TransposeOp>(op) || getSplat(op);
}

class Reorderer {
public:
  explicit Reorderer(func::FuncOp entry)
      : block(entry.getBody().front()), builder(entry.getContext()) {}

  void run();

private:
  bool isCandidate(Value value) const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() >= 3 && !type.getEncoding();
  }
  void findClasses();
  void choose();
  bool isChosen(Value value) const {
    // What has been made anew is of no class.
    return classes.contains(value) &&
           chosen.contains(classes.getLeaderValue(value));
  }

  Value build(Location loc, Value value, ArrayRef<int64_t> order);
  Value getLast(Location loc, Value value);
  Value getFirst(Value value);
  Value makeLast(Operation *op);
  void read(Operation *op);

  Block &block;
  OpBuilder builder;
  llvm::EquivalenceClasses<Value> classes;
  llvm::DenseSet<Value> chosen;             ///< leaders of classes
  llvm::DenseMap<Value, Value> remade;      ///< by ops with channels last
  llvm::DenseMap<Value, Value> last, first; ///< transposed
};
} // namespace

void Reorderer::findClasses() {
  auto insert = [&](Value value) {
    if (isCandidate(value))
      classes.insert(value);
  };
  llvm::for_each(block.getArguments(), insert);
  for (Operation &op : block) {
    llvm::for_each(op.getResults(), insert);
    for (Value value : getAlike(&op))
      if (isCandidate(value) && isCandidate(op.getResult(0)) &&
          rankOf(value) == rankOf(op.getResult(0)))
        classes.unionSets(value, op.getResult(0));
  }
}

/// Weighs what convolutions of a class read and make against the elements that
/// would have to be transposed, for each time that one of its tensors is made,
/// or read, by an op that wants channels where they are.
void Reorderer::choose() {
  llvm::DenseMap<Value, int64_t> gain;
  auto add = [&](Value value, int64_t elements) {
    gain[classes.getLeaderValue(value)] += elements;
  };
  for (const auto *member : classes) {
    Value value = member->getData();
    Operation *op = value.getDefiningOp();
    int64_t elements = typeOf(value).getNumElements();
    bool isAlike = op && !getAlike(op).empty();
    if (op && isConvolution(op)) {
      add(value, elements);
      add(op->getOperand(0), typeOf(op->getOperand(0)).getNumElements());
    }
    // Twice: there is a backward of it, too.
    if (!isAlike && !isMadeAnyway(op))
      add(value, -2 * elements);
    bool isReadElsewhere = llvm::any_of(value.getUses(), [&](OpOperand &use) {
      Operation *reader = use.getOwner();
      return !isa<nn::ReduceOp, nn::TransposeOp>(reader) &&
             !llvm::is_contained(getAlike(reader), value);
    });
    if (isReadElsewhere)
      add(value, -2 * elements);
  }
  for (auto [leader, elements] : gain)
    if (elements > 0)
      chosen.insert(leader);
}

/// The tensor with its dimensions in `order`: a reshape where none that has
/// more than one element passes another.
Value Reorderer::build(Location loc, Value value, ArrayRef<int64_t> order) {
  auto type = typeOf(value);
  SmallVector<int64_t> shape = llvm::map_to_vector(
      order, [&](int64_t dim) { return type.getDimSize(dim); });
  auto moved = llvm::filter_to_vector(
      order, [&](int64_t dim) { return type.getDimSize(dim) != 1; });
  if (llvm::is_sorted(moved))
    return nn::ReshapeOp::create(
        builder, loc, RankedTensorType::get(shape, type.getElementType()),
        value);
  return nn::TransposeOp::create(builder, loc, value, order);
}

/// The tensor with channels last: as it was made, or transposed once for all
/// its readers, of which the one at `loc` is the first.
Value Reorderer::getLast(Location loc, Value value) {
  if (Value made = remade.lookup(value))
    return made;
  Value &made = last[value];
  if (!made) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(value);
    made = build(loc, value, getOrder(rankOf(value)));
  }
  return made;
}

/// The same with channels where they were.
Value Reorderer::getFirst(Value value) {
  Value from = remade.lookup(value);
  if (!from)
    return value;
  Value &made = first[value];
  if (!made) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(from);
    made = build(value.getLoc(), from, getInverse(rankOf(value)));
  }
  return made;
}

/// The op with channels last, or null for one that makes them first.
Value Reorderer::makeLast(Operation *op) {
  Value result = op->getResult(0);
  int64_t rank = rankOf(result);
  RankedTensorType type = reorder(typeOf(result));
  builder.setInsertionPoint(op);
  if (isConvolution(op)) {
    Operation *conv = builder.clone(*op);
    conv->setOperand(0, build(op->getLoc(),
                              getLast(op->getLoc(), op->getOperand(0)),
                              getInverse(rank)));
    conv->moveBefore(op);
    return build(op->getLoc(), conv->getResult(0), getOrder(rank));
  }
  if (SplatElementsAttr splat = getSplat(op))
    return nn::ConstantOp::create(builder, op->getLoc(),
                                  splat.resizeSplat(type));
  if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    Value input = broadcast.getInput();
    SmallVector<int64_t> shape(rank - rankOf(input), 1);
    llvm::append_range(shape, typeOf(input).getShape());
    if (rankOf(input) != rank)
      input = nn::ReshapeOp::create(
          builder, op->getLoc(),
          RankedTensorType::get(shape, type.getElementType()), input);
    input = isChosen(input) ? getLast(op->getLoc(), input)
                            : build(op->getLoc(), input, getOrder(rank));
    return nn::BroadcastOp::create(builder, op->getLoc(), type, input);
  }
  SmallVector<Value> alike = getAlike(op);
  if (alike.empty())
    return nullptr;
  Operation *made = builder.clone(*op);
  for (auto [number, value] : llvm::enumerate(alike))
    made->setOperand(number, getLast(op->getLoc(), value));
  made->getResult(0).setType(type);
  auto moveList = [&](StringRef name) {
    auto list = made->getAttrOfType<DenseI64ArrayAttr>(name);
    made->setAttr(name,
                  builder.getDenseI64ArrayAttr(reorder(list.asArrayRef())));
  };
  llvm::TypeSwitch<Operation *>(made)
      .Case<nn::BatchNormOp, nn::ConcatOp>(
          [&](auto other) { other.setDim(move(other.getDim(), rank)); })
      .Case([&](nn::PadOp) { moveList("low"), moveList("high"); })
      .Case([&](nn::SliceOp) {
        moveList("starts"), moveList("sizes"), moveList("steps");
      });
  return made->getResult(0);
}

/// Lets an op that is not made anew read what it reads where it was.
void Reorderer::read(Operation *op) {
  builder.setInsertionPoint(op);
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (!reduce || !isChosen(reduce.getInput())) {
    for (OpOperand &operand : op->getOpOperands())
      if (isChosen(operand.get()))
        operand.set(getFirst(operand.get()));
    return;
  }
  // A sum over channels is one over the last dimension.
  Value input = reduce.getInput();
  int64_t rank = rankOf(input);
  SmallVector<int64_t> dims = llvm::map_to_vector(
      reduce.getDims(), [&](int64_t dim) { return move(dim, rank); });
  llvm::sort(dims);
  SmallVector<int64_t> left, order;
  for (int64_t dim : getOrder(rank))
    if (!llvm::is_contained(reduce.getDims(), dim))
      left.push_back(dim);
  for (int64_t dim : llvm::seq(rank))
    if (auto *found = llvm::find(left, dim); found != left.end())
      order.push_back(found - left.begin());
  auto made = cast<nn::ReduceOp>(builder.clone(*op));
  made.getInputMutable().assign(getLast(op->getLoc(), input));
  made.setDims(dims);
  SmallVector<int64_t> shape = llvm::map_to_vector(
      left, [&](int64_t dim) { return typeOf(input).getDimSize(dim); });
  made.getResult().setType(
      RankedTensorType::get(shape, reduce.getType().getElementType()));
  Value result = made.getResult();
  if (!llvm::is_sorted(order))
    result = build(op->getLoc(), result, order);
  reduce.replaceAllUsesWith(result);
}

void Reorderer::run() {
  findClasses();
  choose();
  if (chosen.empty())
    return;
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  for (Operation *op : ops) {
    if (op->getNumResults() == 1 && isChosen(op->getResult(0)))
      if (Value made = makeLast(op)) {
        remade[op->getResult(0)] = made;
        continue;
      }
    read(op);
  }
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty() && !op->hasTrait<OpTrait::IsTerminator>())
      op->erase();
}

namespace {
struct PutChannelsLastPass
    : impl::PutChannelsLastPassBase<PutChannelsLastPass> {
  using Base::Base;
  void runOnOperation() override { Reorderer(getOperation()).run(); }
};
} // namespace
} // namespace accel::transforms
