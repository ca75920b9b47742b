// Makes the bodies of messages, and places their runs.

#include "StageTransfers.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static constexpr StringLiteral kComputeStream = "compute", kFree = "free",
                               kReceived = "received", kSent = "sent";

/// What comes before the micro-batches, they themselves, and what comes after
/// them.
enum Part { kBefore = 1, kMicroBatches = 2, kAfter = 3 };

/// What a task is called in channels: its kind and place. Entries that share
/// a kind share streams.
static std::string getLabel(dist::TaskAttr task) {
  std::string label = dist::stringifyTaskKind(task.getKind()).str() + "_" +
                      std::to_string(task.getStage());
  if (task.getChunk() > 0)
    label += "_" + std::to_string(task.getChunk());
  return label;
}

StageTransfers::StageTransfers(SharedProgram &shared, dist::ScheduleOp schedule,
                               int64_t stage, StringRef prefix)
    : shared(shared), schedule(schedule), stage(stage), prefix(prefix) {
  if (schedule)
    for (auto edge : schedule.getOps<dist::EdgeOp>())
      tags.try_emplace(edge, tags.size());
}

dist::TaskAttr StageTransfers::getTask(FlatSymbolRefAttr name) {
  return shared.symbols.lookup<func::FuncOp>(name.getAttr())
      ->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
}

StageTransfers::Stretch StageTransfers::getStretch(FlatSymbolRefAttr name) {
  dist::TaskAttr task = getTask(name);
  switch (task.getKind()) {
  case dist::TaskKind::prepare:
    return {kBefore, task.getRound()};
  case dist::TaskKind::norm:
  case dist::TaskKind::update:
    return {kAfter, task.getRound()};
  case dist::TaskKind::count:
    return {0, 0}; // of micro-batches, but before all that runs once
  case dist::TaskKind::forward:
  case dist::TaskKind::backward:
  case dist::TaskKind::backward_input:
  case dist::TaskKind::backward_weight:
    return {kMicroBatches, 0};
  }
  llvm_unreachable("all kinds are listed");
}

