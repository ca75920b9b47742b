// The changes of what expert parallelism puts in: which rows go where, by whose
// experts they are multiplied, and which come back.

#include "Mutator.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

std::string Mutator::changeExperts() {
  using Change = bool (Mutator::*)();
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"rows by other numbers", &Mutator::changeRowNumbers},
      {"other rows sent", &Mutator::changeSentRows},
      {"rows that are not sent", &Mutator::dropFetch},
      {"scaled rows", &Mutator::scaleRows},
      {"other experts' numbers", &Mutator::changeExpertNumbers},
      {"dealt otherwise", &Mutator::changeDealing},
      {"another rank's experts", &Mutator::changeRankNumber},
      {"transposed experts", &Mutator::transposeExperts},
      {"summed matrices", &Mutator::sumMatrices},
      {"other choice", &Mutator::changeChoice},
      {"wrong axis or group", &Mutator::changeAxes},
      {"missing reduction", &Mutator::dropReduction},
      {"doubled reduction", &Mutator::doubleReduction},
      {"exchanged operand", &Mutator::exchangeOperand}};
  auto [name, change] = kChanges[random() % std::size(kChanges)];
  return (this->*change)() ? name : "";
}

/// Something else of its type that stands before its reader.
bool Mutator::exchangeFor(OpOperand &operand) {
  SmallVector<Value> others;
  for (Operation &before : *operand.getOwner()->getBlock()) {
    if (&before == operand.getOwner())
      break;
    for (Value result : before.getResults())
      if (result != operand.get() &&
          result.getType() == operand.get().getType())
        others.push_back(result);
  }
  if (others.empty())
    return false;
  operand.set(pick(ArrayRef(others)));
  return true;
}

bool Mutator::changeRowNumbers() {
  Operation *op = pickOp([](Operation *each) {
    return isa<dist::FetchRowsOp, nn::GroupedMatmulOp, nn::GroupedMatmulGradOp>(
        each);
  });
  return op && exchangeFor(op->getOpOperand(op->getNumOperands() - 1));
}

bool Mutator::changeSentRows() {
  Operation *op = pickOp([](Operation *each) {
    return isa<dist::FetchRowsOp, nn::GroupedMatmulGradOp>(each);
  });
  return op && exchangeFor(op->getOpOperand(
                   isa<nn::GroupedMatmulGradOp>(op) ? random() % 2 : 0));
}

/// A rank's own rows in the place of those that it asked for: as many of them.
bool Mutator::dropFetch() {
  auto ops = all<dist::FetchRowsOp>();
  if (ops.empty())
    return false;
  dist::FetchRowsOp op = pick(ArrayRef(ops));
  auto from = cast<RankedTensorType>(op.getInput().getType()),
       to = cast<RankedTensorType>(op.getType());
  OpBuilder builder(op);
  Value own = op.getInput();
  SmallVector<int64_t> zeros(to.getRank(), 0), ones(to.getRank(), 1);
  while (cast<RankedTensorType>(own.getType()).getDimSize(0) <
         to.getDimSize(0)) {
    auto type = cast<RankedTensorType>(own.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] *= 2;
    own = nn::ConcatOp::create(builder, op.getLoc(), type.clone(shape),
                               ValueRange{own, own}, 0);
  }
  if (from.getDimSize(0) != to.getDimSize(0))
    own = nn::SliceOp::create(builder, op.getLoc(), to, own, zeros,
                              to.getShape(), ones);
  op.getResult().replaceAllUsesWith(own);
  op.erase();
  return true;
}

bool Mutator::scaleRows() {
  auto ops = all<dist::FetchRowsOp>();
  if (ops.empty())
    return false;
  dist::FetchRowsOp op = pick(ArrayRef(ops));
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (!isa<FloatType>(type.getElementType()))
    return false;
  OpBuilder builder(op);
  Value factor = nn::ConstantOp::create(
      builder, op.getLoc(),
      DenseElementsAttr::get(type,
                             builder.getFloatAttr(type.getElementType(),
                                                  random() % 2 ? 2.0 : -1.0)));
  op->setOperand(
      0, nn::MulOp::create(builder, op.getLoc(), op.getInput(), factor));
  return true;
}

