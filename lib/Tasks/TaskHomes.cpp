// Deals the ops of a step out to tasks, by what they depend on and what depends
// on them: no op carries a mark that a rewrite could lose.

#include "TaskHomes.h"
#include "dialects/Accel/Reports.h"

#include "dialects/Dist/LossChunks.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/Update.h"

using namespace mlir;
using namespace accel;
using namespace accel::tasks;

static constexpr StringLiteral kMicroBatch = dist::MeshOp::kMicroBatchAxis;

bool TaskHomes::isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || op->getNumOperands() == 0 ||
         isa<dist::AllSliceOp>(op) || isView(op);
}

FailureOr<TaskHomes> TaskHomes::compute(func::FuncOp entry, dist::MeshOp mesh) {
  FailureOr<nn::Chunks> chunks = nn::Chunks::compute(entry);
  if (failed(chunks))
    return failure();
  TaskHomes result(entry, mesh, std::move(*chunks));
  result.microBatches = mesh.findAxisSize(kMicroBatch).value_or(1);
  result.findUpdate();
  if (failed(result.findVarying()))
    return failure();
  result.placeRepeated();
  result.findForward();
  result.placeInvariants();
  if (failed(result.placeReductions()))
    return failure();
  result.findLive();
  result.findRounds();
  return result;
}

/// How many rows of what is gathered a view makes one of; 1 where it leaves
/// them as they are.
static int64_t countGroup(dist::AllGatherOp gather, nn::ReshapeOp view) {
  ArrayRef<int64_t> from = gather.getType().getShape();
  ArrayRef<int64_t> to = view.getType().getShape();
  int64_t dim = gather.getDim(), rows = from[dim];
  int64_t outer = ShapedType::getNumElements(from.take_front(dim)), before = 1;
  for (int64_t size : to) {
    if (before == outer && size != 1)
      return size != 0 && rows % size == 0 ? rows / size : 1;
    before *= size;
  }
  return 1;
}

/// The input of micro-batches that a value is made of, its name; empty if there
/// are several.
static StringRef findInput(Value value) {
  llvm::SetVector<Value> values;
  values.insert(value);
  StringRef name;
  for (size_t next = 0; next < values.size(); ++next) {
    if (Operation *op = values[next].getDefiningOp()) {
      values.insert_range(op->getOperands());
      continue;
    }
    auto argument = cast<BlockArgument>(values[next]);
    auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto input = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                    nn::kInputAttr);
    if (!input)
      continue;
    if (!name.empty())
      return {};
    name = input;
  }
  return name;
}

/// What there is to do about an op that brings the samples of all micro-batches
/// together, by what takes them from there.
static std::string getWayOut(Operation *collective) {
  auto gather = dyn_cast<dist::AllGatherOp>(collective);
  SmallVector<Operation *> work{collective};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (isa<nn::SliceOp>(user))
        return "expected a slice to take rows that a micro-batch has: let "
               "those of a group follow each other (x.view(-1, n), x[k::n]) "
               "and a micro-batch hold whole groups, and cut sequences along "
               "their own dimension (h.chunk(n, 1)), not as rows";
      auto lookup = dyn_cast<nn::GatherOp>(user);
      if (lookup && lookup.getTable().getDefiningOp() == op)
        if (StringRef input = findInput(lookup.getTable()); !input.empty())
          return ("expected rows that are looked up to be there for all "
                  "samples: --batch-dim " +
                  input + "=none, if the rows of input '" + input +
                  "' are no samples")
              .str();
      if (isa<nn::CumsumOp>(user))
        return "expected nothing to go by what is chosen in samples before, "
               "as rows do that a mask gives places in turn: let each sample "
               "have its own (torch.where, torch.gather along the sequence)";
      if (isa<nn::ConcatOp>(user))
        return "expected rows that are joined to follow each other in each "
               "micro-batch: write torch.stack((a, b), 1).flatten(0, 1) in the "
               "place of torch.cat((a, b)), and take them apart by x[0::2], "
               "x[1::2]";
      auto view = dyn_cast<nn::ReshapeOp>(user);
      int64_t group =
          view && op == collective && gather ? countGroup(gather, view) : 1;
      if (group > 1 && llvm::none_of(view->getUsers(), [](Operation *taker) {
            return isa<nn::SliceOp>(taker);
          }))
        return ("expected the rows of a micro-batch on a rank to be whole "
                "groups: " +
                Twine(group) + " that follow each other, or a multiple")
            .str();
      if (TaskHomes::isFree(user))
        work.push_back(user);
    }
  }
  return {};
}

