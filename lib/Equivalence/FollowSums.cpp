// Sums: over micro-batches, of terms that the logical program adds in another
// order, of what is scattered.

#include "Follow.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Adds a piece, also as what else it is known to be.
void Follower::insertSum(std::vector<Piece> &pieces, const Piece &piece) {
  insert(pieces, piece);
  if (Value sum = logical.getSumOf(piece.logical)) {
    Piece same = piece;
    same.logical = sum;
    insert(pieces, same);
  }
}

/// The logical program's scatters of what a local one, which may leave out what
/// other ranks have, may add.
Logical::Ops Follower::findScatters(nn::ScatterAddOp local) {
  Logical::Ops found;
  auto add = [&](const Logical::Ops &readers) {
    for (Operation *reader : readers)
      if (isa<nn::ScatterAddOp>(reader))
        found.insert(reader);
  };
  auto addOf = [&](const Known &what) {
    for (const Piece &piece : what.pieces)
      add(logical.getReaders(piece.logical));
    if (what.splat)
      add(logical.getReaders(what.splat));
  };
  addOf(at(local.getUpdates()));
  if (auto select =
          dyn_cast_if_present<nn::SelectOp>(getFormulaOp(local.getUpdates())))
    addOf(at(select.getOnTrue()));
  return found;
}

/// What a local scatter onto anything adds to it, read as `whole`'s, onto
/// zeros.
std::vector<Piece> Follower::applyScatter(Operation *whole, Operation *local) {
  auto scatter = cast<nn::ScatterAddOp>(local);
  auto onto = cast<nn::ScatterAddOp>(whole);
  std::vector<Piece> terms;
  if (!holds(Premise::ScattersAlongSameDim,
             scatter.getDim() == onto.getDim() &&
                 scatter.getBatchDims() == onto.getBatchDims()) ||
      !holds(Premise::ScattersOntoZeros,
             matchPattern(logical.rootOf(onto.getInit()), m_AnyZeroFloat()) ||
                 matchPattern(logical.rootOf(onto.getInit()), m_Zero())))
    return terms;
  Operands operands = {
      {makeFree(logical.rootOf(onto.getInit()))},
      hold(scatter.getIndices(), logical.rootOf(onto.getIndices())),
      hold(scatter.getUpdates(), logical.rootOf(onto.getUpdates()))};
  for (auto &results : apply(whole, operands, {true, false, false}, local))
    insert(terms, results.front());
  for (const Piece &piece :
       applyOwnScatter(whole, local, operands[0], /*startsAsZeros=*/true))
    insert(terms, piece);
  return terms;
}

std::optional<std::vector<Dim>> equivalence::joinDims(ArrayRef<Dim> lhs,
                                                      ArrayRef<Dim> rhs,
                                                      Value whole,
                                                      PieceMaker &maker) {
  if (lhs.size() != rhs.size())
    return std::nullopt;
  std::vector<Dim> joined;
  for (auto [a, b, size] : llvm::zip_equal(lhs, rhs, shapeOf(whole))) {
    // Axes may split the same in two orders.
    if (!a.free && !b.free &&
        !holds(Premise::TermsSplitAlike,
               a.isSplitLike(b) || maker.inMeshOrder(a, size).isSplitLike(
                                       maker.inMeshOrder(b, size))))
      return std::nullopt;
    joined.push_back(a.free ? b : a);
    joined.back().zeros =
        (a.zeros && b.zeros) ||
        ((a.zeros || b.zeros) && isLeftOut(Premise::TermsPaddedWithZeros));
    joined.back().extreme.reset();
  }
  llvm::SmallDenseSet<StringAttr> used;
  for (const Dim &dim : joined)
    for (StringAttr axis : dim.axes)
      if (!holds(Premise::TermsSplitOneDim, used.insert(axis).second))
        return std::nullopt;
  return joined;
}

/// Sums that the logical program makes of two values.
std::vector<Piece> Follower::addTerms(ArrayRef<Piece> lhs,
                                      ArrayRef<Piece> rhs) {
  std::vector<Piece> sums;
  for (const Piece &a : lhs)
    for (Operation *reader : logical.getReaders(a.logical)) {
      auto add = dyn_cast<nn::AddOp>(reader);
      if (!add)
        continue;
      Value left = logical.rootOf(add.getLhs()),
            right = logical.rootOf(add.getRhs());
      for (const Piece &b : rhs) {
        bool adds = (left == a.logical && right == b.logical) ||
                    (left == b.logical && right == a.logical);
        if (!adds ||
            !holds(Premise::TermsOverSameAxes, a.partial == b.partial) ||
            !holds(Premise::TermsAreAdded, a.isSum() && b.isSum()))
          continue;
        std::optional<std::vector<Dim>> dims =
            joinDims(a.dims, b.dims, a.logical, maker);
        if (!dims)
          continue;
        Piece sum = a;
        sum.logical = add;
        sum.dims = *dims;
        insertSum(sums, sum);
      }
    }
  return sums;
}

