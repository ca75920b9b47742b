// Divides the spine of a model into stretches of equal work, or where it is
// told to, and cuts what crosses from one to another.

#include "Balance.h"
#include "CutNames.h"
#include "Passes.h"
#include "TellCuts.h"
#include "dialects/Accel/NodeNames.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/BackwardWork.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Work.h"
#include "lib/Names/RecomputePolicy.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel::cost;

namespace accel::stages {
#define GEN_PASS_DEF_CUTFORWARDPASS
#include "lib/Stages/Passes.h.inc"

namespace {
/// Spines of so many ops may be cut anywhere.
constexpr size_t kFewOps = 1024;

int64_t getBytes(Value value) { return getTensorBytes(value.getType()); }

class Cutter {
public:
  Cutter(func::FuncOp entry, const CutForwardPassOptions &options)
      : entry(entry), chunks(options.chunks), named(options.cuts),
        options(options) {}

  LogicalResult run() {
    findSpine();
    if (failed(named.empty() ? choosePlaces() : takeNamedPlaces()))
      return failure();
    if (cost::isAskedForDecisions(entry->getParentOfType<ModuleOp>()))
      tellCuts(entry, spine, measure(), getCopies(), ends, !named.empty());
    placeStates();
    cut();
    return success();
  }

private:
  void findSpine();
  LogicalResult takeNamedPlaces();
  llvm::DenseMap<Operation *, std::string> findRecomputed() const;
  Row measure();
  std::vector<Row::Place> findPlaces();
  /// Of each chunk.
  SmallVector<double> getCopies() {
    SmallVector<double> copies(options.copies);
    copies.resize(chunks, 1);
    return copies;
  }
  LogicalResult choosePlaces();
  void placeStates();
  void cut();
  Value bring(Value value, int64_t to, OpBuilder &builder);
  bool isOnSpine(Value value) const {
    return value.getDefiningOp() && number.contains(value.getDefiningOp());
  }

