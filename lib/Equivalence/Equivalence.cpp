// Walks one rank's tasks in the order in which they run: what arguments hold,
// what results must hold, and what a schedule may do.

#include "Equivalence.h"

#include "States.h"
#include "Verifier.h"
#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

static std::string quote(StringRef kind, StringRef name) {
  return (kind + " '" + name + "'").str();
}

bool Verifier::varies(const Piece &piece) {
  return llvm::is_contained(piece.partial, microBatch) ||
         llvm::any_of(piece.dims, [&](const Dim &dim) {
           return llvm::is_contained(dim.axes, microBatch);
         });
}

bool Verifier::varies(const Known &what) {
  auto any = [&](const std::vector<Piece> &pieces) {
    return llvm::any_of(pieces,
                        [&](const Piece &piece) { return varies(piece); });
  };
  return (what.formula && what.pieces.empty() &&
          !follower.getOffset(what.formula)) ||
         !what.dealt.empty() || !what.portions.empty() || any(what.pieces) ||
         llvm::any_of(what.terms, any) ||
         llvm::any_of(what.turned,
                      [&](const Turned &each) { return varies(each.piece); }) ||
         llvm::any_of(what.views, [&](const View &view) {
           return llvm::is_contained(view.partial, microBatch) ||
                  llvm::any_of(view.ranks, [&](const auto &rank) {
                    return rank.first == microBatch;
                  });
         });
}

/// What is a sum over micro-batches; verifyStates has compared the others.
void Verifier::readStates() {
  for (auto state : local.getOps<nn::StateOp>()) {
    heldShapes[state.getSymName()] =
        cast<ShapedType>(state.getType()).getShape();
    if (state.getRole() == nn::StateRole::residual)
      residuals.insert(state.getSymName());
    if (state.getRole() == nn::StateRole::accumulator)
      accumulators[state.getSymNameAttr()].state = state;
  }
}

/// What the entry says that the program takes and gives, its tasks must.
LogicalResult Verifier::readEntry() {
  auto check = [&](StringRef kind, StringAttr name, StringAttr state,
                   dist::LayoutAttr layout) -> LogicalResult {
    if (!name && !state)
      return entry.emitError() << "expected an " << kind
                               << " with a name, or a state, found neither";
    return checkLayout(entry.getLoc(), name ? kind : "state",
                       name ? name : state, layout);
  };
  for (unsigned number = 0; number < entry.getNumArguments(); ++number)
    if (failed(check("input",
                     entry.getArgAttrOfType<StringAttr>(number, nn::kInputAttr),
                     getState(entry, number),
                     entry.getArgAttrOfType<dist::LayoutAttr>(
                         number, dist::kLayoutAttr))))
      return failure();
  for (unsigned number = 0; number < entry.getNumResults(); ++number)
    if (failed(check(
            "output",
            entry.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr),
            getNewState(entry, number),
            entry.getResultAttrOfType<dist::LayoutAttr>(number,
                                                        dist::kLayoutAttr))))
      return failure();
  return success();
}

/// A task runs once, or once for each micro-batch. What follows from one turn
/// to the next, two turns show.
LogicalResult Verifier::checkRuns() {
  if (failed(order.verify()))
    return failure();
  if (!llvm::hasSingleElement(schedule.getOps<dist::StageOp>())) {
    FailureOr<std::vector<StringAttr>> all = order.listAll();
    if (failed(all))
      return failure();
    for (StringAttr task : *all)
      runs.push_back(symbols.lookup<func::FuncOp>(task));
    return success();
  }
  auto add = [&](dist::RunOp op) {
    runs.push_back(symbols.lookup<func::FuncOp>(op.getTaskAttr().getAttr()));
  };
  schedule.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<dist::LoopOp>(op)) {
      for (int64_t turn = 0; turn < 2; ++turn)
        for (auto run : loop.getOps<dist::RunOp>())
          add(run);
      return WalkResult::skip();
    }
    if (auto run = dyn_cast<dist::RunOp>(op))
      add(run);
    return WalkResult::advance();
  });
  return success();
}

