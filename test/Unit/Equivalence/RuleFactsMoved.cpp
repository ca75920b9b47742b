// What facts of rows that went to other ranks mean: which row is where, by the
// dealing's definition; and what a rounding on the way is taken for.

#include "RuleProgram.h"

#include "dialects/Accel/Accel.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

std::vector<RuleProgram::Point> RuleProgram::getRanks(Point point,
                                                      ArrayRef<StringAttr> of) {
  std::vector<Point> ranks = getGroup(point, of);
  auto getNumber = [&](Point member) {
    int64_t number = 0;
    for (StringAttr axis : of)
      number = number * getSize(axis) + member.getCoordinate(axis);
    return number;
  };
  llvm::sort(ranks, [&](Point lhs, Point rhs) {
    return getNumber(lhs) < getNumber(rhs);
  });
  return ranks;
}

/// The groups of a rank's own rows, as the dealing is known to have them, deal
/// the rows as nn.deal_rows says.
bool RuleProgram::isTrue(DealIndex index, const Tensors &tensors) {
  auto deal = cast<nn::DealRowsOp>(index.deal);
  const Dealing &dealing = follower->getDealing(deal);
  int64_t own = shapeOf(deal.getPlaces())[0], ranks = deal.getRanks(),
          room = deal.getRoom(), perRank = deal.getNumGroups() / ranks;
  for (const Piece &piece : dealing.groups)
    for (Point point : getPoints()) {
      std::vector<Point> members = getRanks(point, dealing.axes);
      std::vector<int64_t> dealt(ranks, 0), rows(room, -1), groups(room, -1),
          places(own, -1);
      for (auto [member, of] : llvm::enumerate(members)) {
        Numbers numbers = cut(getWhole(piece.logical), piece, {own}, of);
        for (auto [row, number] : llvm::enumerate(numbers)) {
          if (!number || *number < 0)
            continue;
          int64_t owner = int64_t(*number) / perRank, place = dealt[owner]++;
          if (this->number(members[owner]) == this->number(point)) {
            rows[place] = member * own + row;
            groups[place] = int64_t(*number) % perRank;
          }
          if (this->number(of) == this->number(point))
            places[row] = owner * room + place;
        }
      }
      const std::vector<int64_t> *expected[] = {&rows, &groups, &places};
      if (tensors[number(point)].ints() !=
          ArrayRef<int64_t>(*expected[index.number]))
        return false;
    }
  return true;
}

/// Rows put back where the dealing's numbers say they are of are the piece.
bool RuleProgram::isTrue(const Dealt &dealt, const Tensors &tensors) {
  auto deal = cast<nn::DealRowsOp>(dealt.deal);
  const Tensors &rows = locals[deal.getRows()];
  ArrayRef<StringAttr> axes = follower->getDealing(deal).axes;
  int64_t own = shapeOf(deal.getPlaces())[0];
  auto type = cast<RankedTensorType>(dealt.piece.logical.getType());
  SmallVector<int64_t> shape(tensors.front().getShape());
  if (shape.empty() || shape[0] != int64_t(deal.getRoom()) ||
      shape.size() != dealt.piece.dims.size())
    return false;
  shape[0] = own;
  int64_t length = ShapedType::getNumElements(shape) / own;
  if (!isWellFormed(dealt.piece, shape))
    return false;
  // Of rows in no group it says that they are zeros, or nothing.
  Tensors back = materialize(dealt.piece, type.clone(shape));
  if (dealt.noneIsZero)
    for (Tensor &tensor : back)
      llvm::fill(tensor.mutableFloats(), 0);
  for (Point point : getPoints()) {
    std::vector<Point> members = getRanks(point, axes);
    for (auto [slot, row] : llvm::enumerate(rows[number(point)].ints()))
      for (int64_t at = 0; row >= 0 && at < length; ++at)
        back[number(members[row / own])]
            .mutableFloats()[row % own * length + at] =
            tensors[number(point)].floats()[slot * length + at];
  }
  return isTrue(dealt.piece, back);
}

/// Whether a value that is a little off shows in no output, and in gradients
/// as what is added up, moved and cut: as so many times the difference.
bool RuleProgram::isForGradients(Value root) {
  constexpr double kOff = 0.001953125;
  Tensor off = getWhole(root);
  if (!off || !off.isFloat() || off.getNumElements() == 0)
    return false;
  off.mutableFloats()[pick(off.getNumElements())] += kOff;
  llvm::DenseMap<Value, Tensor> values;
  auto get = [&](Value value) {
    auto known = values.find(value);
    return known == values.end() ? getWhole(value) : known->second;
  };
  values[root] = off;
  for (Operation &op : wholeFunction.front().without_terminator()) {
    if (llvm::is_contained(op.getResults(), root) ||
        llvm::none_of(op.getOperands(),
                      [&](Value operand) { return values.contains(operand); }))
      continue;
    if (isa<nn::GradientOp>(op)) {
      Tensor now = get(op.getOperand(0)), before = getWhole(op.getOperand(0));
      for (auto [a, b] : llvm::zip_equal(now.floats(), before.floats())) {
        double times = (a - b) / kOff;
        if (std::abs(times - std::round(times)) > 1e-6)
          return false;
      }
      continue;
    }
    SmallVector<Tensor> operands, results;
    for (Value operand : op.getOperands())
      operands.push_back(get(operand));
    if (failed(evaluateOp(&op, operands, EvaluationMode::Float64, results)))
      return false;
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), results))
      values[result] = tensor;
  }
  return llvm::all_of(outputs, [&](Value output) {
    Tensor now = get(output), before = getWhole(output);
    return llvm::all_of_zip(now.floats(), before.floats(), isClose);
  });
}

bool RuleProgram::isWireDeclared(dist::CollectiveOpInterface op,
                                 const Known &known) {
  auto declared = (*module)->getAttrOfType<TypeAttr>(kGradientWireAttr);
  auto kind = op->getAttrOfType<dist::ReductionAttr>("kind");
  return declared && declared.getValue() == *op.getWireType() && kind &&
         kind.getValue() == dist::Reduction::sum &&
         llvm::none_of(op.getAxes().getNames(),
                       [](StringAttr axis) {
                         return axis == dist::MeshOp::kTensorAxis;
                       }) &&
         llvm::all_of(known.pieces, [&](const Piece &piece) {
           return isForGradients(piece.logical);
         });
}
