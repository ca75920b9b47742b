// Asks where the rows of an evaluation are, and what its loss is made of.

#include "SeparateRows.h"

#include "LossTerms.h"
#include "RowFinder.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// Fails where the loss is neither a mean nor a sum of quotients, which are
/// results then; of a mean there are none.
static FailureOr<ArrayAttr> addTerms(OpBuilder &builder, Value loss,
                                     const RowFinder &rows,
                                     SeparateRows &found) {
  auto kindOf = [&](Value value) { return rows.kindOf(value); };
  if (isOfAllRows(kindOf(loss)))
    return builder.getArrayAttr({});
  std::optional<SmallVector<LossTerm>> terms = splitLoss(builder, loss, kindOf);
  if (!terms)
    return failure();
  return nameTerms(builder, *terms, found.terms);
}

static std::optional<SeparateRows> describeRows(func::FuncOp entry,
                                                RowFinder rows) {
  if (failed(rows.run()))
    return std::nullopt;
  SeparateRows found;
  Operation *exit = entry.getBody().front().getTerminator();
  OpBuilder builder(exit);
  FailureOr<ArrayAttr> terms =
      addTerms(builder, exit->getOperand(0), rows, found);
  if (failed(terms))
    return std::nullopt;
  found.attribute = builder.getDictionaryAttr(
      {builder.getNamedAttr("equal", rows.getEqual(builder)),
       builder.getNamedAttr("ignored", rows.getIgnored(builder)),
       builder.getNamedAttr("inputs", rows.getInputs(builder)),
       builder.getNamedAttr("terms", *terms)});
  return found;
}

std::optional<SeparateRows>
autodiff::findSeparateRows(func::FuncOp entry,
                           ArrayRef<std::string> batchDims) {
  // Counts that differ are exact; elsewhere it may be known that they do not.
  // An input may be as long as the batch and have no rows: nobody says so where
  // tokens alone are fed.
  for (bool countsAreFree : {false, true})
    for (bool ofTokens : {false, true})
      if (std::optional<SeparateRows> rows = describeRows(
              entry, RowFinder(entry, batchDims, countsAreFree, ofTokens)))
        return rows;
  return std::nullopt;
}
