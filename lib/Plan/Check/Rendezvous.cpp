// Streams as queues of what may hold them up: records, waits and messages, and
// what stands in one of the target's queues before these.

#include "Rendezvous.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Plan/RunList.h"
#include "lib/Plan/BufferTable.h"
#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
/// A message from a stage to another one.
struct Message {
  Operation *op;
  bool sends;
  int64_t peer, tag;
  ViewAttr view;
};

/// A record, a wait, messages that are posted together, or, where the target
/// has queues, a collective.
struct Item {
  Operation *op;
  size_t run;                        ///< its number, a turn counting as one
  SmallVector<Message, 2> open = {}; ///< not passed on yet
  /// Of the target's queues, and its place there; -1: it stands in none.
  int64_t queue = -1, place = -1;

  bool isMet() const { return open.empty(); }
};

struct Stream {
  std::vector<Item> items;
  size_t next = 0;
  bool hasEnded() const { return next == items.size(); }
  Item &head() { return items[next]; }
};

struct Queue {
  int64_t length = 0, served = 0;
};

struct Stage {
  std::optional<Recorders> recorders;
  llvm::MapVector<StringAttr, Stream> streams;
  std::map<int64_t, Queue> queues;
  llvm::MapVector<StringAttr, int64_t> exchanging; ///< streams, and their queue

  /// Whether all that stands before an item in its queue is done.
  bool serves(const Item &item) {
    return item.queue < 0 || queues[item.queue].served == item.place;
  }
  void leave(const Item &item) {
    if (item.queue >= 0)
      ++queues[item.queue].served;
  }
  llvm::DenseSet<std::pair<size_t, StringAttr>> recorded;
};

/// The stages of one entry.
class Rendezvous {
public:
  Rendezvous(size_t count, QueuesOf queuesOf)
      : stages(count), queuesOf(queuesOf) {}
  LogicalResult add(EntryOp entry, int64_t stage);
  LogicalResult run();

private:
  FailureOr<SmallVector<Message, 2>> listMessages(Operation *op, int64_t stage);
  bool advance(int64_t stage, Stream &stream);
  bool pass(int64_t stage, Message &message);
  LogicalResult report();
  /// A stream that does not go on: its stage, and its number there.
  using Held = std::pair<size_t, size_t>;
  std::optional<Held> findHolder(Held held);
  void explain(Held held, InFlightDiagnostic &error);

  std::vector<Stage> stages;
  QueuesOf queuesOf;
  Operation *differs = nullptr; ///< a message of another type than its partner
};
} // namespace

FailureOr<SmallVector<Message, 2>> Rendezvous::listMessages(Operation *op,
                                                            int64_t stage) {
  SmallVector<Message, 2> messages;
  auto add = [&](auto message, bool sends) -> LogicalResult {
    int64_t peer = stage + static_cast<int64_t>(message.getDelta());
    if (message.getAxis() != dist::MeshOp::kPipelineAxis)
      return message.emitOpError()
             << "expected a message along '" << dist::MeshOp::kPipelineAxis
             << "', the axis of stages, found '" << message.getAxis() << "'";
    if (peer < 0 || peer >= static_cast<int64_t>(stages.size()) ||
        peer == stage)
      return message.emitOpError()
             << "expected another one of " << stages.size() << " stages, found "
             << peer;
    messages.push_back(
        {message, sends, peer, int64_t(message.getTag()), message.getView()});
    return success();
  };
  WalkResult walked = op->walk([&](Operation *each) {
    LogicalResult added = success();
    if (auto send = dyn_cast<SendOp>(each))
      added = add(send, true);
    if (auto recv = dyn_cast<RecvOp>(each))
      added = add(recv, false);
    return WalkResult(added);
  });
  if (walked.wasInterrupted())
    return failure();
  return messages;
}