/// A stage has its states alone: what others need of them takes an edge.
LogicalResult Verifier::checkOwners() {
  llvm::DenseMap<StringAttr, func::FuncOp> owners;
  llvm::SmallSetVector<Operation *, 8> tasks;
  tasks.insert(runs.begin(), runs.end());
  for (Operation *op : tasks) {
    auto task = cast<func::FuncOp>(op);
    auto check = [&](StringAttr state) -> LogicalResult {
      if (!state)
        return success();
      func::FuncOp first = owners.try_emplace(state, task).first->second;
      int64_t stage = order.getStage(task.getSymNameAttr());
      int64_t home = order.getStage(first.getSymNameAttr());
      if (stage == home)
        return success();
      return task.emitOpError() << "of stage " << stage << " takes or gives @"
                                << state.getValue() << ", which is stage "
                                << home << "'s (@" << first.getSymName() << ")";
    };
    for (unsigned number = 0; number < task.getNumArguments(); ++number)
      if (failed(check(getState(task, number))))
        return failure();
    for (unsigned number = 0; number < task.getNumResults(); ++number)
      if (failed(check(getNewState(task, number))))
        return failure();
  }
  return success();
}

/// What an edge carries is there, of the same micro-batch. Once for each pair
/// of tasks that edges connect.
LogicalResult Verifier::checkEdges() {
  llvm::DenseSet<std::pair<Attribute, Attribute>> checked;
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    edges.try_emplace({edge.getTargetAttr(), edge.getArgument()}, edge);
    if (!checked.insert({edge.getSourceAttr(), edge.getTargetAttr()}).second)
      continue;
    if (auto early = order.findBefore(edge.getSourceAttr().getAttr(),
                                      edge.getTargetAttr().getAttr()))
      return edge.emitError()
             << "carries a value that is not made yet, to micro-batch "
             << *early;
  }
  return success();
}

/// A new state is written when no run to come reads the old one.
LogicalResult Verifier::checkWrites() {
  llvm::DenseMap<StringAttr, func::FuncOp> writers;
  for (func::FuncOp task : runs) {
    for (unsigned number = 0; number < task.getNumArguments(); ++number)
      if (StringAttr state = getState(task, number))
        if (func::FuncOp writer = writers.lookup(state))
          return task.emitError()
                 << "reads @" << state.getValue() << " after @"
                 << writer.getSymName() << " has written the next one";
    for (unsigned number = 0; number < task.getNumResults(); ++number)
      if (StringAttr state = getNewState(task, number)) {
        auto sum = accumulators.find(state);
        if (sum == accumulators.end() || sum->second.adds != task)
          writers[state] = task;
      }
  }
  return success();
}

LogicalResult Verifier::checkAllGiven() {
  for (auto &[name, accumulator] : accumulators)
    if (accumulator.adds && !accumulator.reset)
      return accumulator.state.emitOpError()
             << "is not set back after the step";
  auto check = [&](StringRef kind, StringRef name, Value value,
                   Value old) -> LogicalResult {
    if (given.contains(quote(kind, name)) || value == old)
      return success();
    return entry.emitOpError()
           << "has no task that gives " << kind << " '" << name << "'";
  };
  for (auto &each : logical.outputs)
    if (failed(check("output", each.getKey(), each.getValue(), {})))
      return failure();
  for (auto &each : logical.newStates)
    if (failed(check("new state", each.getKey(), each.getValue(),
                     logical.states.lookup(each.getKey()))))
      return failure();
  return success();
}

LogicalResult Verifier::run() {
  readStates();
  if (failed(readEntry()) || failed(checkRuns()) || failed(checkOwners()) ||
      failed(checkEdges()))
    return failure();
  llvm::SmallSetVector<Operation *, 8> tasks;
  tasks.insert(runs.begin(), runs.end());
  for (Operation *op : tasks) {
    auto task = cast<func::FuncOp>(op);
    for (unsigned number = 0; number < task.getNumArguments(); ++number)
      if (failed(bindArgument(task, number)))
        return failure();
    for (Operation &each : task.front().without_terminator())
      if (failed(follower.follow(&each)))
        return failure();
    for (OpOperand &operand : task.front().getTerminator()->getOpOperands())
      if (failed(verifyResult(task, operand)))
        return failure();
  }
  return failure(failed(checkWrites()) || failed(checkAllGiven()));
}

/// All tasks, and the runtime, take one piece for a name.
LogicalResult Verifier::checkLayout(Location loc, StringRef kind,
                                    StringRef name, dist::LayoutAttr layout) {
  dist::LayoutAttr &known =
      kind == "state" ? stateLayouts[name] : layouts[quote(kind, name)];
  if (!layout || (known && known != layout))
    return emitError(loc) << "expected the layout " << known << " for " << kind
                          << " '" << name << "', found " << layout;
  known = layout;
  return checkPadding(loc, kind, name, layout);
}

