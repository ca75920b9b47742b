// Finds the ops that hold logits, from the head on, and those between them.

#include "LossRows.h"

#include "dialects/Accel/NodeNames.h"
#include "dialects/Interfaces/ShardingRule.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

nn::MatmulOp parallel::findHead(nn::CrossEntropyOp loss, std::string &why) {
  llvm::SetVector<Value> work;
  work.insert(loss.getLogits());
  nn::MatmulOp head;
  for (size_t next = 0; next < work.size(); ++next) {
    Operation *op = work[next].getDefiningOp();
    if (!op || op->getNumOperands() == 0 || isa<nn::BroadcastOp>(op))
      continue;
    if (auto product = dyn_cast<nn::MatmulOp>(op)) {
      if (head && head != product) {
        why = "logits are made of several products";
        return {};
      }
      head = product;
    } else if (op->hasTrait<nn::Elementwise>() ||
               isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::PadOp,
                   nn::CastOp, nn::SelectOp>(op)) {
      work.insert(op->operand_begin(), op->operand_end());
    } else {
      why = ("logits are made by " + op->getName().getStringRef()).str();
      return {};
    }
  }
  if (!head)
    why = "logits are no product";
  return head;
}

namespace {
class Finder {
public:
  Finder(LossRows &rows, std::string &why) : rows(rows), why(why) {}

  bool run() { return follow() && choose() && check(); }

private:
  bool fail(Operation *op, const Twine &what) {
    why = (op->getName().getStringRef() + " " + what).str();
    return false;
  }

  bool isWide(Value value) const { return classes.contains(value); }

  /// Where all operands that have rows say that the result has them.
  RowsMade followAll(Operation *op) {
    std::optional<RowsMade> made;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      auto place = rows.places.find(operand);
      if (place == rows.places.end())
        continue;
      RowsMade own = followRows(op, number, place->second);
      if (made && !(made->kind == own.kind && made->place == own.place))
        return {};
      made = own;
      for (auto [other, beside] : llvm::enumerate(op->getOperands())) {
        auto there = rows.places.find(beside);
        if (other == number || there == rows.places.end())
          continue;
        auto wanted = findRowsBeside(op, number, place->second, other);
        if (failed(wanted) || !*wanted || !(**wanted == there->second))
          return {};
      }
    }
    return made.value_or(RowsMade());
  }

  /// Follows rows and classes through all that is made of the logits.
  bool follow() {
    Value logits = rows.head.getResult();
    rows.places[logits] = {rows.dim};
    classes[logits] = {unsigned(rows.head.getType().getRank() - 1)};
    for (Operation *op = rows.head->getNextNode(); op; op = op->getNextNode()) {
      bool isReader = llvm::any_of(
          op->getOperands(), [&](Value operand) { return isWide(operand); });
      if (isReader && !worksByRows(op))
        return fail(op, op->hasTrait<OpTrait::IsTerminator>()
                            ? "gives logits away"
                            : "is not done by rows");
      if (!worksByRows(op) ||
          llvm::none_of(op->getOperands(), [&](Value operand) {
            return rows.places.contains(operand);
          }))
        continue;
      RowsMade made = followAll(op);
      if (isReader && made.kind == RowsMade::Other)
        return fail(op, "works across rows");
      if (isReader)
        readers.insert(op);
      if (made.kind != RowsMade::Placed)
        continue;
      Value result = op->getResult(0);
      rows.places[result] = made.place;
      for (auto [number, operand] : llvm::enumerate(op->getOperands()))
        if (auto at = classes.find(operand); at != classes.end()) {
          RowsMade along = followRows(op, number, at->second, /*isAlong=*/true);
          if (along.kind == RowsMade::Other)
            return fail(op, "mixes classes");
          if (along.kind == RowsMade::Placed)
            classes[result] = along.place;
        }
    }
    return true;
  }

  /// Readers of logits, and what leads from one to another.
  bool choose() {
    llvm::DenseSet<Operation *> leads;
    Block *block = rows.head->getBlock();
    for (Operation &op : llvm::reverse(*block)) {
      if (&op == rows.head)
        break;
      if (readers.contains(&op) ||
          llvm::any_of(op.getUsers(),
                       [&](Operation *user) { return leads.contains(user); }))
        leads.insert(&op);
    }
    rows.members.insert(rows.head);
    for (Operation *op = rows.head->getNextNode(); op; op = op->getNextNode())
      if (readers.contains(op) ||
          (leads.contains(op) && op->getNumResults() == 1 &&
           rows.places.contains(op->getResult(0))))
        rows.members.insert(op);
    return true;
  }

