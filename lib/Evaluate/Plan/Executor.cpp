// Streams, events, collectives and messages of virtual ranks. Collectives and
// messages are rendezvous: they happen when all their parties have arrived.

#include "lib/Evaluate/Plan/Executor.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

LogicalResult PlanExecutor::load() {
  ModuleOp module = world.getModule();
  int64_t count = mesh ? mesh.getRankCount() : 1;
  for (int64_t rank = 0; rank < count; ++rank) {
    MeshPoint point{mesh, rank};
    int64_t stage = point.getAxisSize("pp") ? point.getCoordinate("pp") : 0;
    plan::ProgramOp program;
    for (auto each : module.getOps<plan::ProgramOp>())
      if (static_cast<int64_t>(each.getStage()) == stage)
        program = each;
    if (!program)
      return module.emitError()
             << "expected a plan.program of stage " << stage << ", found none";
    if (static_cast<int64_t>(program.getRanks()) != count)
      return program.emitOpError() << "expected a program of " << count
                                   << " ranks, found " << program.getRanks();
    FailureOr<RankMemory> memory = RankMemory::create(program, point);
    if (failed(memory))
      return failure();
    ranks.push_back({program, std::move(*memory), {}, {}, {}, {}});
  }
  return success();
}

SmallVector<std::string> PlanExecutor::getEntries() {
  SmallVector<std::string> names;
  for (Rank &rank : ranks)
    for (auto entry : rank.program.getOps<plan::EntryOp>())
      if (!llvm::is_contained(names, entry.getKind()))
        names.push_back(entry.getKind().str());
  std::stable_partition(names.begin(), names.end(), [](StringRef name) {
    return name == plan::kLoadEntry;
  });
  return names;
}

LogicalResult PlanExecutor::addStates() {
  for (int64_t index = 0, count = ranks.size(); index < count; ++index) {
    Rank &rank = ranks[index];
    llvm::DenseSet<StringAttr> written;
    plan::RunTurn anyRun;
    rank.program.walk([&](plan::RunOp run) {
      anyRun.run = run;
      if (run->getParentOfType<plan::EntryOp>().getKind() != plan::kLoadEntry)
        rank.program.lookupSymbol<plan::BodyOp>(run.getTask())
            .walk([&](plan::CommandOpInterface command) {
              for (plan::ViewAttr view : command.getWrites())
                written.insert(view.getBuffer().getAttr());
            });
    });
    for (auto buffer : rank.program.getOps<plan::BufferOp>()) {
      if (buffer.getRole() != plan::Role::state || !buffer.getSource() ||
          !buffer.getPart() || !written.contains(buffer.getSymNameAttr()))
        continue;
      auto state =
          world.getModule().lookupSymbol<nn::StateOp>(*buffer.getSource());
      if (!state || state.getRole() == nn::StateRole::accumulator)
        continue; // zero between calls, and nobody's but the rank's own
      auto type = cast<RankedTensorType>(state.getType());
      int64_t elements = buffer.getBytes() /
                         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      MLIRContext *context = buffer.getContext();
      auto view = plan::ViewAttr::get(
          context, FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0, {},
          type.getElementType(), {elements}, {1});
      FailureOr<Tensor> piece = rank.memory.read(buffer, view, anyRun);
      if (failed(piece) ||
          failed(world.addPiece(("@" + *buffer.getSource()).str(),
                                *buffer.getPart(), {mesh, index}, *piece,
                                buffer)))
        return failure();
    }
  }
  return success();
}

