// The groups of all ranks' rows, gathered, say which rows each rank gets.

#include "DealRows.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

/// How many of `choices` different groups each token chooses, if rows are
/// tokens' choices: 1 if that is not known.
static int64_t countChoices(Value groups) {
  while (auto reshape = groups.getDefiningOp<nn::ReshapeOp>())
    groups = reshape.getInput();
  auto chosen = groups.getDefiningOp<nn::TopKOp>();
  return chosen ? int64_t(chosen.getK()) : 1;
}

DealtRows::DealtRows(OpBuilder &builder, Location loc, dist::MeshOp mesh,
                     dist::AxesAttr axes, Value groups, int64_t numGroups)
    : builder(builder), loc(loc), mesh(mesh), axes(axes) {
  auto index = builder.getI64Type();
  int64_t ranks = mesh.getGroupSize(axes),
          rows = cast<RankedTensorType>(groups.getType()).getDimSize(0);
  auto type = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, index);
  };
  // What a token chooses are different groups: no rank gets more of its rows
  // than it has groups.
  int64_t choices = countChoices(groups), perRank = numGroups / ranks;
  int64_t room = ranks * (rows / choices) * std::min(choices, perRank);
  if (cast<RankedTensorType>(groups.getType()) != type({rows}))
    groups = nn::CastOp::create(builder, loc, type({rows}), groups);
  StringRef symbol = mesh.getSymName();
  Value all =
      dist::AllGatherOp::create(builder, loc, type({ranks * rows}), groups,
                                symbol, axes, /*dim=*/0, TypeAttr());
  Value rank = dist::AxisIndexOp::create(builder, loc, type({}), symbol, axes);
  deal =
      nn::DealRowsOp::create(builder, loc, all, rank, numGroups, ranks, room);
}

Value DealtRows::send(Value rows) {
  SplatElementsAttr equal;
  if (!matchPattern(rows, m_Constant(&equal)))
    return fetch(rows, deal.getRows());
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = deal.getRoom();
  return nn::ConstantOp::create(builder, loc,
                                equal.resizeSplat(type.clone(shape)));
}

Value DealtRows::fetch(Value rows, Value index) {
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = cast<RankedTensorType>(index.getType()).getDimSize(0);
  return dist::FetchRowsOp::create(builder, loc, type.clone(shape), rows, index,
                                   mesh.getSymName(), axes, TypeAttr());
}