/// Of what the program takes and gives, states alone are padded, and say so.
LogicalResult Verifier::checkPadding(Location loc, StringRef kind,
                                     StringRef name, dist::LayoutAttr layout) {
  Value value;
  if (kind == "input")
    value = logical.inputs.lookup(name);
  else if (kind == "output")
    value = logical.outputs.lookup(name);
  ArrayRef<int64_t> shape = layout.getShape();
  if (kind == "state") {
    auto held = heldShapes.find(name);
    if (held == heldShapes.end() || held->second == shape)
      return success();
  } else if (!value || shapeOf(value) == shape) {
    return success();
  }
  return emitError(loc) << "expected the layout of all of " << kind << " '"
                        << name << "', found " << layout;
}

/// What is laid out so: of a value that the logical program has in the same
/// order already, a piece as it is.
FailureOr<Piece> Verifier::getPiece(Location loc, StringRef kind,
                                    StringRef name, Value wanted,
                                    dist::LayoutAttr layout) {
  Attribute order;
  if (kind != "input")
    order = (kind == "output" ? logical.outputOrders : logical.stateOrders)
                .lookup(name);
  if (order && order != layout.getInterleaved())
    return emitError(loc) << "expected " << kind << " '" << name
                          << "' in the order " << order
                          << " of the logical program, found " << layout;
  if (kind != "input" && kind != "output" && residuals.contains(name))
    return getTerm(loc, name, wanted, layout);
  Piece piece = follower.getMaker().get(wanted, layout);
  if (order)
    for (Dim &dim : piece.dims) {
      dim.parts = {};
      dim.order = {};
    }
  return piece;
}

/// What ranks keep of a residual is a term each, one after another in its first
/// dimension: the value is their sum.
FailureOr<Piece> Verifier::getTerm(Location loc, StringRef name, Value wanted,
                                   dist::LayoutAttr layout) {
  PieceMaker &maker = follower.getMaker();
  ArrayRef<int64_t> whole = shapeOf(wanted);
  Axes terms = maker.dropUnits(layout.getDims().front().getNames());
  if (whole.size() != layout.getShape().size() || whole.front() != 1 ||
      layout.getShape().front() != maker.countRanks(terms) ||
      !layout.getPartial().empty())
    return emitError(loc) << "expected a term of state '" << name
                          << "' from each rank that has its own, found "
                          << layout;
  Piece piece = maker.get(wanted, layout);
  piece.dims.front() = Dim();
  piece.partial = maker.inOrder(terms);
  return piece;
}

LogicalResult Verifier::bindNamed(func::FuncOp task, unsigned number,
                                  StringRef kind, StringRef name,
                                  Value wanted) {
  BlockArgument argument = task.getArgument(number);
  if (!wanted)
    return task.emitOpError() << "takes " << kind << " '" << name
                              << "', which the logical program does not";
  auto layout =
      task.getArgAttrOfType<dist::LayoutAttr>(number, dist::kLayoutAttr);
  if (failed(checkLayout(argument.getLoc(), kind, name, layout)))
    return failure();
  PieceMaker &maker = follower.getMaker();
  FailureOr<Piece> piece =
      getPiece(argument.getLoc(), kind, name, wanted, layout);
  if (failed(piece))
    return failure();
  if (!maker.fits(*piece, argument.getType()))
    return emitError(argument.getLoc())
           << "expected one rank's shape of " << maker.describe(*piece)
           << ", found " << argument.getType();
  if (microBatches > 1 && !isInLoop(task) && varies(*piece))
    return task.emitOpError() << "runs once, and takes a micro-batch's part of "
                              << kind << " '" << name << "'";
  follower.at(argument).pieces = {*piece};
  return success();
}

LogicalResult Verifier::bindEdge(func::FuncOp task, unsigned number) {
  if (dist::EdgeOp edge = edges.lookup(
          {FlatSymbolRefAttr::get(task.getSymNameAttr()), number})) {
    auto source = symbols.lookup<func::FuncOp>(edge.getSourceAttr().getAttr());
    Known what = follower.at(
        source.front().getTerminator()->getOperand(edge.getResult()));
    if (what.sum)
      return edge.emitError() << "carries a sum that is not finished";
    if (isInLoop(source) && !isInLoop(task) && varies(what))
      return edge.emitError()
             << "carries a value of the last micro-batch alone";
    follower.at(task.getArgument(number)) = what;
    return success();
  }
  return task.emitOpError()
         << "expected an input, a state or an edge for argument " << number;
}

LogicalResult Verifier::bindArgument(func::FuncOp task, unsigned number) {
  if (auto name = task.getArgAttrOfType<StringAttr>(number, nn::kInputAttr))
    return bindNamed(task, number, "input", name, logical.inputs.lookup(name));
  StringAttr state = getState(task, number);
  if (!state)
    return bindEdge(task, number);
  auto sum = accumulators.find(state);
  if (sum == accumulators.end())
    return bindNamed(task, number, "state", state,
                     logical.states.lookup(state));
  if (sum->second.adds)
    return readSum(task, number, sum->second);
  follower.at(task.getArgument(number)).sum = state;
  return success();
}