  func::FuncOp entry;
  nn::ArgumentStates states{entry};
  int64_t chunks;
  ArrayRef<std::string> named; ///< where the chunks but the first begin
  const CutForwardPassOptions &options;
  SmallVector<Operation *> spine; ///< what depends on inputs and states
  llvm::DenseMap<Operation *, size_t> number; ///< of spine
  llvm::DenseSet<Value> onStates;             ///< of states alone
  std::vector<size_t> ends;                   ///< of chunks, but the last
  llvm::DenseMap<Value, int64_t> homes;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> brought;
};
} // namespace

void Cutter::findSpine() {
  // What nothing reads is no chunk's work.
  llvm::DenseSet<Operation *> read = {entry.front().getTerminator()};
  for (Operation &op : llvm::reverse(entry.front().without_terminator()))
    if (llvm::any_of(op.getUsers(),
                     [&](Operation *user) { return read.contains(user); }))
      read.insert(&op);
  llvm::DenseSet<Value> onInputs;
  for (BlockArgument argument : entry.getArguments())
    (states.find(argument) ? onStates : onInputs).insert(argument);
  for (Operation &op : entry.front().without_terminator()) {
    bool input = false, state = false;
    for (Value operand : op.getOperands()) {
      input |= onInputs.contains(operand) || isOnSpine(operand);
      state |= onStates.contains(operand) || isOnSpine(operand);
    }
    if (input && state && read.contains(&op)) {
      number[&op] = spine.size();
      spine.push_back(&op);
    } else if (input != state) {
      (input ? onInputs : onStates).insert(op.result_begin(), op.result_end());
    }
  }
}

/// Each before the op that is named.
LogicalResult Cutter::takeNamedPlaces() {
  if (int64_t(named.size()) != chunks - 1)
    return entry.emitError()
           << "expected " << chunks - 1 << " --cut for " << chunks
           << (chunks == 1 ? " chunk (a mesh with pp has several)" : " chunks")
           << ", found " << named.size();
  CutNames names(entry);
  for (auto [index, name] : llvm::enumerate(named)) {
    FailureOr<Operation *> op =
        names.find(name, [&](Operation *op) { return number.contains(op); });
    if (failed(op))
      return failure();
    size_t place = number.lookup(*op), last = ends.empty() ? 0 : ends.back();
    if (place < last)
      return (*op)->emitError() << "expected '" << named[index - 1]
                                << "' of --cut, which is behind '" << name
                                << "', after it: cuts are named in their order";
    if (place == last && ends.empty())
      return (*op)->emitError()
             << "expected '" << name
             << "' of --cut behind the model's first op: no chunk is empty";
    if (place == last)
      return (*op)->emitError()
             << "expected '" << named[index - 1] << "' and '" << name
             << "' of --cut at different ops: no chunk is empty";
    ends.push_back(place);
  }
  return success();
}

/// Between two ops of the spine. Of a long one, only where no fewer bytes cross
/// right before or behind: the choice is quadratic in the number of places.
std::vector<Row::Place> Cutter::findPlaces() {
  std::vector<Row::Place> places;
  SmallVector<int64_t> crossing(spine.size() + 1), messages(crossing);
  for (auto [index, op] : llvm::enumerate(spine))
    for (Value result : op->getResults()) {
      size_t last = index;
      for (Operation *user : result.getUsers())
        if (auto found = number.find(user); found != number.end())
          last = std::max(last, found->second);
      if (last == index)
        continue;
      crossing[index + 1] += getBytes(result);
      crossing[last + 1] -= getBytes(result);
      ++messages[index + 1];
      --messages[last + 1];
    }
  for (size_t place = 1; place < crossing.size(); ++place) {
    crossing[place] += crossing[place - 1];
    messages[place] += messages[place - 1];
  }
  for (size_t place = 1; place < spine.size(); ++place) {
    bool fallsBefore = place == 1 || crossing[place] < crossing[place - 1];
    size_t next = place + 1;
    while (next < spine.size() && crossing[next] == crossing[place])
      ++next;
    bool rises = next == spine.size() || crossing[next] > crossing[place];
    if (spine.size() <= kFewOps || (fallsBefore && rises))
      places.push_back({place, kFlopsPerByteSent * crossing[place] +
                                   kFlopsPerMessage * messages[place]});
  }
  return places;
}

/// Of ops that the backward computes again, with which module.
llvm::DenseMap<Operation *, std::string> Cutter::findRecomputed() const {
  llvm::DenseMap<Operation *, std::string> again;
  auto policy = RecomputePolicy::parse(options.recompute);
  if (!policy) { // whoever marks ops says so
    llvm::consumeError(policy.takeError());
    return again;
  }
  for (Operation *op : spine) {
    auto modules = listModules(op->getLoc());
    if (StringRef module = policy->findModule(modules); !module.empty())
      again[op] = module.str();
  }
  return again;
}

/// A state lies with the first op that reads it, or what is made of it.
Row Cutter::measure() {
  Row row;
  row.places = findPlaces();
  BackwardWork backward;
  if (options.trained)
    backward = measureBackward(entry);
  llvm::DenseMap<Operation *, std::string> again = findRecomputed();
  llvm::DenseSet<Value> seen;
  double work = 0, states = 0, kept = 0;
  std::vector<double> forward; ///< the work without the backward's
  auto add = [&] {
    row.work.push_back(work);
    row.states.push_back(states);
    row.kept.push_back(kept);
  };
  forward.push_back(0);
  for (Operation *op : spine) {
    add();
    auto segment = again.find(op);
    bool isAgain = segment != again.end() && backward.work.contains(op);
    work += getWork(op) * (isAgain ? 2 : 1) + backward.work.lookup(op);
    forward.push_back(forward.back() + getWork(op));
    // Of what is computed again only what others read stays.
    auto isRead = [&](Value result) {
      return !isAgain || llvm::any_of(result.getUsers(), [&](Operation *user) {
        auto other = again.find(user);
        return other == again.end() || other->second != segment->second;
      });
    };
    for (Value result : op->getResults())
      if (backward.kept.contains(result) && isRead(result))
        kept += getBytes(result);
    SmallVector<Value> read(op->getOperands());
    while (!read.empty()) {
      Value value = read.pop_back_val();
      if (!onStates.contains(value) || !seen.insert(value).second)
        continue;
      if (Operation *maker = value.getDefiningOp())
        llvm::append_range(read, maker->getOperands());
      else
        states +=
            getBytes(value) *
            (options.trained &&
                     isTrained(this->states.find(cast<BlockArgument>(value)))
                 ? options.stateCopies
                 : 1);
    }
  }
  add();
  // A chunk of views alone would have no task: they are made where they are
  // read. Between two ops that compute there is one place, the cheapest.
  std::vector<Row::Place> places;
  for (const Row::Place &place : row.places) {
    double before = forward[place.at];
    if (before == 0 || before == forward.back())
      continue;
    if (places.empty() || forward[places.back().at] != before)
      places.push_back(place);
    else if (place.sent < places.back().sent)
      places.back() = place;
  }
  row.places = std::move(places);
  return row;
}

LogicalResult Cutter::choosePlaces() {
  Row row = measure();
  auto found = balance(row, getCopies());
  if (!found)
    return entry.emitError() << "expected at least " << chunks - 1
                             << " places to cut the model into " << chunks
                             << " chunks, found " << row.places.size()
                             << ": take fewer stages, or fewer chunks on each";
  ends = std::move(*found);
  return success();
}

/// States, and what is made of them alone, lie with the first that reads them.
void Cutter::placeStates() {
  int64_t chunk = 0;
  for (auto [index, op] : llvm::enumerate(spine)) {
    while (chunk < chunks - 1 && index >= ends[chunk])
      ++chunk;
    for (Value result : op->getResults())
      homes[result] = chunk;
  }
  auto findFirst = [&](Value value) {
    int64_t first = chunks - 1;
    bool isRead = false;
    for (Operation *user : value.getUsers())
      for (Value result : user->getResults())
        if (auto home = homes.find(result); home != homes.end()) {
          first = std::min(first, home->second);
          isRead = true;
        }
    return isRead ? first : 0;
  };
  for (Operation &op : llvm::reverse(entry.front().without_terminator()))
    if (op.getNumResults() > 0 && onStates.contains(op.getResult(0))) {
      int64_t first = chunks - 1;
      for (Value result : op.getResults())
        first = std::min(first, findFirst(result));
      for (Value result : op.getResults())
        homes[result] = first;
    }
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  for (BlockArgument argument : entry.getArguments()) {
    auto name = entry.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (!name)
      continue;
    homes[argument] = findFirst(argument);
    symbols.lookup<nn::StateOp>(name.getAttr()).setChunk(homes[argument]);
  }
}

/// The value as the chunk `to` has it.
Value Cutter::bring(Value value, int64_t to, OpBuilder &builder) {
  auto home = homes.find(value);
  if (home == homes.end() || home->second == to)
    return value;
  int64_t from = home->second;
  if (Value known = brought.lookup({value, to}))
    return known;
  Operation *op = value.getDefiningOp();
  bool isWider = isa_and_present<nn::BroadcastOp, nn::CastOp>(op) &&
                 getBytes(op->getOperand(0)) < getBytes(value);
  Value made;
  if (isWider) {
    IRMapping mapping;
    mapping.map(op->getOperand(0), bring(op->getOperand(0), to, builder));
    made = builder.clone(*op, mapping)->getResult(0);
  } else {
    made = nn::CutOp::create(builder, value.getLoc(), value, from, to);
  }
  homes[made] = to;
  brought[{value, to}] = made;
  return made;
}

void Cutter::cut() {
  for (Operation &op :
       llvm::make_early_inc_range(entry.front().without_terminator())) {
    if (op.getNumResults() == 0 || !homes.contains(op.getResult(0)))
      continue;
    OpBuilder builder(&op);
    int64_t home = homes.lookup(op.getResult(0));
    for (OpOperand &operand : op.getOpOperands())
      operand.set(bring(operand.get(), home, builder));
  }
}

namespace {
struct CutForwardPass : impl::CutForwardPassBase<CutForwardPass> {
  using Base::Base;

  void runOnOperation() override {
    if (chunks == 1 && cuts.empty())
      return;
    func::FuncOp entry = nn::findEntry(getOperation(), nn::EntryKind::forward);
    if (!entry) {
      getOperation().emitError() << "expected a forward entry, found none";
      return signalPassFailure();
    }
    CutForwardPassOptions options{
        chunks,  llvm::to_vector(cuts),   recompute,
        trained, llvm::to_vector(copies), stateCopies};
    if (failed(Cutter(entry, options).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace accel::stages
