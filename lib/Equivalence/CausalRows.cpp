// Which rows of a causal attention a rank has: what each of them sees depends
// on its number, so that a piece must say whose it is.

#include "Pieces.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

LogicalResult PieceMaker::checkCausalRows(
    Operation *logical, Operation *local, const OpMap &map,
    std::vector<std::optional<Dim>> &splits, std::string &why) {
  DictionaryAttr steps;
  bool causal = false, turned = false;
  auto look = [&](auto op) {
    causal = op.getCausal();
    turned = op.getColumnSteps().has_value() || op.getStride() != 1;
    steps = op.getRowSteps().value_or(DictionaryAttr());
  };
  if (auto attention = dyn_cast<nn::AttentionOp>(local))
    look(attention);
  else if (auto grad = dyn_cast<nn::AttentionGradOp>(local))
    look(grad);
  if (!causal)
    return success();
  if (turned) {
    why = "expected all keys of causal attention, found a rank's "
          "('column_steps', 'stride')";
    return failure();
  }
  constexpr int kQuery = 0, kRows = 2;
  std::optional<Dim> &rows = splits[map.operands[kQuery][kRows]];
  int64_t count = shapeOf(local->getOperand(kQuery))[kRows],
          whole = shapeOf(logical->getOperand(kQuery))[kRows];
  // Rows that are equal see different keys.
  if (!rows)
    rows = Dim();
  if (!rows->isPlain() || count * countRanks(rows->axes) != whole) {
    why = "expected the rows of causal attention in their order, and those of "
          "one range on each rank";
    return failure();
  }
  SmallVector<NamedAttribute> expected;
  Builder builder(logical->getContext());
  int64_t step = count;
  for (StringAttr axis : llvm::reverse(dropUnits(rows->axes))) {
    expected.emplace_back(axis, builder.getI64IntegerAttr(step));
    step *= getSize(axis);
  }
  // An axis of one rank moves nothing.
  SmallVector<NamedAttribute> found;
  for (NamedAttribute each :
       steps ? steps.getValue() : ArrayRef<NamedAttribute>())
    if (mesh.findAxisSize(each.getName()) != 1)
      found.push_back(each);
  if (builder.getDictionaryAttr(expected) == builder.getDictionaryAttr(found))
    return success();
  why = "expected rows that begin " + std::to_string(count) +
        " apart on the ranks that split them ('row_steps')";
  return failure();
}
