// What `causal` means, once for the ops of nn and the commands of plan, of
// attention and its gradient: row s sees key t where
// t + column_offset <= s + row_offset, where row_offset counts what `row_steps`
// add to it on each rank. All have getCausal(), getRowOffset(),
// getColumnOffset() and their difference, getDiagonal().

#ifndef ACCEL_DIALECTS_NN_CAUSAL_H
#define ACCEL_DIALECTS_NN_CAUSAL_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <algorithm>

namespace accel {

/// Offsets are below this, so that their sums with sizes are numbers of i64.
inline constexpr int64_t kOffsetLimit = int64_t(1) << 56;

/// Verifies the offsets of an op that is like attention.
template <typename AttentionLike>
llvm::LogicalResult verifyOffsets(AttentionLike op) {
  int64_t row = op.getRowOffset(), column = op.getColumnOffset();
  if (!op.getCausal() && (row != 0 || column != 0))
    return op.emitOpError() << "expected 'row_offset' and 'column_offset' "
                               "beside 'causal' only, found "
                            << row << " and " << column;
  if (row < 0 || column < 0 || row >= kOffsetLimit || column >= kOffsetLimit)
    return op.emitOpError() << "expected 'row_offset' and 'column_offset' of "
                               "at least 0 and below 2^56, found "
                            << row << " and " << column;
  std::optional<mlir::DictionaryAttr> steps = op.getRowSteps();
  if (steps && (!op.getCausal() || steps->empty()))
    return op.emitOpError() << "expected 'row_steps' beside 'causal' only, and "
                               "an axis in it, found "
                            << *steps;
  if (!steps)
    return llvm::success();
  for (mlir::NamedAttribute step : *steps) {
    auto rows = mlir::dyn_cast<mlir::IntegerAttr>(step.getValue());
    if (!rows || rows.getInt() < 0 || rows.getInt() >= kOffsetLimit)
      return op.emitOpError()
             << "expected a number of rows of at least 0 and below 2^56 for "
                "axis '"
             << step.getName().getValue() << "' in 'row_steps', found "
             << step.getValue();
  }
  return llvm::success();
}

/// Moves the rows of an op of nn to where they are on one rank, whose
/// coordinate along each axis `coordinateOf` says.
template <typename AttentionLike>
void resolveRowSteps(
    AttentionLike op,
    llvm::function_ref<int64_t(llvm::StringRef)> coordinateOf) {
  std::optional<mlir::DictionaryAttr> steps = op.getRowSteps();
  if (!steps)
    return;
  int64_t offset = op.getRowOffset();
  for (mlir::NamedAttribute step : *steps)
    offset += coordinateOf(step.getName().getValue()) *
              mlir::cast<mlir::IntegerAttr>(step.getValue()).getInt();
  op.setRowOffset(offset);
  op.removeRowStepsAttr();
}

/// How many scores of one head are not hidden; as many as there are where that
/// differs between ranks.
template <typename AttentionLike>
int64_t countScores(AttentionLike op, int64_t rows, int64_t keys) {
  if (!op.getCausal() || op.getRowSteps())
    return rows * keys;
  int64_t scores = 0;
  for (int64_t row = 0; row < rows; ++row)
    scores += std::clamp<int64_t>(row + op.getDiagonal() + 1, 0, keys);
  return scores;
}

} // namespace accel

#endif // ACCEL_DIALECTS_NN_CAUSAL_H