/// Whether an edge's message goes between rounds; of a single micro-batch, what
/// comes after it may take something of it.
bool StageTransfers::isExchange(dist::EdgeOp edge) {
  Stretch from = getStretch(edge.getSourceAttr());
  bool isOnly = static_cast<int64_t>(schedule.getMicroBatches()) == 1 &&
                from < getStretch(edge.getTargetAttr());
  return from.first == kBefore || from.first == kAfter || isOnly;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// The channel of an edge, its body begun.
FailureOr<StageTransfers::Channel *>
StageTransfers::getChannel(dist::EdgeOp edge, bool sends) {
  if (getStretch(edge.getTargetAttr()) != getStretch(edge.getSourceAttr()))
    return edge.emitOpError()
           << "expected a task of another stage that runs on the same "
              "micro-batches to read what "
           << edge.getSourceAttr() << " gives, found " << edge.getTargetAttr();
  auto &known = channels[{edge.getSourceAttr(), edge.getTargetAttr()}];
  if (known)
    return known.get();
  known = std::make_unique<Channel>();
  Channel &channel = *known;
  channel.sends = sends;
  channel.task =
      (sends ? edge.getSourceAttr() : edge.getTargetAttr()).getAttr();
  channel.stream = getLabel(getTask(edge.getSourceAttr())) + "_to_" +
                   getLabel(getTask(edge.getTargetAttr()));
  channel.body = shared.createBody(
      edge.getLoc(), prefix + (sends ? "send_" : "receive_") + channel.stream);
  return &channel;
}

BodyOp StageTransfers::getExchange(Stretch stretch, Location loc) {
  BodyOp &body = exchanges[stretch];
  if (!body) {
    body = shared.createBody(loc, prefix +
                                      (stretch.first == kBefore
                                           ? "exchange_before_"
                                           : "exchange_after_") +
                                      std::to_string(stretch.second));
    OpBuilder builder = OpBuilder::atBlockEnd(&body.getBody().front());
    createContainer<GroupOp>(builder, loc);
  }
  return body;
}

/// A message of an edge at the end of a body: in its group, if it has one.
void StageTransfers::addMessage(dist::EdgeOp edge, ViewAttr view, bool sends,
                                BodyOp body, StringRef stream) {
  int64_t source = getTask(edge.getSourceAttr()).getStage(),
          target = getTask(edge.getTargetAttr()).getStage();
  Block *block = &body.getBody().front();
  if (!block->empty())
    if (auto group = dyn_cast<GroupOp>(block->back()))
      block = &group.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  StringRef axis = dist::MeshOp::kPipelineAxis;
  int64_t tag = tags.lookup(edge);
  if (sends)
    SendOp::create(builder, edge.getLoc(), view, axis, target - source, tag,
                   stream);
  else
    RecvOp::create(builder, edge.getLoc(), view, axis, source - target, tag,
                   stream);
}

FailureOr<BufferOp> StageTransfers::receive(dist::EdgeOp edge,
                                            BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  Location loc = argument.getLoc();
  BufferOp buffer = shared.lowering.createBuffer(
      loc, "received", Role::activation, Space::device, type);
  ViewAttr view = Lowering::getView(Lowering::getWhole(buffer, type));
  if (isExchange(edge)) {
    BodyOp body = getExchange(getStretch(edge.getSourceAttr()), edge.getLoc());
    addMessage(edge, view, /*sends=*/false, body, kComputeStream);
    return buffer;
  }
  FailureOr<Channel *> channel = getChannel(edge, /*sends=*/false);
  if (failed(channel))
    return failure();
  BodyOp body = (*channel)->body;
  StringRef stream = (*channel)->stream;
  OpBuilder builder = OpBuilder::atBlockEnd(&body.getBody().front());
  if (body.getBody().front().empty()) {
    RecordOp::create(builder, loc, kFree, kComputeStream);
    WaitOp::create(builder, loc, kFree, FlatSymbolRefAttr(), stream);
    createContainer<GroupOp>(builder, loc);
    WaitOp::create(shared.commands, loc, kReceived,
                   FlatSymbolRefAttr::get(body.getSymNameAttr()),
                   kComputeStream);
  }
  addMessage(edge, view, /*sends=*/false, body, stream);
  return buffer;
}

/// Whether a command writes, or with `reads` reads, a buffer that is sent.
static bool uses(const llvm::DenseSet<Attribute> &sent,
                 CommandOpInterface command, bool reads) {
  return llvm::any_of(
      reads ? command.getReads() : command.getWrites(),
      [&](ViewAttr view) { return sent.contains(view.getBuffer().getAttr()); });
}

/// Records, behind the last command of a body that writes any of the values
/// that a channel sends, that they are made.
void StageTransfers::recordWhereMade(const Channel &channel, BodyOp body) {
  Block &block = body.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(&block);
  for (Operation &op : llvm::reverse(block))
    if (auto command = dyn_cast<CommandOpInterface>(op);
        command && uses(channel.buffers, command, /*reads=*/false)) {
      builder.setInsertionPointAfter(&op);
      break;
    }
  RecordOp::create(builder, body.getLoc(), channel.stream, kComputeStream);
}

LogicalResult StageTransfers::send(func::FuncOp task, BodyOp body) {
  if (!schedule)
    return success();
  auto results = cast<func::ReturnOp>(task.front().getTerminator());
  llvm::StringSet<> written; // states
  for (unsigned number = 0; number < task.getNumResults(); ++number)
    if (auto state =
            task.getResultAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr))
      written.insert(state.getValue());
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    if (edge.getSource() != task.getSymName() ||
        getTask(edge.getTargetAttr()).getStage() == stage)
      continue;
    Value value = results.getOperand(edge.getResult());
    Place place = shared.lowering.getExchanged(value, edge.getLoc());
    if (auto state = place.buffer.getSource();
        state && written.contains(*state))
      place = shared.lowering.copy(place, edge.getLoc(), Role::communication,
                                   shared.target.getExchangeSpace());
    ViewAttr view = Lowering::getView(place);
    if (isExchange(edge)) {
      addMessage(edge, view, /*sends=*/true,
                 getExchange(getStretch(edge.getSourceAttr()), edge.getLoc()),
                 kComputeStream);
      continue;
    }
    FailureOr<Channel *> channel = getChannel(edge, /*sends=*/true);
    if (failed(channel))
      return failure();
    BodyOp own = (*channel)->body;
    StringRef stream = (*channel)->stream;
    if (own.getBody().front().empty()) {
      OpBuilder builder = OpBuilder::atBlockEnd(&own.getBody().front());
      WaitOp::create(builder, edge.getLoc(), stream,
                     FlatSymbolRefAttr::get(body.getSymNameAttr()), stream);
      createContainer<GroupOp>(builder, edge.getLoc());
    }
    addMessage(edge, view, /*sends=*/true, own, stream);
    (*channel)->buffers.insert(place.buffer.getSymNameAttr());
  }
  for (auto &[ends, channel] : channels)
    if (channel->sends && ends.first == FlatSymbolRefAttr::get(task))
      recordWhereMade(*channel, body);
  return success();
}

/// Puts receives first in a group, and takes a message out of one that has no
/// other.
static void finishGroup(BodyOp body) {
  for (auto group : llvm::make_early_inc_range(body.getOps<GroupOp>())) {
    Block &messages = group.getBody().front();
    for (SendOp send : llvm::to_vector(messages.getOps<SendOp>()))
      send->moveBefore(&messages, messages.end());
    if (!llvm::hasSingleElement(messages))
      continue;
    messages.front().moveBefore(group);
    group.erase();
  }
}

