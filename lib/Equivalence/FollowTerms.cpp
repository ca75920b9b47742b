// Sums whose terms are known, and not they: in another order than that of the
// logical program, and what an op makes of each term.

#include "Follow.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// A sum of terms that the logical program adds in another order, or has added
/// before it does something else.
void Follower::followTerms(Operation *op, Known &result) {
  Terms terms;
  if (!collectTerms(op, terms))
    return;
  terms = join(std::move(terms));
  if (terms.size() == 1)
    result.pieces = terms.front();
  else
    result.terms = std::move(terms);
}

/// Whether an op is linear in one operand alone, whatever the others are.
static bool isLinearIn(Operation *op, unsigned operand) {
  if (isa<nn::ReshapeOp>(op))
    return true;
  std::optional<OpMap> map = getOpMap(op);
  return map && llvm::is_contained(map->linear, std::vector<unsigned>{operand});
}

/// Where the logical program does this to a sum, it may be done to each term.
bool Follower::distribute(Operation *op) {
  if (op->getNumResults() != 1)
    return false;
  bool found = false;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    std::vector<Piece> pieces = at(operand.get()).pieces;
    if (pieces.empty())
      pieces = getEqualTerms(operand.get());
    for (const Piece &piece : pieces)
      for (Operation *reader :
           logical.findReadersOfSums(op->getName(), piece.logical)) {
        if (!agree(reader, op) || !isLinearIn(reader, number) ||
            !logical.isSumOf(reader->getOperand(number), piece.logical))
          continue;
        logical.distribute(reader, number, piece.logical);
        found = true;
      }
  }
  return found;
}

/// What is done to a sum that the logical program has nowhere is done to each
/// of its terms.
void Follower::followEachTerm(Operation *op, Known &result) {
  for (OpOperand &operand : op->getOpOperands()) {
    Known &what = at(operand.get());
    // A product of a sum with itself is no sum of the terms' products.
    if (what.terms.empty() || what.sum ||
        llvm::count(op->getOperands(), operand.get()) != 1 ||
        !isLinearIn(op, operand.getOperandNumber()))
      continue;
    Known &made = at(op->getResult(0));
    const Known whole = what;
    Terms terms;
    for (const std::vector<Piece> &term : whole.terms) {
      what = Known();
      what.pieces = term;
      followValue(op);
      terms.push_back(made.pieces);
    }
    what = whole;
    made = Known();
    if (llvm::any_of(terms, [](const auto &term) { return term.empty(); }))
      continue;
    terms = join(std::move(terms));
    if (terms.size() == 1)
      result.pieces = terms.front();
    else
      result.terms = std::move(terms);
    return;
  }
}