/// The last expert's number for the first one's, and so on, for one reader.
bool Mutator::changeExpertNumbers() {
  SmallVector<OpOperand *> uses;
  for (auto op : all<nn::DealRowsOp>())
    uses.push_back(&op->getOpOperand(0));
  module.walk([&](dist::AllGatherOp op) {
    if (op.getType().getElementType().isInteger(64))
      uses.push_back(&op->getOpOperand(0));
  });
  for (auto op : all<nn::GatherNdOp>())
    uses.push_back(&op->getOpOperand(1));
  if (uses.empty())
    return false;
  OpOperand *use = pick(ArrayRef(uses));
  OpBuilder builder(use->getOwner());
  auto type = cast<RankedTensorType>(use->get().getType());
  Value last = nn::ConstantOp::create(
      builder, use->getOwner()->getLoc(),
      DenseElementsAttr::get(type, builder.getI64IntegerAttr(3)));
  use->set(
      nn::SubOp::create(builder, use->getOwner()->getLoc(), last, use->get()));
  return true;
}

/// As for more experts, or its first result for its second.
bool Mutator::changeDealing() {
  auto ops = all<nn::DealRowsOp>();
  if (ops.empty())
    return false;
  nn::DealRowsOp op = pick(ArrayRef(ops));
  if (random() % 2) {
    op.setNumGroups(op.getNumGroups() * 2);
    return true;
  }
  OpBuilder builder(op.getContext());
  builder.setInsertionPointAfter(op);
  // Each row's place and its neighbour's are exchanged.
  Value places = op->getResult(random() % 3);
  auto type = cast<RankedTensorType>(places.getType());
  SmallVector<int64_t> first{0}, second{1}, ones{1};
  int64_t size = type.getDimSize(0);
  auto part = [&](ArrayRef<int64_t> starts, int64_t count) -> Value {
    return nn::SliceOp::create(builder, op.getLoc(),
                               type.clone(SmallVector<int64_t>{count}), places,
                               starts, SmallVector<int64_t>{count}, ones);
  };
  Value rest = part(second, size - 1), head = part(first, 1);
  Value turned = nn::ConcatOp::create(builder, op.getLoc(), type,
                                      ValueRange{rest, head}, 0);
  places.replaceUsesWithIf(turned, [&](OpOperand &use) {
    return use.getOwner() != rest.getDefiningOp() &&
           use.getOwner() != head.getDefiningOp();
  });
  return true;
}

bool Mutator::transposeExperts() {
  auto ops = all<nn::GroupedMatmulOp>();
  if (ops.empty())
    return false;
  nn::GroupedMatmulOp op = pick(ArrayRef(ops));
  op.setTransposeRhs(!op.getTransposeRhs());
  return true;
}

/// Gradients of matrices, which have all rows of their experts, as if they were
/// terms.
bool Mutator::sumMatrices() {
  auto ops = all<nn::GroupedMatmulGradOp>();
  if (ops.empty())
    return false;
  nn::GroupedMatmulGradOp op = pick(ArrayRef(ops));
  auto meshes = all<dist::CollectiveOpInterface>();
  if (meshes.empty())
    return false;
  OpBuilder builder(op.getContext());
  builder.setInsertionPointAfter(op);
  auto sum = dist::AllReduceOp::create(
      builder, op.getLoc(), op.getType(),
      dist::ReductionAttr::get(module.getContext(), dist::Reduction::sum),
      op.getResult(), meshes.front().getMeshAttr(), pick(ArrayRef(getGroups())),
      TypeAttr());
  op.getResult().replaceAllUsesExcept(sum, sum);
  return true;
}

/// The least instead of the greatest, or the second of them first.
bool Mutator::changeChoice() {
  auto ops = all<nn::TopKOp>();
  if (ops.empty())
    return false;
  nn::TopKOp op = pick(ArrayRef(ops));
  op.setSmallest(!op.getSmallest());
  return true;
}
