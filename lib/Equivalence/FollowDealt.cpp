// Rows that go to the ranks which have their groups' matrices, and come back:
// on the way nobody knows which rows a rank has, but they are the same rows of
// all that was dealt by the same numbers.

#include "Follow.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// The results of nn.deal_rows by number.
enum { kRows, kOwn, kPlaces };

/// Whether each row that groups come from has one: what is chosen is no -1.
static bool areAlwaysGroups(Value groups) {
  while (Operation *op = skipPlacement(groups).getDefiningOp()) {
    if (isa<nn::TopKOp>(op))
      return true;
    // Of few bits a great number is a negative one.
    Type element = getElementTypeOrSelf(op->getResult(0));
    bool hasAll = element.isInteger(64) || element.isInteger(32);
    if (!isa<nn::ReshapeOp, nn::TransposeOp>(op) &&
        !(isa<nn::CastOp>(op) && hasAll))
      return false;
    groups = op->getOperand(0);
  }
  return false;
}

/// A dealing of the rows of the ranks along axes: their groups, gathered, and
/// the rank's number are what it says.
void Follower::followDeal(Operation *op, Known &) {
  auto deal = cast<nn::DealRowsOp>(op);
  auto gather = deal.getGroups().getDefiningOp<dist::AllGatherOp>();
  std::optional<Offset> rank = getOffset(deal.getRank());
  Dealing dealing;
  if (gather && gather.getDim() == 0 && !gather.getWire())
    dealing.axes = maker.dropUnits(gather.getAxes().getNames());
  if (dealing.axes.empty() ||
      !holds(Premise::DealsByRank,
             rank && rank->factor == 1 && rank->axes == dealing.axes) ||
      int64_t(deal.getRanks()) != maker.countRanks(dealing.axes)) {
    why = "expected the groups of all ranks along axes, and the rank's number "
          "among them";
    return;
  }
  addViews(gather); // rows that ranks have joined may stand in another order
  for (const Piece &piece : at(gather.getInput()).pieces)
    if (piece.dims.size() == 1 && !piece.dims[0].free &&
        piece.dims[0].padding == 0 && piece.partial.empty() &&
        llvm::all_of(dealing.axes, [&](StringAttr axis) {
          return llvm::is_contained(piece.dims[0].axes, axis);
        }))
      dealing.groups.push_back(piece);
  if (dealing.groups.empty()) {
    why = "expected groups of rows that the ranks have";
    return;
  }
  dealings[deal] = std::move(dealing);
  for (OpResult result : deal->getResults())
    at(result).formula = result;
}

std::optional<DealIndex> Follower::getDealIndex(Value value) {
  auto number = dyn_cast_if_present<OpResult>(at(value).formula);
  if (!number || !dealings.contains(number.getOwner()))
    return std::nullopt;
  return DealIndex{number.getOwner(), number.getResultNumber()};
}

/// The groups of all ranks' rows are seen where these are dealt.
bool Follower::isPartOfDealing(Operation *op) {
  return isa<dist::AllGatherOp>(op) &&
         llvm::any_of(op->getUsers(), llvm::IsaPred<nn::DealRowsOp>);
}

/// Whether rows are those whose groups were dealt.
bool Follower::isOfDealing(const Piece &piece, Operation *deal) {
  return !piece.dims.empty() &&
         llvm::any_of(dealings[deal].groups, [&](const Piece &groups) {
           return groups.dims[0] == piece.dims[0];
         });
}

void Follower::followFetch(Operation *op, Known &result) {
  auto fetch = cast<dist::FetchRowsOp>(op);
  std::optional<DealIndex> index = getDealIndex(fetch.getIndex());
  if (!index || fetch.getWire() ||
      !holds(Premise::FetchesOverItsAxes,
             maker.dropUnits(fetch.getAxes().getNames()) ==
                 dealings[index->deal].axes)) {
    why = "expected rows by the numbers of a dealing, over its axes";
    return;
  }
  why = "the rows are none that were dealt so";
  if (index->number == kRows)
    addViews(fetch);
  const Known from = at(fetch.getInput());
  if (index->number == kRows) {
    for (const Piece &piece : from.pieces)
      if (isOfDealing(piece, index->deal))
        result.dealt.push_back({piece, index->deal, /*noneIsZero=*/false});
  } else if (index->number == kPlaces) {
    // A row of no group comes back as zeros.
    bool hasNone =
        !llvm::all_of(dealings[index->deal].groups, [](const Piece &piece) {
          return areAlwaysGroups(piece.logical);
        });
    for (const Dealt &dealt : from.dealt)
      if (dealt.deal == index->deal &&
          holds(Premise::NoneComesBackAsZeros, dealt.noneIsZero || !hasNone))
        insertSum(result.pieces, dealt.piece);
  }
}