LogicalResult Verifier::verifyNamed(func::FuncOp task, OpOperand &operand,
                                    StringRef kind, StringRef name,
                                    Value wanted) {
  auto fail = [&]() {
    return emitError(operand.get().getLoc())
           << "result " << operand.getOperandNumber() << " of @"
           << task.getSymName() << ", " << kind << " '" << name << "', ";
  };
  if (!wanted)
    return fail() << "is none of the logical program";
  auto layout = task.getResultAttrOfType<dist::LayoutAttr>(
      operand.getOperandNumber(), dist::kLayoutAttr);
  // What one step leaves is what the next one takes.
  if (failed(checkLayout(operand.get().getLoc(),
                         kind == "new state" ? "state" : kind, name, layout)))
    return failure();
  if (!given.insert(quote(kind, name)).second)
    return fail() << "is given by two tasks";
  PieceMaker &maker = follower.getMaker();
  FailureOr<Piece> laidOut =
      getPiece(operand.get().getLoc(), kind, name, wanted, layout);
  if (failed(laidOut))
    return failure();
  const Piece &expected = *laidOut;
  if (microBatches > 1 && !isInLoop(task) && varies(expected))
    return fail() << "is of one micro-batch alone";
  std::string found;
  for (const Piece &piece : follower.hold(operand.get(), wanted)) {
    bool same = piece.partial == expected.partial && piece.isSum() &&
                maker.fits(expected, operand.get().getType());
    for (auto [mine, theirs] : llvm::zip_equal(piece.dims, expected.dims))
      same &= mine.free || mine.isSplitLike(theirs);
    if (same)
      return success();
    found = maker.describe(piece);
  }
  return fail() << "expected " << maker.describe(expected) << ", found "
                << (found.empty() ? "something else" : found);
}

LogicalResult Verifier::verifyResult(func::FuncOp task, OpOperand &operand) {
  unsigned number = operand.getOperandNumber();
  if (auto name = task.getResultAttrOfType<StringAttr>(number, nn::kOutputAttr))
    return verifyNamed(task, operand, "output", name,
                       logical.outputs.lookup(name));
  StringAttr state = getNewState(task, number);
  if (!state)
    return success(); // along an edge
  auto sum = accumulators.find(state);
  if (sum != accumulators.end())
    return verifySum(task, operand, sum->second);
  return verifyNamed(task, operand, "new state", state,
                     logical.newStates.lookup(state));
}

LogicalResult equivalence::verifyEquivalence(ModuleOp logical, ModuleOp local) {
  dist::MeshOp mesh = dist::MeshOp::of(local);
  dist::MeshOp whole = dist::MeshOp::of(logical);
  // What nothing has placed yet has no mesh.
  if (!mesh || (whole && mesh.getAxes() != whole.getAxes()))
    return local.emitError()
           << "expected a mesh as in the logical program, found "
           << (mesh ? "another" : "none");
  if (local.getOps<dist::ScheduleOp>().empty())
    return local.emitError() << "expected a dist.schedule, found none";
  if (failed(verifyStates(logical, local)) ||
      failed(verifySaid(logical, local)))
    return failure();
  // A state is the same piece to all entries.
  llvm::StringMap<dist::LayoutAttr> stateLayouts;
  llvm::DenseSet<StringAttr> proved;
  for (auto schedule : local.getOps<dist::ScheduleOp>()) {
    auto before = logical.lookupSymbol<func::FuncOp>(schedule.getEntry());
    auto entry = local.lookupSymbol<func::FuncOp>(schedule.getEntry());
    if (!before || before.isExternal() || !entry ||
        nn::getEntryKind(before) != nn::getEntryKind(entry))
      return schedule.emitOpError() << "runs no entry of the logical program";
    int64_t stages = llvm::range_size(schedule.getOps<dist::StageOp>());
    int64_t wanted = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
    if (stages != wanted)
      return schedule.emitOpError()
             << "expected " << wanted << " stages, as the mesh has, found "
             << stages;
    if (failed(
            Verifier(before, local, entry, schedule, mesh, stateLayouts).run()))
      return failure();
    proved.insert(before.getSymNameAttr());
  }
  for (func::FuncOp entry : nn::getEntries(logical))
    if (!proved.contains(entry.getSymNameAttr()))
      return local.emitError()
             << "expected a schedule of entry @" << entry.getSymName()
             << " of the logical program, found none";
  return success();
}