void StageTransfers::finish(
    const llvm::MapVector<StringAttr, TaskBodies> &tasks) {
  for (auto &[ends, each] : channels) {
    Channel &channel = *each;
    finishGroup(channel.body);
    OpBuilder builder = OpBuilder::atBlockEnd(&channel.body.getBody().front());
    Location loc = channel.body.getLoc();
    RecordOp::create(builder, loc, channel.sends ? kSent : kReceived,
                     channel.stream);
    if (!channel.sends)
      continue;
    WaitOp::create(builder, loc, kSent, FlatSymbolRefAttr(), kComputeStream);
    for (auto &[name, bodies] : tasks)
      bodies.body->walk([&, name = name](CommandOpInterface command) {
        if (name != channel.task &&
            (uses(channel.buffers, command, /*reads=*/true) ||
             uses(channel.buffers, command, /*reads=*/false)))
          channel.readers.insert(name);
      });
  }
  for (auto &[stretch, body] : exchanges)
    finishGroup(body);
}

//===----------------------------------------------------------------------===//
// The run list
//===----------------------------------------------------------------------===//

void StageTransfers::goOnTo(dist::RunOp run, RunListWriter &list) {
  Stretch next{kAfter + 1, 0};
  if (run)
    next = getStretch(run.getTaskAttr());
  auto runExchanges = [&](Stretch end) {
    while (!exchanges.empty() && exchanges.begin()->first < end) {
      list.run(exchanges.begin()->second, 0, /*capturable=*/true);
      exchanges.erase(exchanges.begin());
    }
  };
  runExchanges(std::min(next, Stretch{kMicroBatches, 0}));
  if (next <= Stretch{kMicroBatches, 0})
    return;
  for (auto &[ends, channel] : channels)
    if (channel->sends)
      sendUpTo(*channel, channel->next, list);
  runExchanges(next);
}

/// The last micro-batch whose value must have been sent before a run, of a loop
/// in its first turn. Two are kept, so that the stream has time; but what also
/// another task reads has been sent by then, whichever micro-batch it is: so
/// each copy goes the same way.
std::optional<int64_t> StageTransfers::getNeeded(const Channel &channel,
                                                 dist::RunOp run) {
  constexpr int64_t kKept = 2;
  Attribute task = run.getTaskAttr().getAttr();
  if (!channel.sends)
    return std::nullopt;
  if (task == channel.task)
    return static_cast<int64_t>(run.getOffset()) - kKept;
  if (channel.readers.contains(task))
    return run.getOffset();
  return std::nullopt;
}

void StageTransfers::sendUpTo(Channel &channel, int64_t end,
                              RunListWriter &list) {
  for (; channel.unsent < end; ++channel.unsent)
    list.run(channel.body, channel.unsent, /*capturable=*/true);
}

LogicalResult StageTransfers::beginLoop(dist::LoopOp loop,
                                        RunListWriter &list) {
  int64_t trips = loop.getTrips();
  for (auto &[ends, each] : channels) {
    Channel &channel = *each;
    channel.inTurn.reset();
    std::optional<int64_t> needed;
    for (auto run : loop.getOps<dist::RunOp>())
      needed = std::max(needed, getNeeded(channel, run));
    if (!needed || channel.unsent > *needed + trips - 1)
      continue;
    sendUpTo(channel, *needed, list);
    if (channel.unsent != *needed)
      return loop.emitOpError()
             << "expected all turns to find as much sent by "
             << FlatSymbolRefAttr::get(channel.task) << ", found micro-batches "
             << *needed << " to " << channel.unsent - 1 << " sent already";
    channel.inTurn = *needed;
    channel.unsent += trips;
  }
  return success();
}

/// A value is received before its predecessor is read.
LogicalResult StageTransfers::addReceive(Channel &channel, dist::RunOp run,
                                         RunListWriter &list) {
  int64_t first = run.getOffset(), end = first + run.getTrips();
  int64_t last = static_cast<int64_t>(schedule.getMicroBatches()) - 1;
  if (run.getTurn() && (first == 0 || end > last))
    return run.emitOpError()
           << "expected the first and the last micro-batch of "
              "a task that receives outside of loops, found "
              "micro-batches "
           << first << " to " << end - 1 << " in one";
  if (first == 0)
    list.run(channel.body, 0, /*capturable=*/true);
  if (end <= last)
    list.run(channel.body, first + 1, /*capturable=*/true);
  return success();
}

LogicalResult StageTransfers::addBefore(dist::RunOp run, RunListWriter &list) {
  for (auto &[ends, each] : channels) {
    Channel &channel = *each;
    int64_t first = run.getOffset();
    bool isOwn = channel.task == run.getTaskAttr().getAttr();
    if (isOwn && first != channel.next)
      return run.emitOpError() << "expected a task that exchanges messages to "
                                  "run on its micro-batches in their order, "
                                  "next on "
                               << channel.next << ", found " << first;
    if (isOwn)
      channel.next = first + run.getTrips();
    if (isOwn && !channel.sends && failed(addReceive(channel, run, list)))
      return failure();
    std::optional<int64_t> needed = getNeeded(channel, run);
    if (needed && !run.getTurn())
      sendUpTo(channel, *needed + 1, list);
    if (needed && run.getTurn() && needed == channel.inTurn) {
      list.run(channel.body, *needed, /*capturable=*/true);
      channel.inTurn.reset();
    }
  }
  return success();
}
