// Types on the wire: a rounding between ranks is one that the logical program
// declares, of sums that nothing but gradients is made of.

#include "Follow.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

bool equivalence::isMarked(Value value) {
  for (Value end = skipPlacement(value); value != end;
       value = value.getDefiningOp()->getOperand(0))
    if (value.getDefiningOp<nn::GradientOp>())
      return true;
  return false;
}

bool Logical::isForGradients(Value root) {
  auto [found, isNew] = forGradients.try_emplace(root, false);
  if (!isNew)
    return found->second;
  bool all = !givenAsIs.contains(root);
  for (Operation *reader : getReaders(root))
    for (OpOperand &operand : reader->getOpOperands()) {
      if (rootOf(operand.get()) != root || isMarked(operand.get()))
        continue;
      // What only adds, moves, cuts or converts it.
      bool passesOn =
          isa<nn::AddOp, nn::CastOp, nn::ReshapeOp, nn::TransposeOp,
              nn::SliceOp, nn::ConcatOp, nn::PadOp>(reader) ||
          (isa<nn::ScatterAddOp>(reader) && operand.getOperandNumber() == 0);
      all &= holds(Premise::WireIsPassedOn, passesOn) &&
             isForGradients(rootOf(reader->getResult(0)));
    }
  return forGradients[root] = all;
}

/// Concludes nothing: `why` says what keeps a rounding from being one that the
/// program declares.
void Follower::followWire(Operation *collective, Known &result) {
  auto op = cast<dist::CollectiveOpInterface>(collective);
  std::optional<Type> wire = op.getWireType();
  if (!wire)
    return;
  if (!holds(Premise::WireIsDeclared, *wire == logical.getWire())) {
    llvm::raw_string_ostream found(why);
    found << "sends '" << *wire << "', expected ";
    if (logical.getWire())
      found << "'" << logical.getWire() << "', which it declares for gradients";
    else
      found << "its own type: no rounding of gradients is declared";
    return;
  }
  auto kind = op->getAttrOfType<dist::ReductionAttr>("kind");
  if (!holds(Premise::WireOfSums,
             kind && kind.getValue() == dist::Reduction::sum)) {
    why = "rounds what is no sum";
    return;
  }
  for (StringAttr axis : op.getAxes().getNames())
    if (!holds(Premise::WireOfNoTensorRanks,
               axis.getValue() != dist::MeshOp::kTensorAxis)) {
      why = ("rounds a sum over axis '" + axis.getValue() +
             "', whose ranks share the work on a sample")
                .str();
      return;
    }
  auto isForGradients = [&](const Piece &piece) {
    return logical.isForGradients(piece.logical);
  };
  bool all = llvm::all_of(result.pieces, isForGradients);
  for (const std::vector<Piece> &term : result.terms)
    all &= llvm::all_of(term, isForGradients);
  for (const View &view : result.views)
    all &= logical.isForGradients(view.root);
  if (!holds(Premise::WireOfGradients, all))
    why = "rounds a sum that not only gradients are made of";
}