/// splitmix64, as everywhere here.
uint64_t PlanExecutor::nextRandom() {
  uint64_t z = random += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// The stream whose commands a group of messages is queued among is that of its
/// first message.
static StringAttr getStream(Operation *op) {
  auto group = dyn_cast<plan::GroupOp>(op);
  bool isEmpty = group && group.getBody().front().empty();
  auto command = dyn_cast<plan::CommandOpInterface>(
      group && !isEmpty ? &group.getBody().front().front() : op);
  return StringAttr::get(op->getContext(),
                         command ? command.getStreamName() : "compute");
}

void PlanExecutor::begin(Rank &rank, plan::EntryOp entry) {
  rank.recorded.clear();
  rank.streams.clear();
  rank.runs.clear();
  if (!entry)
    return;
  rank.runs = plan::listRuns(entry);
  rank.recorders.emplace(rank.runs);
  entry.walk([&](plan::RunOp run) {
    auto body = rank.program.lookupSymbol<plan::BodyOp>(run.getTask());
    for (Operation &op : body.getBody().front())
      rank.streams[getStream(&op)];
  });
}

/// Queues what the next run has for a stream that has done all of the last.
void PlanExecutor::goOn(Rank &rank, StringAttr name, Stream &stream) {
  for (; stream.items.empty() && stream.next < rank.runs.size();
       ++stream.next) {
    plan::RunTurn &run = rank.runs[stream.next];
    auto body = rank.program.lookupSymbol<plan::BodyOp>(run.run.getTask());
    for (Operation &op : body.getBody().front()) {
      if (getStream(&op) != name)
        continue;
      Item &item = stream.items.emplace_back(Item{&op, run, stream.next, {}});
      if (auto group = dyn_cast<plan::GroupOp>(op))
        for (Operation &message : group.getBody().front())
          item.messages.push_back(&message);
      else if (isa<plan::SendOp, plan::RecvOp>(op))
        item.messages.push_back(&op);
    }
  }
}

LogicalResult PlanExecutor::execute(StringRef entry) {
  for (Rank &rank : ranks) {
    plan::EntryOp found;
    for (auto each : rank.program.getOps<plan::EntryOp>())
      if (each.getKind() == entry)
        found = each;
    begin(rank, found);
  }
  while (true) {
    // Streams that have something left, in the order of preference.
    SmallVector<std::pair<int64_t, std::deque<Item> *>> choices;
    for (int64_t index = 0, count = ranks.size(); index < count; ++index)
      for (auto &[name, stream] : ranks[index].streams) {
        goOn(ranks[index], name, stream);
        if (!stream.items.empty())
          choices.push_back({index, &stream.items});
      }
    if (choices.empty())
      return success();
    if (policy == Policy::LastStreamAhead)
      std::reverse(choices.begin(), choices.end());
    if (policy == Policy::Random)
      for (size_t i = choices.size(); i > 1; --i)
        std::swap(choices[i - 1], choices[nextRandom() % i]);
    Outcome outcome = Outcome::Blocked;
    for (auto [rank, stream] : choices) {
      outcome = attempt(rank, *stream);
      if (outcome != Outcome::Blocked)
        break;
    }
    if (outcome == Outcome::Failed)
      return failure();
    if (outcome == Outcome::Blocked)
      return reportDeadlock();
  }
}

LogicalResult PlanExecutor::reportDeadlock() {
  for (auto [index, rank] : llvm::enumerate(ranks))
    for (auto &[name, stream] : rank.streams)
      if (!stream.items.empty())
        return stream.items.front().op->emitOpError()
               << "expected to run some time, found rank " << index
               << " and all others waiting for ever";
  llvm_unreachable("a deadlock without a waiting stream");
}

/// Along an axis; none if it is no axis of ranks, as that of micro-batches is.
std::optional<int64_t> PlanExecutor::countRanks(StringRef axis) {
  return axis == dist::MeshOp::kMicroBatchAxis
             ? std::nullopt
             : MeshPoint{mesh}.getAxisSize(axis);
}

PlanExecutor::Outcome PlanExecutor::finish(int64_t rank,
                                           std::deque<Item> &stream) {
  Item item = std::move(stream.front());
  stream.pop_front();
  return failed(poisonAfter(item.op, item.run, ranks[rank].memory))
             ? Outcome::Failed
             : Outcome::Done;
}

PlanExecutor::Outcome PlanExecutor::attempt(int64_t index,
                                            std::deque<Item> &stream) {
  Rank &rank = ranks[index];
  Item &head = stream.front();
  if (auto record = dyn_cast<plan::RecordOp>(head.op)) {
    rank.recorded.insert({head.number, record.getEventAttr()});
    return finish(index, stream);
  }
  if (auto wait = dyn_cast<plan::WaitOp>(head.op)) {
    auto recorder = rank.recorders->find(wait, head.number);
    return recorder && rank.recorded.contains({*recorder, wait.getEventAttr()})
               ? finish(index, stream)
               : Outcome::Blocked;
  }
  if (isa<plan::CollectiveOp>(head.op))
    return attemptCollective(index, head);
  if (isa<plan::GroupOp, plan::SendOp, plan::RecvOp>(head.op))
    return attemptMessages(index, head);
  if (failed(executeCommand(head.op, head.run, rank.memory, world)))
    return Outcome::Failed;
  return finish(index, stream);
}

std::deque<PlanExecutor::Item> *
PlanExecutor::findHead(int64_t rank, llvm::function_ref<bool(Item &)> matches) {
  for (auto &[name, stream] : ranks[rank].streams)
    if (!stream.items.empty() && matches(stream.items.front()))
      return &stream.items;
  return nullptr;
}

/// Runs when every rank of the group has come to it.
PlanExecutor::Outcome PlanExecutor::attemptCollective(int64_t index,
                                                      Item &head) {
  auto op = cast<plan::CollectiveOp>(head.op);
  SmallVector<StringRef> names;
  for (Attribute axis : op.getAxes()) {
    names.push_back(cast<StringAttr>(axis).getValue());
    if (!countRanks(names.back())) {
      op.emitOpError() << "names no axis of ranks: " << axis;
      return Outcome::Failed;
    }
  }
  SmallVector<int64_t> group =
      mesh.getGroup(index, dist::AxesAttr::get(op.getContext(), names));
  SmallVector<Member> members;
  SmallVector<std::deque<Item> *> streams;
  for (int64_t member : group) {
    Rank &rank = ranks[member];
    std::deque<Item> *stream = findHead(member, [&](Item &item) {
      auto other = dyn_cast<plan::CollectiveOp>(item.op);
      if (rank.program == ranks[index].program)
        return item.op == head.op && item.number == head.number;
      return other && other.getCollective() == op.getCollective() &&
             other.getAxes() == op.getAxes() &&
             other.getInputs().size() == op.getInputs().size();
    });
    if (!stream)
      return Outcome::Blocked;
    Item &item = stream->front();
    members.push_back(
        {cast<plan::CollectiveOp>(item.op), item.run, &rank.memory});
    streams.push_back(stream);
  }
  if (failed(executeCollective(members)))
    return Outcome::Failed;
  Outcome outcome = Outcome::Done;
  for (auto [member, stream] : llvm::zip(group, streams))
    if (finish(member, *stream) == Outcome::Failed)
      outcome = Outcome::Failed;
  return outcome;
}

/// Exchanges one message of the head with a posted partner; the head ends when
/// all its messages are exchanged.
PlanExecutor::Outcome PlanExecutor::attemptMessages(int64_t index, Item &head) {
  for (size_t position = 0; position < head.messages.size(); ++position) {
    Operation *message = head.messages[position];
    auto send = dyn_cast<plan::SendOp>(message);
    if (!send)
      continue; // the sender's side starts the exchange
    std::optional<int64_t> size = countRanks(send.getAxis());
    int64_t target = -1;
    int64_t coordinate = size ? mesh.getCoordinate(index, send.getAxis()) +
                                    static_cast<int64_t>(send.getDelta())
                              : -1;
    if (coordinate < 0 || coordinate >= *size) {
      message->emitOpError() << "sends to no rank from rank " << index;
      return Outcome::Failed;
    }
    target =
        mesh.getGroup(index, dist::AxesAttr::get(message->getContext(),
                                                 {send.getAxis()}))[coordinate];
    size_t found = 0;
    std::deque<Item> *partner = findHead(target, [&](Item &item) {
      for (found = 0; found < item.messages.size(); ++found)
        if (auto recv = dyn_cast<plan::RecvOp>(item.messages[found]))
          if (recv.getAxis() == send.getAxis() &&
              recv.getTag() == send.getTag() &&
              -static_cast<int64_t>(recv.getDelta()) ==
                  static_cast<int64_t>(send.getDelta()))
            return true;
      return false;
    });
    if (!partner)
      continue;
    Item &other = partner->front();
    auto recv = cast<plan::RecvOp>(other.messages[found]);
    FailureOr<Tensor> tensor =
        ranks[index].memory.read(send, send.getView(), head.run);
    if (failed(tensor) || failed(ranks[target].memory.write(
                              recv, recv.getView(), other.run, *tensor)))
      return Outcome::Failed;
    // Either side's stream may end here; this head's is popped by its address.
    head.messages.erase(head.messages.begin() + position);
    other.messages.erase(other.messages.begin() + found);
    Outcome outcome = Outcome::Done;
    if (other.messages.empty())
      outcome = finish(target, *partner);
    if (outcome == Outcome::Done && head.messages.empty())
      outcome = finish(
          index, *findHead(index, [&](Item &item) { return &item == &head; }));
    return outcome;
  }
  return Outcome::Blocked;
}
