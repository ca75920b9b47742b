// Streams as queues of what may hold them up: records, waits and messages.

#include "Rendezvous.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Plan/RunList.h"
#include "lib/Plan/BufferTable.h"
#include "llvm/ADT/MapVector.h"

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

/// A record, a wait, or messages that are posted together.
struct Item {
  Operation *op;
  size_t run;                        ///< its number, a turn counting as one
  SmallVector<Message, 2> open = {}; ///< not passed on yet
};

struct Stream {
  std::vector<Item> items;
  size_t next = 0;
  bool hasEnded() const { return next == items.size(); }
  Item &head() { return items[next]; }
};

struct Stage {
  std::optional<Recorders> recorders;
  llvm::MapVector<StringAttr, Stream> streams;
  llvm::DenseSet<std::pair<size_t, StringAttr>> recorded;
};

/// The stages of one entry.
class Rendezvous {
public:
  explicit Rendezvous(size_t count) : stages(count) {}
  LogicalResult add(EntryOp entry, int64_t stage);
  LogicalResult run();

private:
  FailureOr<SmallVector<Message, 2>> listMessages(Operation *op, int64_t stage);
  bool advance(int64_t stage, Stream &stream);
  bool pass(int64_t stage, Message &message);
  LogicalResult report();

  std::vector<Stage> stages;
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
  };
  llvm::DenseMap<StringAttr, SmallVector<Template>> bodies;
  for (auto body : program.getOps<BodyOp>())
    for (Operation &op : body.getBody().front()) {
      if (!isa<RecordOp, WaitOp, SendOp, RecvOp, GroupOp>(op))
        continue;
      auto messages = listMessages(&op, number);
      if (failed(messages))
        return failure();
      CommandOpInterface first = dyn_cast<CommandOpInterface>(
          messages->empty() ? &op : messages->front().op);
      if (first)
        bodies[body.getSymNameAttr()].push_back(
            {StringAttr::get(entry.getContext(), first.getStreamName()),
             {&op, 0, *messages}});
    }
  SmallVector<RunTurn> runs = listRuns(entry);
  for (size_t run = 0; run < runs.size(); ++run)
    for (const Template &each :
         bodies.lookup(runs[run].run.getTaskAttr().getAttr())) {
      Item item = each.item;
      item.run = run;
      if (!item.open.empty() && entry.getKind() == kLoadEntry)
        return item.op->emitOpError() << "expected no message at load";
      stage.streams[each.stream].items.push_back(std::move(item));
    }
  stage.recorders.emplace(runs);
  return success();
}

/// Passes a message on if the other end has come to it.
bool Rendezvous::pass(int64_t stage, Message &message) {
  for (auto &[name, stream] : stages[message.peer].streams) {
    if (stream.hasEnded())
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
    if (open.empty())
      ++stream.next;
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
    } else {
      size_t before = item.open.size();
      llvm::erase_if(item.open,
                     [&](Message &message) { return pass(number, message); });
      moved |= item.open.size() < before;
      if (!item.open.empty())
        return moved;
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

/// What meets nobody first: the others may wait for that.
LogicalResult Rendezvous::report() {
  Operation *waits = nullptr;
  for (int64_t number = 0, count = stages.size(); number < count; ++number)
    for (auto &[name, stream] : stages[number].streams) {
      if (stream.hasEnded())
        continue;
      waits = stream.head().op;
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
  return waits->emitOpError()
         << "waits for ever: the stages wait for each other";
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

LogicalResult accel::plan::checkRendezvous(ModuleOp module) {
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
      if (failed(entries.insert({entry.getKind(), Rendezvous(count)})
                     .first->second.add(entry, stage)))
        return failure();
  }
  for (auto &[kind, stages] : entries)
    if (failed(stages.run()))
      return failure();
  return success();
}
