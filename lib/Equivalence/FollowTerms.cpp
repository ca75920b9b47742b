// Sums whose terms are known, and not they: in another order than that of the
// logical program, and what an op makes of each term.

#include "Follow.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// How many terms that views have moved are looked at.
static constexpr size_t kMoved = 64;

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
static bool isLinearIn(Operation *op, unsigned operand, Premise premise) {
  if (isa<nn::ReshapeOp>(op))
    return true;
  std::optional<OpMap> map = getOpMap(op);
  return holds(
      premise,
      map && llvm::is_contained(map->linear, std::vector<unsigned>{operand}));
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
        if (!agree(reader, op) ||
            !isLinearIn(reader, number, Premise::LinearInSum) ||
            !logical.isSumOf(reader->getOperand(number), piece.logical))
          continue;
        logical.distribute(reader, number, piece.logical);
        found = true;
      }
  }
  return found;
}

/// Where the program has the op of a sum, it may be done to each term. What
/// puts zeros behind elements, or takes them off, may be though it is followed;
/// so may anything that is done to what is two values of the program.
void Follower::followDistributed(Operation *op, Known &result) {
  bool isOfProgram = result.pieces.size() > piecesBeforeMap;
  if ((!isFollowed(op) || isa<nn::PadOp>(op) ||
       (isa<nn::SliceOp>(op) && !isOfProgram) || readsSeveral(op)) &&
      distribute(op))
    applyMaps(op);
}

/// What a view of a sum is cut out of, or padded as, may be cut or padded term
/// by term, each in its own shape: writes the terms of the program's views, of
/// what it cuts out of these, and of the views of that.
bool Follower::distributeViews(Operation *op) {
  if (!isa<nn::SliceOp, nn::PadOp>(op))
    return false;
  struct Moved {
    Value term;
    bool isCut; ///< whether the op has been done to it
  };
  bool found = false;
  std::vector<Moved> terms;
  auto add = [&](Value term, bool isCut) {
    ArrayRef<Value> family = logical.getViews(logical.getView(term).root);
    for (Value view : family.empty() ? ArrayRef(term) : family)
      if (llvm::none_of(terms, [&](Moved &each) { return each.term == view; }))
        terms.push_back({view, isCut});
  };
  for (const Piece &piece : at(op->getOperand(0)).pieces)
    add(piece.logical, false);
  auto move = [&](Moved from, OperationName name, bool isCut) {
    for (Operation *reader : logical.findReadersOfSums(name, from.term)) {
      if (!isLinearIn(reader, 0, Premise::CutIsLinear) ||
          !logical.isSumOf(reader->getOperand(0), from.term))
        continue;
      logical.distribute(reader, 0, from.term);
      for (Operation *moved : logical.getReaders(from.term))
        if (moved->getResultTypes() == reader->getResultTypes() &&
            agree(reader, moved)) {
          add(logical.rootOf(moved->getResult(0)), isCut);
          found |= isCut;
        }
    }
  };
  for (size_t next = 0; next < terms.size() && next < kMoved; ++next) {
    Moved from = terms[next];
    for (StringRef view : {nn::ReshapeOp::getOperationName(),
                           nn::TransposeOp::getOperationName()})
      move(from, OperationName(view, op->getContext()), from.isCut);
    if (!from.isCut)
      move(from, op->getName(), true);
  }
  return found;
}

/// What is cut out of a view of a sum, or padded, is so term by term.
void Follower::followPartsOfTerms(Operation *op, Known &result) {
  if (distributeViews(op))
    followParts(op, result);
}

/// What is done to a sum that the logical program has nowhere is done to each
/// of its terms.
void Follower::followEachTerm(Operation *op, Known &result) {
  for (OpOperand &operand : op->getOpOperands()) {
    Known &what = at(operand.get());
    // A product of a sum with itself is no sum of the terms' products.
    if (what.terms.empty() || what.sum ||
        !holds(Premise::EachTermReadOnce,
               llvm::count(op->getOperands(), operand.get()) == 1) ||
        !isLinearIn(op, operand.getOperandNumber(), Premise::LinearInTerms))
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