LogicalResult TaskHomes::refuse(Operation *op, const Twine &why,
                                StringRef wayOut) const {
  return op->emitError()
         << why << "; "
         << (wayOut.empty()
                 ? "expected a loss that is a sum over samples, or such a "
                   "sum divided by a count of the data: write it so"
                 : wayOut)
         << ", or use one micro-batch instead of " << microBatches;
}

Home TaskHomes::getHome(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && !isFree(op) ? homes.lookup(op) : Home::Update;
}

bool TaskHomes::isWidenedAgain(Operation *op, Home reader) const {
  auto cast = dyn_cast<nn::CastOp>(op);
  Home home = homes.lookup(op);
  if (!cast || !isBackward(reader) ||
      (home != Home::Forward && home != Home::BackwardInput) || home == reader)
    return false;
  auto from = dyn_cast<FloatType>(cast.getInput().getType().getElementType());
  auto to = dyn_cast<FloatType>(cast.getType().getElementType());
  return from && to && from.getWidth() < to.getWidth();
}

/// Everything after a finished gradient.
void TaskHomes::findUpdate() {
  for (Operation *op : nn::getUpdateOps(entry))
    homes[op] = Home::Update;
}

/// With one micro-batch, what depends on the inputs counts as differing: tasks
/// are the same for any number.
LogicalResult TaskHomes::findVarying() {
  for (BlockArgument argument : entry.getArguments())
    if (entry.getArgAttr(argument.getArgNumber(), nn::kInputAttr)) {
      bool splits = microBatches == 1;
      if (auto layout = entry.getArgAttrOfType<dist::LayoutAttr>(
              argument.getArgNumber(), dist::kLayoutAttr))
        for (dist::AxesAttr axes : layout.getDims())
          splits |= axes.contains(kMicroBatch);
      if (splits)
        varying.insert(argument);
    }
  for (Operation &op : entry.front().without_terminator()) {
    // What is computed again is so where the backward comes to it, also what is
    // drawn, of coordinates alone; but once, if it is once for micro-batches.
    bool differs = (microBatches == 1 && op.hasAttr(dist::kRecomputedAttr)) ||
                   llvm::any_of(op.getOperands(), [&](Value value) {
                     return varying.contains(value);
                   });
    bool repeats = op.hasAttr(dist::kInstanceAttr) ||
                   llvm::any_of(op.getOperands(), [&](Value value) {
                     return repeated.contains(value.getDefiningOp());
                   });
    if (auto sum = dyn_cast<dist::AccumulateOp>(op)) {
      reductions[&op] = {sum, Home::Backward, Home::Update};
      continue;
    }
    auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
    if (collective && collective.getAxes().contains(kMicroBatch)) {
      if (!isa<dist::AllSliceOp, dist::AxisIndexOp>(op))
        return refuse(&op,
                      "needs the samples of all micro-batches at once, which "
                      "run one after another",
                      getWayOut(&op));
      differs = true;
    }
    if (!differs) {
      if (repeats)
        repeated.insert(&op);
      continue;
    }
    if (homes.count(&op)) {
      if (microBatches == 1 || isa<nn::GradientOp>(op))
        continue; // reduced already, or the only one
      Value single = *llvm::find_if(op.getOperands(), [&](Value value) {
        return varying.contains(value);
      });
      Operation *source = single.getDefiningOp();
      return refuse(source ? source : &op,
                    "is of a single micro-batch, and the update, which runs "
                    "once for all, reads it");
    }
    varying.insert(op.result_begin(), op.result_end());
    homes[&op] = Home::Backward;
  }
  return success();
}