LogicalResult Rendezvous::add(EntryOp entry, int64_t number) {
  Stage &stage = stages[number];
  auto program = entry->getParentOfType<ProgramOp>();
  struct Template {
    StringAttr stream;
    Item item;
    int64_t queues; ///< 0: it stands in none
  };
  llvm::DenseMap<StringAttr, SmallVector<Template>> bodies;
  for (auto body : program.getOps<BodyOp>())
    for (Operation &op : body.getBody().front()) {
      auto collective = dyn_cast<CollectiveOp>(op);
      if (!collective && !isa<RecordOp, WaitOp, SendOp, RecvOp, GroupOp>(op))
        continue;
      if (collective &&
          llvm::is_contained(collective.getAxes().getAsValueRange<StringAttr>(),
                             dist::MeshOp::kPipelineAxis))
        return collective.emitOpError()
               << "expected a collective of ranks of one stage, which have one "
                  "text, found one along '"
               << dist::MeshOp::kPipelineAxis << "'";
      int64_t queues = isa<RecordOp, WaitOp>(op) ? 0 : queuesOf(body);
      if (collective && !queues)
        continue; // it holds up nobody
      auto messages = listMessages(&op, number);
      if (failed(messages))
        return failure();
      CommandOpInterface first = dyn_cast<CommandOpInterface>(
          messages->empty() ? &op : messages->front().op);
      if (first)
        bodies[body.getSymNameAttr()].push_back(
            {StringAttr::get(entry.getContext(), first.getStreamName()),
             {&op, 0, *messages},
             queues});
    }
  SmallVector<RunTurn> runs = listRuns(entry);
  for (size_t run = 0; run < runs.size(); ++run)
    for (const Template &each :
         bodies.lookup(runs[run].run.getTaskAttr().getAttr())) {
      Item item = each.item;
      item.run = run;
      if (!item.open.empty() && entry.getKind() == kLoadEntry)
        return item.op->emitOpError() << "expected no message at load";
      if (each.queues > 0) {
        // The streams share the queues in turn.
        item.queue =
            stage.exchanging
                .insert({each.stream,
                         int64_t(stage.exchanging.size()) % each.queues})
                .first->second;
        item.place = stage.queues[item.queue].length++;
      }
      stage.streams[each.stream].items.push_back(std::move(item));
    }
  stage.recorders.emplace(runs);
  return success();
}

/// Passes a message on if the other end has come to it.
bool Rendezvous::pass(int64_t stage, Message &message) {
  for (auto &[name, stream] : stages[message.peer].streams) {
    if (stream.hasEnded() || !stages[message.peer].serves(stream.head()))
      continue;
    auto &open = stream.head().open;
    auto other = llvm::find_if(open, [&](const Message &each) {
      return each.peer == stage && each.tag == message.tag &&
             each.sends != message.sends;
    });
    if (other == open.end())
      continue;
    if (other->view.getTensorType() != message.view.getTensorType())
      differs = message.op;
    open.erase(other);
    if (open.empty()) {
      stages[message.peer].leave(stream.head());
      ++stream.next;
    }
    return true;
  }
  return false;
}

/// Goes on with a stream as far as it comes; says whether it has moved.
bool Rendezvous::advance(int64_t number, Stream &stream) {
  Stage &stage = stages[number];
  bool moved = false;
  while (!stream.hasEnded()) {
    Item &item = stream.head();
    if (auto record = dyn_cast<RecordOp>(item.op)) {
      stage.recorded.insert({item.run, record.getEventAttr()});
    } else if (auto wait = dyn_cast<WaitOp>(item.op)) {
      auto recorder = stage.recorders->find(wait, item.run);
      if (!recorder ||
          !stage.recorded.contains({*recorder, wait.getEventAttr()}))
        return moved;
    } else if (!stage.serves(item)) {
      return moved;
    } else {
      size_t before = item.open.size();
      llvm::erase_if(item.open,
                     [&](Message &message) { return pass(number, message); });
      moved |= item.open.size() < before;
      if (!item.open.empty())
        return moved;
      stage.leave(item);
    }
    moved = true;
    ++stream.next;
  }
  return moved;
}

LogicalResult Rendezvous::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [number, stage] : llvm::enumerate(stages))
      for (auto &[name, stream] : stage.streams)
        moved |= advance(number, stream);
  }
  return report();
}

/// The stream for which one that does not go on waits: its own stage's that
/// records, or has its queue, or the one of another stage that has its message.
std::optional<Rendezvous::Held> Rendezvous::findHolder(Held held) {
  auto find =
      [](size_t number, Stage &stage,
         llvm::function_ref<bool(const Item &)> isIt) -> std::optional<Held> {
    for (auto [at, each] : llvm::enumerate(stage.streams))
      if (llvm::any_of(ArrayRef(each.second.items).drop_front(each.second.next),
                       isIt))
        return Held{number, at};
    return std::nullopt;
  };
  Stage &stage = stages[held.first];
  Item &item = (stage.streams.begin() + held.second)->second.head();
  if (auto wait = dyn_cast<WaitOp>(item.op)) {
    auto recorder = stage.recorders->find(wait, item.run);
    return find(held.first, stage, [&](const Item &each) {
      auto record = dyn_cast<RecordOp>(each.op);
      return record && recorder && each.run == *recorder &&
             record.getEventAttr() == wait.getEventAttr();
    });
  }
  if (!stage.serves(item))
    return find(held.first, stage, [&](const Item &each) {
      return each.queue == item.queue &&
             each.place == stage.queues[item.queue].served;
    });
  const Message &message = item.open.front();
  return find(message.peer, stages[message.peer], [&](const Item &each) {
    return llvm::any_of(each.open, [&](const Message &other) {
      return other.peer == int64_t(held.first) && other.tag == message.tag &&
             other.sends != message.sends;
    });
  });
}