  /// No member may wait for more than its own rows.
  bool check() {
    llvm::DenseSet<Operation *> behind; // of what members make, no members
    for (Operation *op = rows.head->getNextNode(); op; op = op->getNextNode()) {
      bool isMember = rows.members.contains(op), isBehind = false;
      for (Value operand : op->getOperands()) {
        Operation *made = operand.getDefiningOp();
        bool waits = behind.contains(made) ||
                     (rows.members.contains(made) && made != rows.head &&
                      !rows.places.contains(operand));
        if (isMember && waits)
          return fail(op, "waits for all rows");
        isBehind |= waits || rows.members.contains(made);
      }
      if (isMember && !knowsOperands(op))
        return fail(op, "reads what is as large as logits, or in another "
                        "order");
      if (!isMember && isBehind)
        behind.insert(op);
    }
    return true;
  }

  /// Whether a chunk's part of all operands of a member can be had.
  bool knowsOperands(Operation *op) {
    for (unsigned number = 0; number < op->getNumOperands(); ++number) {
      Value operand = op->getOperand(number);
      auto place = rows.findOperandRows(op, number);
      if (failed(place))
        return false;
      if (*place && !rows.members.contains(operand.getDefiningOp()) &&
          !canTake(operand, **place))
        return false;
    }
    return true;
  }

  bool canTake(Value value, RowPlace place) {
    auto part = rows.choosePart(value, place);
    if (part != LossRows::Part::Made)
      return part == LossRows::Part::Cut;
    Operation *op = value.getDefiningOp();
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      auto from = findRows(op, number, place);
      if (failed(from) || (*from && !canTake(operand, **from)))
        return false;
    }
    return true;
  }

  LossRows &rows;
  std::string &why;
  llvm::DenseMap<Value, RowPlace> classes; ///< of logits, and what has as many
  llvm::DenseSet<Operation *> readers;     ///< of such
};
} // namespace

std::optional<LossRows> LossRows::find(nn::MatmulOp head, int64_t chunks,
                                       std::string &why) {
  why = "the first dimension is no multiple of that";
  ArrayRef<int64_t> shape = head.getType().getShape();
  std::optional<unsigned> dim = findDim(shape, chunks);
  return dim ? findAlong(head, *dim, why) : std::nullopt;
}

std::optional<unsigned> LossRows::findDim(ArrayRef<int64_t> shape,
                                          int64_t chunks) {
  for (unsigned dim = 0; dim + 1 < shape.size(); ++dim)
    if (shape[dim] % chunks == 0)
      return dim;
    else if (shape[dim] != 1)
      break;
  return std::nullopt;
}

std::optional<LossRows> LossRows::findAlong(nn::MatmulOp head, unsigned dim,
                                            std::string &why) {
  LossRows rows;
  rows.head = head;
  rows.dim = dim;
  // Rows of the product are those of what it reads.
  FailureOr<std::optional<RowPlace>> from = findRows(head, 0, {dim}),
                                     weight = findRows(head, 1, {dim});
  if (failed(from) || !*from || failed(weight) || *weight) {
    why = "the product has a matrix for each row";
    return std::nullopt;
  }
  if (!Finder(rows, why).run())
    return std::nullopt;
  return rows;
}

FailureOr<std::optional<RowPlace>>
LossRows::findOperandRows(Operation *op, unsigned number) const {
  if (auto result = places.find(op->getResult(0)); result != places.end())
    return findRows(op, number, result->second);
  // Rows that it adds over run along.
  for (auto [other, value] : llvm::enumerate(op->getOperands()))
    if (auto at = places.find(value); at != places.end())
      return findRowsBeside(op, other, at->second, number);
  return std::optional<RowPlace>();
}

LossRows::Part LossRows::choosePart(Value value, RowPlace place) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return Part::Cut;
  if (isa<nn::ConstantOp>(op))
    return isa<SplatElementsAttr>(cast<nn::ConstantOp>(op).getValue())
               ? Part::Made
               : Part::Cut;
  bool isLarge = 2 * cast<RankedTensorType>(value.getType()).getNumElements() >=
                 head.getType().getNumElements();
  bool canBeMade = worksByRows(op) &&
                   llvm::all_of(llvm::seq<unsigned>(0, op->getNumOperands()),
                                [&](unsigned number) {
                                  return succeeded(findRows(op, number, place));
                                });
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    canBeMade = iota.getDim() != place.dim;
  // What is a view costs nothing.
  if (canBeMade &&
      (isLarge || isa<nn::ReshapeOp, nn::BroadcastOp, nn::IotaOp>(op)))
    return Part::Made;
  return isLarge ? Part::None : Part::Cut;
}