/// x + scatter_add(0, i, u) is scatter_add(x, i, u) in one rank's program.
void Follower::followMergedScatter(Operation *op, Known &result) {
  auto scatter = dyn_cast<nn::ScatterAddOp>(op);
  if (!scatter)
    return;
  for (Operation *whole : findScatters(scatter)) {
    std::vector<Piece> terms = applyScatter(whole, op),
                       onto = at(scatter.getInit()).pieces;
    // What is all equal is any of the values that the logical program adds.
    for (Operation *sum : logical.getReaders(whole->getResult(0)))
      for (Value term : sum->getOperands())
        for (const Piece &piece : hold(scatter.getInit(), logical.rootOf(term)))
          insert(onto, piece);
    for (const Piece &sum : addTerms(onto, terms))
      insert(result.pieces, sum);
  }
}

/// Equal elements as each of the values that the logical program adds or
/// subtracts.
std::vector<Piece> Follower::getEqualTerms(Value value) {
  std::vector<Piece> pieces;
  if (Attribute element = at(value).splat)
    for (Operation *reader : logical.getReaders(element))
      if (isa<nn::AddOp, nn::SubOp>(reader))
        for (Value operand : reader->getOperands())
          if (Value root = logical.rootOf(operand);
              logical.getSplat(root) == element)
            for (const Piece &piece : hold(value, root))
              insert(pieces, piece);
  return pieces;
}

/// What an op adds, each as what it may be; false if that is unknown.
bool Follower::collectTerms(Operation *op, Terms &terms) {
  auto collect = [&](Value value) {
    const Known &what = at(value);
    terms.insert(terms.end(), what.terms.begin(), what.terms.end());
    std::vector<Piece> term =
        what.pieces.empty() ? getEqualTerms(value) : what.pieces;
    bool isKnown = what.sum || !what.terms.empty() || !term.empty();
    if (!term.empty())
      terms.push_back(std::move(term));
    return isKnown;
  };
  if (isa<nn::AddOp>(op))
    return collect(op->getOperand(0)) && collect(op->getOperand(1));
  auto scatter = dyn_cast<nn::ScatterAddOp>(op);
  if (!scatter || !collect(scatter.getInit()))
    return false;
  std::vector<Piece> term;
  for (Operation *whole : findScatters(scatter))
    for (const Piece &piece : applyScatter(whole, op))
      insert(term, piece);
  terms.push_back(term);
  return !term.empty();
}

/// How many ways to read all terms of a sum are tried.
static constexpr size_t kReadings = 64;

/// Sums that the logical program makes of all terms, in whatever order.
std::vector<Piece> Follower::findSum(const Terms &terms) {
  struct Reading {
    Piece sum;
    std::vector<Value> values;
  };
  std::vector<Reading> readings;
  for (const Piece &piece : terms.front())
    if (holds(Premise::TermsAreAdded, piece.isSum()))
      readings.push_back({piece, {piece.logical}});
  for (const std::vector<Piece> &term : ArrayRef(terms).drop_front()) {
    std::vector<Reading> longer;
    for (const Reading &reading : readings)
      for (const Piece &piece : term) {
        auto dims =
            joinDims(reading.sum.dims, piece.dims, reading.sum.logical, maker);
        if (!dims || longer.size() == kReadings ||
            !holds(Premise::TermsOverSameAxes,
                   reading.sum.partial == piece.partial) ||
            !holds(Premise::TermsAreAdded, piece.isSum()))
          continue;
        longer.push_back(reading);
        longer.back().sum.dims = *dims;
        longer.back().values.push_back(piece.logical);
      }
    readings = std::move(longer);
  }
  std::vector<Piece> sums;
  for (Reading &reading : readings)
    for (Value whole :
         logical.findSums(logical.getLeaves(std::move(reading.values)))) {
      reading.sum.logical = whole;
      insertSum(sums, reading.sum);
    }
  return sums;
}

/// Terms that the logical program adds are one.
Follower::Terms Follower::join(Terms terms) {
  if (terms.size() < 2)
    return terms;
  if (auto all = findSum(terms); !all.empty())
    return {all};
  return terms;
}

/// A sum over micro-batches, and more terms.
void Follower::followSum(Operation *op, Known &result) {
  auto sum = llvm::find_if(op->getOperands(),
                           [&](Value each) { return at(each).sum; });
  if (sum != op->operand_end() && isa<nn::MaxOp, nn::MinOp>(op)) {
    const Known before = at(*sum);
    std::vector<Piece> term =
        at(op->getOperand(*sum == op->getOperand(0))).pieces;
    if (!holds(Premise::LargestOfOneTerm, before.terms.empty()) || term.empty())
      return;
    result.sum = before.sum;
    result.terms = {std::move(term)};
    result.combines =
        isa<nn::MaxOp>(op) ? dist::Reduction::max : dist::Reduction::min;
    return;
  }
  Terms terms;
  if (sum == op->operand_end() ||
      !holds(Premise::SumOfSums, at(*sum).combines == dist::Reduction::sum) ||
      !collectTerms(op, terms) ||
      !holds(Premise::SumAddedOnce,
             llvm::count_if(op->getOperands(),
                            [&](Value each) { return at(each).sum; }) == 1))
    return;
  result.sum = at(*sum).sum;
  result.terms = join(std::move(terms));
}