/// What is gathered in each micro-batch, because it is not kept, belongs to the
/// loop only where the loop reads it: a term of weights alone does not.
void TaskHomes::placeRepeated() {
  DenseSet<Operation *> read; // by what differs, directly or through others
  for (Operation &op : llvm::reverse(entry.front().without_terminator())) {
    bool isRead = llvm::any_of(op.getUsers(), [&](Operation *user) {
      return read.contains(user) ||
             llvm::any_of(user->getResults(), [&](Value result) {
               return varying.contains(result);
             });
    });
    if (isRead && !homes.count(&op))
      read.insert(&op);
    if (isRead && repeated.contains(&op) && !homes.count(&op))
      homes[&op] = Home::Backward;
  }
}

/// The forward is what the outputs need; what else differs between
/// micro-batches stays with the backward.
void TaskHomes::findForward() {
  bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
  SmallVector<Value> work;
  auto exit = cast<func::ReturnOp>(entry.front().getTerminator());
  // What measures a step may be of its backward.
  for (OpOperand &result : exit->getOpOperands())
    if (auto name = entry.getResultAttrOfType<StringAttr>(
            result.getOperandNumber(), nn::kOutputAttr);
        name && !name.getValue().starts_with(kMetricPrefix))
      work.push_back(result.get());
  DenseSet<Operation *> seen, reported;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    auto home = homes.find(op);
    if (home != homes.end() && home->second == Home::Update)
      continue;
    // Of a chunk of a loss the logits are there once, for the backward.
    bool isOfBackward = isStep && op->hasAttr(dist::kLossChunkAttr);
    if (home != homes.end() && !isOfBackward)
      home->second = Home::Forward;
    llvm::append_range(work, op->getOperands());
  }
  // What a later chunk reports is taken to the first when all is done, and so
  // is what is made of it there.
  for (Operation &op : entry.front().without_terminator()) {
    auto home = homes.find(&op);
    if (home == homes.end() || home->second != Home::Forward)
      continue;
    auto cut = dyn_cast<nn::CutOp>(op);
    bool isOfReport = llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *made = skipFree(operand).getDefiningOp();
      return reported.contains(made);
    });
    if (!isOfReport && !(cut && cut.getTo() < cut.getFrom()))
      continue;
    home->second = Home::Update;
    reported.insert(&op);
  }
  // Then its loss, and what is made of it, comes with them.
  for (Operation &op : entry.front().without_terminator())
    if (auto home = homes.find(&op);
        home != homes.end() && home->second == Home::Forward &&
        llvm::any_of(op.getOperands(), [&](Value operand) {
          return getHome(skipFree(operand)) == Home::Backward;
        }))
      home->second = Home::Backward;
  placeStatistics();
  // So is what is made for the update alone, but for gradients: whether the
  // loss is finite is asked after the last backward, and no backward waits for
  // it.
  for (Operation &op : llvm::reverse(entry.front().without_terminator()))
    if (auto home = homes.find(&op);
        home != homes.end() && home->second == Home::Backward &&
        !op.hasAttr(dist::kLossChunkAttr) && !op.use_empty() &&
        llvm::all_of(op.getUsers(), [&](Operation *user) {
          return homes.lookup(user) == Home::Update &&
                 !isa<nn::GradientOp, dist::AccumulateOp>(user);
        }))
      home->second = Home::Update;
  // What the backward of a later chunk alone reads comes there with the
  // forward.
  for (auto cut : entry.front().getOps<nn::CutOp>())
    if (auto home = homes.find(cut); home != homes.end())
      if (Operation *op = skipFree(cut.getInput()).getDefiningOp();
          op && home->second == Home::Backward &&
          homes.lookup(op) == Home::Forward && cut.getFrom() < cut.getTo())
        home->second = Home::Forward;
}

