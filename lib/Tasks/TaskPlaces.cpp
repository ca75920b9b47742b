// Of which chunk a task is that computes an op, and of which round, where it
// runs once.

#include "TaskHomes.h"
#include "dialects/Accel/Reports.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/Entry.h"
#include <limits>

using namespace mlir;
using namespace accel;
using namespace accel::tasks;

std::set<int64_t> TaskHomes::findChunks(Value value) const {
  if (std::optional<int64_t> own = chunks.find(value))
    return {*own};
  std::set<int64_t> readers;
  SmallVector<Value> work{value};
  DenseSet<Value> seen;
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (user->hasTrait<OpTrait::IsTerminator>()) {
        if (std::optional<int64_t> chunk = findTaker(use))
          readers.insert(*chunk);
        continue;
      }
      for (Value result : user->getResults()) {
        std::optional<int64_t> chunk = chunks.find(result);
        if (auto cut = dyn_cast<nn::CutOp>(user))
          chunk = cut.getFrom();
        if (chunk)
          readers.insert(*chunk);
        else if (seen.insert(result).second)
          work.push_back(result);
      }
    }
  return readers;
}

/// The sum over micro-batches that a value which no chunk has is made of; the
/// value itself if there is none.
Value TaskHomes::findSum(Value value) const {
  SmallVector<Value> work{value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !seen.insert(next).second)
      continue;
    if (reductions.count(op))
      return next;
    llvm::append_range(work, op->getOperands());
  }
  return value;
}

int64_t TaskHomes::getChunk(Value value) const {
  if (chunks.count() == 1)
    return 0;
  std::set<int64_t> own = findChunks(value);
  // An output of inputs alone, as a gradient without its padding, is made where
  // they are summed.
  if (own.empty())
    own = findChunks(findSum(value));
  return own.empty() ? 0 : *own.begin();
}

/// The chunk that a result of the entry goes to, whatever it is made of.
std::optional<int64_t> TaskHomes::findTaker(OpOperand &result) const {
  unsigned number = result.getOperandNumber();
  func::FuncOp owner = entry; // op handles are pointers
  if (auto state =
          owner.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr))
    return SymbolTable::lookupNearestSymbolFrom<nn::StateOp>(owner, state)
        .getChunk();
  auto output = owner.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr);
  if (output && isReport(owner->getParentOfType<ModuleOp>(), output))
    return 0;
  return std::nullopt;
}

int64_t TaskHomes::getChunk(OpOperand &result) const {
  std::optional<int64_t> own = chunks.find(result.get());
  if (!own)
    own = findTaker(result);
  return own ? *own : getChunk(result.get());
}

Place TaskHomes::getPlace(Operation *op, int64_t chunk) const {
  Value value = op->getResult(0);
  std::optional<int64_t> own = chunks.find(value);
  auto reduction = reductions.find(op);
  if (reduction != reductions.end()) // one chunk makes it
    return {reduction->second.reads, own ? *own : getChunk(value), 0};
  return {homes.lookup(op), own.value_or(chunk), rounds.lookup(op)};
}

Value TaskHomes::skipFree(Value value) {
  for (Operation *op = value.getDefiningOp();
       op && isFree(op) && op->getNumOperands() > 0; op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

Place TaskHomes::getSource(nn::CutOp cut) const {
  int64_t from = cut.getFrom();
  Value source = skipFree(cut.getInput());
  Operation *op = source.getDefiningOp();
  Home reader = homes.lookup(cut);
  auto isOnce = [](Home home) {
    return home == Home::Prepare || home == Home::Update;
  };
  // What is gathered anew wherever it is wanted, a task that runs once gathers
  // itself.
  bool isAgain =
      op && isRepeated(op) && isOnce(reader) && !isOnce(homes.lookup(op));
  if (op && !isFree(op) && !isAgain)
    return getPlace(op, from);
  return {reader, from, 0};
}

/// Of what runs once, by how often it has come from another chunk: along a cut,
/// or as a sum of inputs alone, which other chunks read as well.
void TaskHomes::findRounds() {
  for (Home home : {Home::Prepare, Home::Update}) {
    DenseMap<Value, int64_t> reached; // of values of this home, and free ones
    for (Operation &op : entry.front().without_terminator()) {
      bool free = isFree(&op);
      if (auto sum = reductions.find(&op); sum != reductions.end()) {
        if (sum->second.reads == home && chunks.count() > 1)
          reached[op.getResult(0)] = findChunks(op.getResult(0)).size() > 1;
        continue;
      }
      if (!free && homes.lookup(&op) != home)
        continue;
      int64_t round = 0;
      for (Value operand : op.getOperands())
        round = std::max(round, reached.lookup(operand));
      if (auto cut = dyn_cast<nn::CutOp>(op))
        round += getSource(cut).home == home;
      for (Value result : op.getResults())
        reached[result] = round;
      if (!free)
        rounds[&op] = round;
    }
    postpone(home);
  }
}

/// What is read in a later round alone is made there, unless it is less than
/// what it is made of: a new weight, as large as the old one and the gradient
/// that are there anyway, is not kept between rounds, and a sum of squares is.
void TaskHomes::postpone(Home home) {
  auto getKeptBytes = [](Value value) -> int64_t { // not of states
    bool isState = isa<BlockArgument>(skipFree(value)) ||
                   value.getDefiningOp<dist::AccumulateOp>();
    return isState ? 0 : getTensorBytes(value.getType());
  };
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  DenseMap<Operation *, int64_t> reached; // of this home, and free ones
  for (Operation &op : llvm::reverse(entry.front().without_terminator())) {
    bool free = isFree(&op);
    if (reductions.count(&op) || (!free && homes.lookup(&op) != home))
      continue;
    int64_t first = kNever; // round that reads it
    for (Operation *user : op.getUsers()) {
      bool atOnce = isa<nn::CutOp>(user) || !reached.count(user);
      if (!user->hasTrait<OpTrait::IsTerminator>())
        first = std::min(first, atOnce ? 0 : reached.lookup(user));
    }
    int64_t made = 0, read = 0;
    for (Value result : op.getResults())
      made += getKeptBytes(result);
    for (Value operand : op.getOperands())
      read = std::max(read, getKeptBytes(operand));
    if (!free && first != kNever && first > rounds[&op] && made >= read &&
        !isa<nn::CutOp>(op))
      rounds[&op] = first;
    reached[&op] = free ? first : rounds[&op];
  }
}
