// What ranks give each other: a collective must undo, or make, what it claims
// to.

#include "Follow.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Equal elements stay what they are wherever they are sent.
void Follower::followSent(Operation *op, Known &result) {
  if (holds(Premise::SentAsTheyAre,
            !isa<dist::AllReduceOp, dist::ReduceScatterOp>(op)))
    result.splat = at(op->getOperand(0)).splat;
}

std::vector<Piece> Follower::move(dist::CollectiveOpInterface op,
                                  ArrayRef<Piece> pieces) {
  std::vector<Piece> results;
  for (const Piece &piece : pieces)
    if (auto made = maker.applyCollective(op, piece, why); succeeded(made))
      insert(results, *made);
  return results;
}

void Follower::followMoved(Operation *op, Known &result) {
  result.pieces =
      move(cast<dist::CollectiveOpInterface>(op), at(op->getOperand(0)).pieces);
}

/// What is done to a sum is done to each term. The largest of sums is no sum of
/// the largest.
void Follower::followMovedTerms(Operation *op, Known &result) {
  for (const std::vector<Piece> &term : at(op->getOperand(0)).terms)
    result.terms.push_back(move(cast<dist::CollectiveOpInterface>(op), term));
  auto kind = op->getAttrOfType<dist::ReductionAttr>("kind");
  bool isSum = !kind || kind.getValue() == dist::Reduction::sum;
  if (!holds(Premise::CombinesTermsOfSums, isSum || result.terms.size() <= 1) ||
      llvm::any_of(result.terms, [](const auto &term) { return term.empty(); }))
    result.terms.clear();
}

/// Where axes that stand between others come or go, it is a view of the whole.
void Follower::followMovedViews(Operation *op, Known &result) {
  const std::vector<View> &own = at(op->getOperand(0)).views;
  for (View view : result.pieces.empty() ? getViews(op->getOperand(0)) : own)
    if (moveView(view, cast<dist::CollectiveOpInterface>(op), maker))
      result.views.push_back(std::move(view));
}

LogicalResult Follower::followCollective(dist::CollectiveOpInterface op) {
  for (StringAttr axis : op.getAxes().getNames())
    if (axis == dist::MeshOp::kMicroBatchAxis &&
        mesh.findAxisSize(axis).value_or(1) > 1 && op.communicates())
      return op.emitError() << "works over micro-batches, which run one after "
                               "another";
  Known &result = at(op->getResult(0));
  auto refuse = [&] {
    return op.emitError() << "does not follow from the logical program: "
                          << why;
  };
  if (isa<dist::FetchRowsOp>(op)) {
    apply(Stage::Fetch, op);
    return result.isNothing() ? refuse() : success();
  }
  why = "what it gets is nothing of it";
  apply(Stage::Collective, op);
  apply(Stage::Formula, op);
  if (result.isNothing() && hasElements(op->getResult(0)))
    return refuse();
  why.clear();
  apply(Stage::Wire, op);
  return why.empty() ? success() : refuse();
}