/// What no gradient is made of, and the forward has all of: a mean of
/// activations, their largest element. In the backward it would keep them for
/// itself. What is made of numbers alone can wait for the update; so does a
/// state's new value, which the backward may still read the old one of, unless
/// it is itself what is kept in the place of more.
void TaskHomes::placeStatistics() {
  DenseSet<Operation *> forGradients;
  SmallVector<Operation *> work;
  for (auto gradient : entry.front().getOps<nn::GradientOp>())
    work.push_back(gradient);
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *op = operand.getDefiningOp();
          op && forGradients.insert(op).second)
        work.push_back(op);
  auto isThere = [&](Value operand) {
    Operation *op = skipFree(operand).getDefiningOp();
    auto home = homes.find(op);
    return home == homes.end() || home->second == Home::Forward;
  };
  auto count = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  };
  for (Operation &op : entry.front().without_terminator()) {
    auto home = homes.find(&op);
    if (home == homes.end() || home->second != Home::Backward ||
        isa<nn::CutOp>(op) || forGradients.contains(&op) ||
        !llvm::all_of(op.getOperands(), isThere))
      continue;
    int64_t most = 0;
    for (Value operand : op.getOperands())
      most = std::max(most, count(operand));
    bool isResult = llvm::any_of(op.getUsers(), llvm::IsaPred<func::ReturnOp>);
    if (most > 1 && !(isResult && count(op.getResult(0)) >= most))
      home->second = Home::Forward;
    else if (isResult)
      home->second = Home::Update;
  }
}

/// What is the same for all micro-batches is computed once: before the loop if
/// the loop needs it, be it only to add it up.
void TaskHomes::placeInvariants() {
  auto isInLoop = [&](Operation *user) {
    if (reductions.count(user))
      return true;
    auto home = homes.find(user);
    return home != homes.end() && home->second != Home::Update;
  };
  DenseSet<Operation *> needed; // by the loop, directly or through others
  DenseMap<Operation *, Home> once;
  for (Operation &op : llvm::reverse(entry.front().without_terminator())) {
    if (llvm::any_of(op.getUsers(), [&](Operation *user) {
          return needed.contains(user) || isInLoop(user);
        }))
      needed.insert(&op);
    if (!homes.count(&op))
      once[&op] = !needed.contains(&op) ? Home::Update
                  : microBatches == 1   ? Home::Forward
                                        : Home::Prepare;
  }
  for (auto [op, home] : once)
    homes[op] = home;
  // With one micro-batch: the forward of a chunk waits for no later one's. What
  // comes back from there (the gradient of a term of weights alone) the
  // backward has.
  for (Operation &op : entry.front().without_terminator()) {
    auto cut = dyn_cast<nn::CutOp>(op);
    bool comesBack = cut && cut.getTo() < cut.getFrom();
    if (once.lookup(&op) == Home::Forward &&
        (comesBack || llvm::any_of(op.getOperands(), [&](Value operand) {
           return getHome(skipFree(operand)) == Home::Backward;
         })))
      homes[&op] = Home::Backward;
  }
}

/// A sum that the loop reads is counted before the loop, from inputs alone.
LogicalResult TaskHomes::placeReductions() {
  for (auto &[op, reduction] : reductions) {
    Value term = reduction.op.getInput();
    if (homes.lookup(op) == Home::Update) {
      bool isForward = getHome(skipFree(term)) == Home::Forward;
      reduction.adds = isForward ? Home::Forward : Home::Backward;
      continue;
    }
    reduction.adds = Home::Count;
    reduction.reads = Home::Prepare;
    SmallVector<Value> work{term};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        auto state = entry.getArgAttrOfType<FlatSymbolRefAttr>(
            argument.getArgNumber(), nn::kStateAttr);
        if (state)
          return refuse(op,
                        "is not additive over the batch: its " +
                            dist::stringifyReduction(reduction.op.getKind()) +
                            " over all micro-batches is needed before the "
                            "backward can begin, and depends on @" +
                            state.getValue());
        continue;
      }
      Operation *definition = value.getDefiningOp();
      if (isa<nn::CutOp>(definition))
        return refuse(op, "needs its " +
                              dist::stringifyReduction(reduction.op.getKind()) +
                              " over all micro-batches before the backward can "
                              "begin, of what another chunk makes");
      if (reductions.count(definition))
        return refuse(op, "needs a sum over all micro-batches of what itself "
                          "needs such a sum");
      if (counted.insert(definition).second)
        llvm::append_range(work, definition->getOperands());
    }
  }
  return success();
}

void TaskHomes::findLive() {
  SmallVector<Value> work(entry.front().getTerminator()->getOperands());
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !live.insert(op).second)
      continue;
    auto reduction = reductions.find(op);
    if (reduction == reductions.end() || reduction->second.adds != Home::Count)
      llvm::append_range(work, op->getOperands());
  }
}