/// An op of no block that is `op` on as many rows as a rank has of its own, and
/// of all groups: `shapes` are of its operands, then its result.
static Operation *makeOnOwnRows(Operation *op,
                                ArrayRef<SmallVector<int64_t>> shapes,
                                Block &block) {
  IRMapping mapping;
  for (auto [operand, shape] : llvm::zip(op->getOperands(), shapes))
    if (!mapping.contains(operand))
      mapping.map(operand,
                  block.addArgument(
                      cast<RankedTensorType>(operand.getType()).clone(shape),
                      op->getLoc()));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  Operation *own = builder.clone(*op, mapping);
  Value result = own->getResult(0);
  result.setType(cast<RankedTensorType>(result.getType()).clone(shapes.back()));
  if (auto slice = dyn_cast<nn::SliceOp>(own))
    slice.setSizes(shapes.back());
  return own;
}

static SmallVector<int64_t> withFirst(Value value, int64_t first) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[0] = first;
  return shape;
}

/// What `value` holds of `root` as rows that were dealt by `deal`.
std::vector<Piece> Follower::holdDealt(Value value, Value root,
                                       Operation *deal) {
  std::vector<Piece> held;
  for (const Dealt &dealt : at(value).dealt)
    if (dealt.deal == deal && dealt.piece.logical == root)
      held.push_back(dealt.piece);
  return held;
}

void Follower::insertDealt(Value value, Dealt dealt) {
  std::vector<Dealt> &known = at(value).dealt;
  if (!llvm::is_contained(known, dealt))
    known.push_back(std::move(dealt));
}

/// A product of dealt rows with the matrices of the rank's own groups, or their
/// gradient.
void Follower::applyDealtProduct(Operation *op, Operation *deal) {
  auto matmul = dyn_cast<nn::GroupedMatmulOp>(op);
  auto grad = dyn_cast<nn::GroupedMatmulGradOp>(op);
  std::optional<DealIndex> own = getDealIndex(op->getOperand(2));
  if (!holds(Premise::GroupsAreOwn,
             own && own->deal == deal && own->number == kOwn))
    return;
  const Dealing &dealing = dealings[deal];
  auto deals = cast<nn::DealRowsOp>(deal);
  int64_t rows = shapeOf(deals.getPlaces())[0], groups = deals.getNumGroups(),
          ownGroups = groups / int64_t(deals.getRanks());
  Value result = op->getResult(0);
  if (shapeOf(matmul ? Value(matmul.getRhs()) : result)[0] != ownGroups)
    return;
  Block block;
  Operation *wide =
      makeOnOwnRows(op,
                    {withFirst(op->getOperand(0), rows),
                     withFirst(op->getOperand(1), matmul ? groups : rows),
                     {rows},
                     withFirst(result, matmul ? rows : groups)},
                    block);
  if (grad)
    cast<nn::GroupedMatmulGradOp>(wide).setNumGroups(groups);
  SmallVector<bool> zeros(3, false);
  // Rows of which each is the same are that wherever they are.
  auto holdRows = [&](unsigned operand, Value root) {
    Value rows = op->getOperand(operand);
    return at(rows).splat ? hold(rows, root) : holdDealt(rows, root, deal);
  };
  for (const Piece &dealt : dealing.groups)
    for (Operation *whole : logical.getReaders(dealt.logical)) {
      if (!agree(whole, wide) ||
          logical.rootOf(whole->getOperand(2)) != dealt.logical)
        continue;
      auto rootOf = [&](unsigned operand) {
        return logical.rootOf(whole->getOperand(operand));
      };
      std::vector<Piece> others;
      if (grad) {
        others = holdRows(1, rootOf(1));
      } else {
        for (Piece piece : hold(op->getOperand(1), rootOf(1)))
          if (holds(Premise::MatricesAreOwn,
                    !piece.dims[0].free && piece.dims[0].isPlain() &&
                        piece.dims[0].axes == dealing.axes)) {
            piece.dims[0] = Dim();
            others.push_back(std::move(piece));
          }
      }
      for (auto &made : apply(whole, {holdRows(0, rootOf(0)), others, {dealt}},
                              zeros, wide)) {
        Piece &piece = made.front();
        if (matmul) {
          if (isOfDealing(piece, deal))
            insertDealt(result, {piece, deal, /*noneIsZero=*/true});
          continue;
        }
        // All rows of the rank's groups are there: nothing is left to add.
        bool isSum = piece.dims[0].axes.empty() && !piece.dims[0].free;
        for (StringAttr axis : dealing.axes)
          isSum &= llvm::is_contained(piece.partial, axis);
        for (StringAttr axis : dealing.axes)
          llvm::erase(piece.partial, axis);
        piece.dims[0].axes = dealing.axes;
        if (isSum && maker.fits(piece, result.getType()))
          insertSum(at(result).pieces, piece);
      }
    }
}