/// Names the cycle in which streams wait for each other.
void Rendezvous::explain(Held held, InFlightDiagnostic &error) {
  SmallVector<Held> path{held};
  auto cycle = path.end();
  while (true) {
    std::optional<Held> next = findHolder(path.back());
    if (!next)
      return;
    cycle = llvm::find(path, *next);
    if (cycle != path.end())
      break;
    path.push_back(*next);
  }
  for (auto each = cycle; each != path.end(); ++each) {
    Stage &stage = stages[each->first];
    auto &[name, stream] = *(stage.streams.begin() + each->second);
    Item &item = stream.head();
    Operation *op = item.isMet() ? item.op : item.open.front().op;
    const Held &next = std::next(each) == path.end() ? *cycle : *(each + 1);
    Diagnostic &note =
        error.attachNote(op->getLoc())
        << "stream '" << name.getValue() << "' of stage " << each->first
        << " waits here for stream '"
        << (stages[next.first].streams.begin() + next.second)->first.getValue()
        << "' of stage " << next.first;
    if (!stage.serves(item))
      note << ", which is before it in their queue";
  }
}

/// What meets nobody first: the others may wait for that.
LogicalResult Rendezvous::report() {
  Operation *waits = nullptr;
  Held held;
  for (int64_t number = 0, count = stages.size(); number < count; ++number)
    for (auto [at, named] : llvm::enumerate(stages[number].streams)) {
      Stream &stream = named.second;
      if (stream.hasEnded())
        continue;
      waits = stream.head().op;
      held = {size_t(number), at};
      for (const Message &message : stream.head().open) {
        waits = message.op;
        bool comes = false;
        for (auto &[other, theirs] : stages[message.peer].streams)
          for (const Item &item :
               ArrayRef(theirs.items).drop_front(theirs.next))
            comes |= llvm::any_of(item.open, [&](const Message &each) {
              return each.peer == number && each.tag == message.tag &&
                     each.sends != message.sends;
            });
        if (!comes)
          return message.op->emitOpError()
                 << (message.sends ? "sends what no rank receives"
                                   : "receives what no rank sends");
      }
    }
  if (differs)
    return differs->emitOpError()
           << "expected a tensor of one type at both ends, found others";
  if (!waits)
    return success();
  InFlightDiagnostic error =
      waits->emitOpError() << "waits for ever: the stages wait for each other";
  explain(held, error);
  return error;
}

/// What is received while others of its group are sent lies elsewhere.
static LogicalResult checkGroup(GroupOp group, const BufferTable &buffers) {
  struct Range {
    Space space;
    int64_t begin, end;
    bool writes;
  };
  SmallVector<Range> ranges;
  for (Operation &op : group.getBody().front()) {
    auto recv = dyn_cast<RecvOp>(op);
    ViewAttr view = recv ? recv.getView() : cast<SendOp>(op).getView();
    BufferOp buffer = buffers.lookup(view);
    int64_t begin = buffer.getOffset();
    Range range{buffer.getSpace(), begin,
                begin +
                    int64_t(buffer.getSlots() - 1) *
                        int64_t(buffer.getSlotStride()) +
                    int64_t(buffer.getBytes()),
                bool(recv)};
    for (const Range &other : ranges)
      if ((range.writes || other.writes) && range.space == other.space &&
          range.begin < other.end && other.begin < range.end)
        return op.emitOpError() << "expected bytes that no other message of "
                                   "its group has";
    ranges.push_back(range);
  }
  return success();
}

LogicalResult accel::plan::checkRendezvous(ModuleOp module, QueuesOf queuesOf) {
  int64_t count = 1;
  if (dist::MeshOp mesh = dist::MeshOp::of(module))
    count = mesh.findAxisSize(dist::MeshOp::kPipelineAxis).value_or(1);
  llvm::MapVector<StringRef, Rendezvous> entries;
  for (auto program : module.getOps<ProgramOp>()) {
    BufferTable buffers(program);
    WalkResult groups = program.walk(
        [&](GroupOp group) { return WalkResult(checkGroup(group, buffers)); });
    if (groups.wasInterrupted())
      return failure();
    int64_t stage = program.getStage();
    if (stage < 0 || stage >= count)
      return program.emitOpError()
             << "expected one of " << count << " stages, found " << stage;
    for (auto entry : program.getOps<EntryOp>())
      if (failed(entries.insert({entry.getKind(), Rendezvous(count, queuesOf)})
                     .first->second.add(entry, stage)))
        return failure();
  }
  for (auto &[kind, stages] : entries)
    if (failed(stages.run()))
      return failure();
  return success();
}
