// What `causal` means, once for the ops of nn and the commands of plan, of
// attention and its gradient: row s sees key t where
// t · stride + column_offset <= s · stride + row_offset, where the offsets
// count what `row_steps` and `column_steps` add to them on each rank. All have
// getCausal(), getRowOffset(), getColumnOffset(), getStride() and what these
// come to, getDiagonal().

#ifndef ACCEL_DIALECTS_NN_CAUSAL_H
#define ACCEL_DIALECTS_NN_CAUSAL_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <algorithm>

namespace accel {

/// Offsets are below this, so that their sums with sizes are numbers of i64.
inline constexpr int64_t kOffsetLimit = int64_t(1) << 56;

/// Verifies what the coordinates along axes add to an offset, if they do.
template <typename AttentionLike>
llvm::LogicalResult verifySteps(AttentionLike op,
                                std::optional<mlir::DictionaryAttr> steps,
                                llvm::StringRef name) {
  if (!steps)
    return llvm::success();
  if (!op.getCausal() || steps->empty())
    return op.emitOpError() << "expected '" << name
                            << "' beside 'causal' only, and an axis in it, "
                               "found "
                            << *steps;
  for (mlir::NamedAttribute step : *steps) {
    auto number = mlir::dyn_cast<mlir::IntegerAttr>(step.getValue());
    if (!number || number.getInt() < 0 || number.getInt() >= kOffsetLimit)
      return op.emitOpError()
             << "expected a number of at least 0 and below 2^56 for axis '"
             << step.getName().getValue() << "' in '" << name << "', found "
             << step.getValue();
  }
  return llvm::success();
}

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
  int64_t stride = op.getStride();
  if (stride < 1 || stride >= kOffsetLimit || (!op.getCausal() && stride != 1))
    return op.emitOpError() << "expected a 'stride' of at least 1 and below "
                               "2^56, and of 1 but beside 'causal', found "
                            << stride;
  if (failed(verifySteps(op, op.getRowSteps(), "row_steps")) ||
      failed(verifySteps(op, op.getColumnSteps(), "column_steps")))
    return llvm::failure();
  int64_t turn = op.getTurn();
  if (turn < 0 || (turn != 0 && !op.getColumnSteps()))
    return op.emitOpError() << "expected a 'turn' of at least 0, beside "
                               "'column_steps' only, found "
                            << turn;
  return llvm::success();
}

/// A rank's coordinate along an axis, and how many there are.
struct AxisPlace {
  int64_t coordinate, size;
};

/// Moves the rows and keys of an op of nn to where they are on one rank, whose
/// place along each axis `placeOf` says.
template <typename AttentionLike>
void resolveSteps(AttentionLike op,
                  llvm::function_ref<AxisPlace(llvm::StringRef)> placeOf) {
  auto add = [&](std::optional<mlir::DictionaryAttr> steps, int64_t turn) {
    int64_t offset = 0;
    for (mlir::NamedAttribute step :
         steps ? steps->getValue() : llvm::ArrayRef<mlir::NamedAttribute>()) {
      auto [coordinate, size] = placeOf(step.getName().getValue());
      offset += (coordinate + size - turn % size) % size *
                mlir::cast<mlir::IntegerAttr>(step.getValue()).getInt();
    }
    return offset;
  };
  op.setRowOffset(op.getRowOffset() + add(op.getRowSteps(), 0));
  op.setColumnOffset(op.getColumnOffset() +
                     add(op.getColumnSteps(), op.getTurn()));
  op.removeRowStepsAttr();
  op.removeColumnStepsAttr();
  op.setTurn(0);
}

/// Whether ranks' rows or keys are elsewhere.
template <typename AttentionLike> bool hasSteps(AttentionLike op) {
  return op.getRowSteps() || op.getColumnSteps();
}

/// How many scores of one head are not hidden; as many as there are where that
/// differs between ranks.
template <typename AttentionLike>
int64_t countScores(AttentionLike op, int64_t rows, int64_t keys) {
  if (!op.getCausal() || hasSteps(op))
    return rows * keys;
  int64_t scores = 0;
  for (int64_t row = 0; row < rows; ++row)
    scores += std::clamp<int64_t>(row + op.getDiagonal() + 1, 0, keys);
  return scores;
}

} // namespace accel

#endif // ACCEL_DIALECTS_NN_CAUSAL_H