/// What makes of each row a row does so wherever the row is.
void Follower::applyDealtRows(Operation *op, Operation *deal) {
  auto deals = cast<nn::DealRowsOp>(deal);
  int64_t rows = shapeOf(deals.getPlaces())[0], room = deals.getRoom();
  Value result = op->getResult(0);
  if (shapeOf(result).empty() || shapeOf(result)[0] != room)
    return;
  SmallVector<SmallVector<int64_t>> shapes;
  SmallVector<bool> isDealt, zeros;
  for (Value operand : op->getOperands()) {
    isDealt.push_back(llvm::any_of(at(operand).dealt, [&](const Dealt &dealt) {
      return dealt.deal == deal;
    }));
    zeros.push_back(false);
    bool isSplat = at(operand).splat && !shapeOf(operand).empty() &&
                   shapeOf(operand)[0] == room;
    if (!isDealt.back() && !isSplat && !shapeOf(operand).empty() &&
        !at(operand).splat)
      return;
    shapes.push_back(isDealt.back() || isSplat
                         ? withFirst(operand, rows)
                         : SmallVector<int64_t>(shapeOf(operand)));
  }
  shapes.push_back(withFirst(result, rows));
  Block block;
  Operation *wide = makeOnOwnRows(op, shapes, block);
  size_t first = llvm::find(isDealt, true) - isDealt.begin();
  for (const Dealt &dealt :
       std::vector<Dealt>(at(op->getOperand(first)).dealt)) {
    if (dealt.deal != deal)
      continue;
    for (Operation *whole : logical.getReaders(dealt.piece.logical)) {
      if (!agree(whole, wide) || whole->getNumResults() != 1)
        continue;
      Operands operands;
      for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
        Value root = logical.rootOf(whole->getOperand(number));
        operands.push_back(isDealt[number] ? holdDealt(operand, root, deal)
                                           : hold(operand, root));
      }
      for (auto &made : apply(whole, operands, zeros, wide))
        if (made.front().dims.size() == shapeOf(result).size() &&
            holds(Premise::RowsStayRows,
                  made.front().dims[0] == dealt.piece.dims[0]))
          insertDealt(result, {made.front(), deal, /*noneIsZero=*/false});
    }
  }
}

/// The dealings whose rows an op reads.
llvm::SmallSetVector<Operation *, 2> Follower::getDeals(Operation *op) {
  llvm::SmallSetVector<Operation *, 2> deals;
  for (Value operand : op->getOperands())
    for (const Dealt &dealt : at(operand).dealt)
      deals.insert(dealt.deal);
  return deals;
}

void Follower::followDealtProduct(Operation *op, Known &) {
  if (!isa<nn::GroupedMatmulOp, nn::GroupedMatmulGradOp>(op))
    return;
  auto deals = getDeals(op);
  if (auto own = getDealIndex(op->getOperand(2)))
    deals.insert(own->deal);
  for (Operation *deal : deals)
    applyDealtProduct(op, deal);
}

void Follower::followDealtRows(Operation *op, Known &) {
  if (op->getNumResults() == 1 &&
      !isa<nn::GroupedMatmulOp, nn::GroupedMatmulGradOp>(op))
    for (Operation *deal : getDeals(op))
      applyDealtRows(op, deal);
}
