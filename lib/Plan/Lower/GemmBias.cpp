// Recognises bias additions: gemm libraries add a bias while they store.

#include "GemmBias.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// The product whose result, reshaped or not, is `value` and nothing else.
static nn::MatmulOp getOnlyProduct(Value value) {
  int64_t columns = cast<RankedTensorType>(value.getType()).getShape().back();
  while (value.hasOneUse()) {
    if (auto matmul = value.getDefiningOp<nn::MatmulOp>())
      return matmul.getType().getShape().back() == columns ? matmul
                                                           : nn::MatmulOp();
    auto reshape = value.getDefiningOp<nn::ReshapeOp>();
    if (!reshape)
      break;
    value = reshape.getInput();
  }
  return {};
}

/// The argument or constant that `value` repeats along all but the last
/// dimension.
static Value getRepeatedRow(Value value) {
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast)
    return {};
  int64_t columns = broadcast.getType().getShape().back();
  Value row = broadcast.getInput();
  RankedTensorType type = broadcast.getInput().getType();
  if (type.getRank() == 0 || type.getNumElements() != columns ||
      type.getShape().back() != columns)
    return {};
  while (auto reshape = row.getDefiningOp<nn::ReshapeOp>())
    row = reshape.getInput();
  bool known = isa<BlockArgument>(row) || row.getDefiningOp<nn::ConstantOp>();
  return known ? row : Value();
}

std::optional<GemmBias> accel::plan::matchGemmBias(Operation *op,
                                                   const Target &target) {
  if (!target.hasEpilogue(Epilogue::Bias))
    return std::nullopt;
  auto add = dyn_cast<nn::AddOp>(op);
  if (!add || add.getType().getRank() == 0)
    return std::nullopt;
  for (auto [product, other] : {std::pair(add.getLhs(), add.getRhs()),
                                std::pair(add.getRhs(), add.getLhs())})
    if (nn::MatmulOp matmul = getOnlyProduct(product))
      if (Value bias = getRepeatedRow(other))
        return GemmBias{matmul, bias};
  return std::nullopt;
}
