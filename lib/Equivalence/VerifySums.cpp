// Sums over micro-batches: each adds its terms once, and they are read when all
// have.

#include "Verifier.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// The sum that the loop has made is whole over micro-batches.
LogicalResult Verifier::readSum(func::FuncOp task, unsigned number,
                                Accumulator &accumulator) {
  bool isRead = false;
  for (func::FuncOp run : runs) {
    if (run == accumulator.adds && isRead)
      return task.emitError() << "reads @" << accumulator.state.getSymName()
                              << " before its last term is added";
    isRead |= run == task;
  }
  BlockArgument argument = task.getArgument(number);
  auto layout =
      task.getArgAttrOfType<dist::LayoutAttr>(number, dist::kLayoutAttr);
  StringRef name = accumulator.state.getSymName();
  if (failed(checkLayout(argument.getLoc(), "state", name, layout)))
    return failure();
  PieceMaker &maker = follower.getMaker();
  std::vector<std::vector<Piece>> terms;
  for (const std::vector<Piece> &term : accumulator.terms) {
    std::vector<Piece> &pieces = terms.emplace_back();
    std::string found;
    for (Piece piece : term) {
      llvm::erase(piece.partial, microBatch);
      bool same =
          piece.partial == maker.dropUnits(layout.getPartial().getNames());
      for (auto [dim, axes] : llvm::zip_equal(piece.dims, layout.getDims()))
        same &= dim.free || dim.axes == maker.dropUnits(axes.getNames());
      if (same)
        pieces.push_back(piece);
      found = maker.describe(piece);
    }
    if (pieces.empty())
      return emitError(argument.getLoc()) << "expected @" << name << " to be "
                                          << layout << ", found " << found;
  }
  if (terms.size() == 1)
    follower.at(argument).pieces = std::move(terms.front());
  else
    follower.at(argument).terms = std::move(terms);
  return success();
}

LogicalResult Verifier::verifySum(func::FuncOp task, OpOperand &operand,
                                  Accumulator &accumulator) {
  const Known &what = follower.at(operand.get());
  StringRef name = accumulator.state.getSymName();
  if (what.isIdentityOf(accumulator.combines) && accumulator.adds &&
      !isInLoop(task)) {
    accumulator.reset = true;
    return success();
  }
  auto fail = [&](const Twine &expected) {
    return emitError(operand.get().getLoc())
           << "@" << task.getSymName() << " leaves in @" << name
           << " something else than " << expected;
  };
  if (what.sum != accumulator.state.getSymNameAttr() || what.terms.empty())
    return fail("the sum so far and terms of the logical program");
  Known init;
  if (auto splat =
          dyn_cast_if_present<SplatElementsAttr>(accumulator.state.getInit()))
    init.splat = splat.getSplatValue<Attribute>();
  if (!init.isIdentityOf(what.combines))
    return accumulator.state.emitOpError()
           << "expected an accumulator to begin with what changes nothing";
  accumulator.combines = what.combines;
  bool areOfEach = true;
  for (std::vector<Piece> term : what.terms) {
    llvm::erase_if(term, [&](const Piece &piece) {
      return !llvm::is_contained(piece.partial, microBatch) ||
             piece.reduction != what.combines;
    });
    areOfEach &= !term.empty();
    accumulator.terms.push_back(std::move(term));
  }
  if (!areOfEach || accumulator.adds || (microBatches > 1 && !isInLoop(task)))
    return fail("one micro-batch's terms, once for each");
  accumulator.adds = task;
  return success();
}
