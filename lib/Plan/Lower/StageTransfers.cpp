// Makes the bodies of messages.

#include "StageTransfers.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static constexpr StringLiteral kComputeStream = "compute", kFree = "free",
                               kReceived = "received", kSent = "sent";

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
  auto &known = channels[{edge.getSourceAttr().getAttr(),
                          edge.getTargetAttr().getAttr()}];
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
    StringRef when = stretch.first == kBefore  ? "before_"
                     : stretch.first == kAfter ? "after_"
                                               : "between_";
    body = shared.createBody(loc, prefix + "exchange_" + when.str() +
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
  BufferOp buffer =
      shared.lowering.createBuffer(loc, "received", Role::activation, type);
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

/// Records, behind the last command of a body that writes any of the values
/// that a channel sends, that they are made.
void StageTransfers::recordWhereMade(const Channel &channel, BodyOp body) {
  Block &block = body.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(&block);
  for (Operation &op : llvm::reverse(block))
    if (auto command = dyn_cast<CommandOpInterface>(op);
        command && llvm::any_of(command.getWrites(), [&](ViewAttr view) {
          return channel.buffers.contains(view.getBuffer().getAttr());
        })) {
      builder.setInsertionPointAfter(&op);
      break;
    }
  RecordOp::create(builder, body.getLoc(), channel.stream, kComputeStream);
}

LogicalResult StageTransfers::send(func::FuncOp task, BodyOp body) {
  if (!schedule)
    return success();
  auto results = cast<func::ReturnOp>(task.front().getTerminator());
  for (auto edge : schedule.getOps<dist::EdgeOp>()) {
    if (edge.getSource() != task.getSymName() ||
        getTask(edge.getTargetAttr()).getStage() == stage)
      continue;
    Value value = results.getOperand(edge.getResult());
    Place place = shared.lowering.getExchanged(value, edge.getLoc());
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
    if (channel->sends && ends.first == task.getSymNameAttr())
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

LogicalResult StageTransfers::finish() {
  Postings postings;
  if (!channels.empty() && shared.target.getExchangeQueues() > 0) {
    auto found = orderMessages(schedule, stage);
    if (failed(found))
      return failure();
    queued = std::move(*found);
  } else if (!channels.empty()) {
    auto found = findPostings(schedule);
    if (failed(found))
      return failure();
    postings = std::move(*found);
  }
  for (auto &[ends, each] : channels) {
    Channel &channel = *each;
    channel.posting = postings.lookup(ends);
    finishGroup(channel.body);
    OpBuilder builder = OpBuilder::atBlockEnd(&channel.body.getBody().front());
    Location loc = channel.body.getLoc();
    RecordOp::create(builder, loc, channel.sends ? kSent : kReceived,
                     channel.stream);
    if (channel.sends)
      WaitOp::create(builder, loc, kSent, FlatSymbolRefAttr(), kComputeStream);
  }
  for (auto &[stretch, body] : exchanges)
    finishGroup(body);
  return success();
}
