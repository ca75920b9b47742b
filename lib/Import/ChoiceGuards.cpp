// Masks what would be 0 times infinity: values and gradients of places at which
// nothing is chosen.

#include "Choices.h"

#include "NodeImporter.h"
#include "lib/Transforms/AlikeTerms.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// Whether an op of finite numbers is finite, and so are its slopes.
static bool isTame(Operation *op) {
  return isa<nn::AddOp, nn::SubOp, nn::MulOp, nn::NegOp, nn::AbsOp, nn::ReluOp,
             nn::TanhOp, nn::SigmoidOp, nn::ErfOp, nn::GeluOp, nn::SinOp,
             nn::CosOp, nn::MinOp, nn::MaxOp, nn::SelectOp, nn::CastOp,
             nn::CompareOp, nn::MatmulOp, nn::CrossEntropyOp, nn::SoftmaxOp,
             nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp,
             nn::ConcatOp, nn::PadOp, nn::GatherOp, nn::GatherNdOp,
             nn::DropoutOp, nn::StopGradientOp>(op) ||
         (isa<nn::ReduceOp>(op) &&
          cast<nn::ReduceOp>(op).getKind() == nn::ReductionKind::sum);
}

/// Whether its slopes do not depend on its operands.
static bool isLinear(Operation *op) {
  return isa<nn::AddOp, nn::SubOp, nn::NegOp, nn::SelectOp, nn::CastOp,
             nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp,
             nn::ConcatOp, nn::PadOp, nn::GatherOp, nn::GatherNdOp,
             nn::DropoutOp, nn::StopGradientOp, nn::ReduceOp>(op);
}

/// Whether an operand's place is taken by 1 where nothing is chosen: of some
/// numbers its op has no slope along the other operand, which need not be of
/// the choice.
static bool hasPoles(OpOperand &operand) {
  return isa<nn::PowOp>(operand.getOwner()) ||
         (isa<nn::DivOp>(operand.getOwner()) &&
          operand.getOperandNumber() == 1);
}

/// What is finite wherever the run's inputs are, chosen or not; of what comes
/// into a choice, once zeros take the place of what is not.
llvm::DenseSet<Value> Choices::findFinite() const {
  llvm::DenseSet<Value> finite;
  Value first = all.front().mask;
  Block *block = first.getParentBlock();
  for (BlockArgument argument : block->getArguments())
    if (!Importer::isFloat(argument) || transforms::isStateArgument(argument))
      finite.insert(argument);
  for (Operation &op : *block) {
    bool isFinite = isTame(&op) && llvm::all_of(op.getOperands(), [&](Value v) {
                      return finite.contains(v);
                    });
    if (DenseElementsAttr known = op.getNumResults() == 1
                                      ? Importer::constantOf(op.getResult(0))
                                      : nullptr)
      isFinite = !isa<FloatType>(known.getElementType()) ||
                 llvm::all_of(known.isSplat()
                                  ? llvm::make_range(
                                        known.value_begin<APFloat>(),
                                        std::next(known.value_begin<APFloat>()))
                                  : known.getValues<APFloat>(),
                              [](const APFloat &v) { return v.isFinite(); });
    bool isFilled = isTame(&op) && llvm::any_of(op.getResults(), [&](Value v) {
                      return entrances.contains(v);
                    });
    if (isFilled && !isFinite)
      isFinite = llvm::all_of(op.getOperands(), [&](Value v) {
        return finite.contains(v) || found.contains(v);
      });
    for (Value result : op.getResults())
      if (isFinite || !Importer::isFloat(result))
        finite.insert(result);
  }
  return finite;
}

bool Choices::reachesPole(Value value,
                          const llvm::DenseSet<Value> &finite) const {
  SmallVector<Value> work{value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    for (Operation *user : next.getUsers()) {
      auto isEntrance = [&](Value v) { return entrances.contains(v); };
      if (!finite.contains(next) &&
          llvm::any_of(user->getResults(), isEntrance))
        continue; // zeros take its place there
      if (!isTame(user) ||
          (!isLinear(user) && llvm::any_of(user->getOperands(), [&](Value v) {
            return !finite.contains(v);
          })))
        return true;
      for (Value result : user->getResults())
        if (found.contains(result) && seen.insert(result).second)
          work.push_back(result);
    }
  }
  return false;
}

Value Choices::buildMask(OpBuilder &builder, Value value) const {
  Chosen chosen = found.lookup(value);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> line(type.getRank(), 1);
  line[chosen.dim] = type.getDimSize(chosen.dim);
  auto bits = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getI1Type());
  };
  Value mask = nn::ReshapeOp::create(builder, value.getLoc(), bits(line),
                                     all[chosen.number].mask);
  return nn::BroadcastOp::create(builder, value.getLoc(), bits(type.getShape()),
                                 mask);
}

bool Choices::guardGradients(OpBuilder *builder) {
  if (isEmpty())
    return false;
  llvm::DenseSet<Value> finite = findFinite();
  bool isNeeded = false;
  for (Value value : entrances) {
    Operation *op = value.getDefiningOp();
    for (OpOperand &operand : op->getOpOperands()) {
      Value of = operand.get();
      bool isOne = hasPoles(operand) && !Importer::constantOf(of);
      if (!isOne && (!found.contains(of) || !Importer::isFloat(of) ||
                     finite.contains(of)))
        continue;
      isNeeded = true;
      if (!builder)
        continue;
      OpBuilder::InsertionGuard guard(*builder);
      builder->setInsertionPoint(op);
      auto type = cast<RankedTensorType>(of.getType());
      Value other = nn::ConstantOp::create(
          *builder, of.getLoc(),
          DenseElementsAttr::get(
              type, builder->getFloatAttr(type.getElementType(), isOne)));
      operand.set(nn::SelectOp::create(*builder, of.getLoc(), type,
                                       buildMask(*builder, isOne ? value : of),
                                       of, other));
    }
    if (!reachesPole(value, finite))
      continue;
    isNeeded = true;
    if (!builder)
      continue;
    OpBuilder::InsertionGuard guard(*builder);
    builder->setInsertionPointAfter(op);
    Location loc = value.getLoc();
    Value mask = buildMask(*builder, value);
    Value still =
        nn::StopGradientOp::create(*builder, loc, value.getType(), value);
    Value guarded = nn::SelectOp::create(*builder, loc, value.getType(), mask,
                                         value, still);
    SmallPtrSet<Operation *, 2> own{still.getDefiningOp(),
                                    guarded.getDefiningOp()};
    value.replaceAllUsesExcept(guarded, own);
    found.insert({guarded, found.lookup(value)});
    if (finite.contains(value))
      finite.insert(guarded);
  }
  return isNeeded;
}
