// Plays the streams of an entry: each has a clock, each event the time of its
// record, each level of links the time when it is free.

#include "PredictStep.h"

#include "dialects/Plan/RunList.h"
#include "lib/Plan/Summary.h"

using namespace mlir;
using namespace accel::plan;

namespace accel::scale {
namespace {

/// The stream of what computes.
constexpr StringLiteral kComputing = "compute";

class Player {
public:
  Player(EntryOp entry, const Links &links, TrafficModel &model)
      : program(entry->getParentOfType<ProgramOp>()), buffers(program),
        links(links), model(model), runs(listRuns(entry)), recorders(runs),
        freeAt(links.levels.size(), 0.0) {
    result.busySeconds.assign(links.levels.size(), 0);
    result.busiest.assign(links.levels.size(), 0);
    result.all.assign(links.levels.size(), 0);
  }

  Prediction play();

private:
  struct Queued {
    CommandOpInterface command;
    size_t run;
  };
  struct Stream {
    std::vector<Queued> commands;
    size_t next = 0;
    double clock = 0;
    bool computes = false;
  };
  /// What a command takes that is no exchange, and the exchange that it is.
  struct Cost {
    double seconds = 0;
    int64_t flops = 0;
    Traffic traffic;
    double exchange = 0;
  };

  const Cost &costOf(CommandOpInterface command);
  bool advance(Stream &stream);
  void exchange(CommandOpInterface command, const Cost &cost, Stream &stream);

  ProgramOp program;
  BufferTable buffers;
  const Links &links;
  TrafficModel &model;
  SmallVector<RunTurn> runs;
  Recorders recorders;
  SymbolTableCollection symbols;
  llvm::MapVector<StringRef, Stream> streams;
  llvm::DenseMap<std::pair<size_t, StringAttr>, double> events;
  llvm::DenseMap<Operation *, Cost> costs;
  SmallVector<double> freeAt;
  Prediction result;
};

const Player::Cost &Player::costOf(CommandOpInterface command) {
  auto [place, isNew] = costs.try_emplace(command.getOperation());
  Cost &cost = place->second;
  if (!isNew)
    return cost;
  cost.traffic = model.find(command);
  if (!cost.traffic.busiest.empty()) {
    cost.exchange = model.seconds(cost.traffic);
    return cost;
  }
  if (isa<RecordOp, WaitOp, RecvOp>(command.getOperation()))
    return cost;
  int64_t bytes = 0;
  command.forEachView([&](ViewAttr view, Access) {
    if (buffers.lookup(view).getRole() != Role::scratch)
      bytes += view.getNumElements() * view.getElementBytes();
  });
  cost.flops = countFlops(command, symbols);
  cost.seconds = links.rank.getSeconds(double(cost.flops), double(bytes));
  return cost;
}

void Player::exchange(CommandOpInterface command, const Cost &cost,
                      Stream &stream) {
  double begin = stream.clock;
  for (size_t level = 1; level < links.levels.size(); ++level)
    if (cost.traffic.busiest[level] > 0)
      begin = std::max(begin, freeAt[level]);
  for (size_t level = 0; level < links.levels.size(); ++level) {
    double busy = model.busySeconds(cost.traffic, level);
    if (cost.traffic.busiest[level] > 0)
      freeAt[level] = begin + busy;
    result.busySeconds[level] += busy;
    result.busiest[level] += cost.traffic.busiest[level];
    result.all[level] += cost.traffic.all[level];
  }
  double end = begin + cost.exchange;
  if (stream.computes)
    result.exchanging += end - stream.clock;
  stream.clock = end;
  std::string name = command->getName().stripDialect().str();
  if (auto op = dyn_cast<CollectiveOp>(command.getOperation())) {
    SmallVector<StringRef> axes;
    for (auto axis : op.getAxes().getAsRange<StringAttr>())
      axes.push_back(axis);
    name =
        (stringifyCollective(op.getCollective()) + " " + llvm::join(axes, ","))
            .str();
  } else if (auto send = dyn_cast<SendOp>(command.getOperation())) {
    name += " " + send.getAxis().str();
  }
  ExchangeTotal &total =
      result.exchanges[StringAttr::get(command.getContext(), name)];
  ++total.count;
  total.bytes += cost.traffic.bytes;
  total.seconds += cost.exchange;
  total.busiest.resize(links.levels.size());
  for (size_t level = 0; level < links.levels.size(); ++level)
    total.busiest[level] += cost.traffic.busiest[level];
}

/// The next command of a stream; false: it waits for what is not recorded yet.
bool Player::advance(Stream &stream) {
  auto [command, run] = stream.commands[stream.next];
  if (auto wait = dyn_cast<WaitOp>(command.getOperation())) {
    std::optional<size_t> recorder = recorders.find(wait, run);
    auto recorded =
        recorder ? events.find({*recorder, wait.getEventAttr()}) : events.end();
    if (recorded == events.end())
      return false;
    if (recorded->second > stream.clock) {
      if (stream.computes)
        result.waiting += recorded->second - stream.clock;
      stream.clock = recorded->second;
    }
  }
  ++stream.next;
  const Cost &cost = costOf(command);
  if (!cost.traffic.busiest.empty()) {
    exchange(command, cost, stream);
    return true;
  }
  stream.clock += cost.seconds;
  result.flops += cost.flops;
  if (stream.computes)
    result.computing += cost.seconds;
  if (auto record = dyn_cast<RecordOp>(command.getOperation()))
    events[{run, record.getEventAttr()}] = stream.clock;
  return true;
}

Prediction Player::play() {
  for (size_t number = 0; number < runs.size(); ++number)
    buffers.getBody(runs[number].run).walk([&](CommandOpInterface command) {
      Stream &stream = streams[command.getStreamName()];
      stream.computes = command.getStreamName() == kComputing;
      stream.commands.push_back({command, number});
    });
  // Always the stream that is behind the others, so that links go to whoever
  // asks first. A verified plan never leaves all of them waiting.
  while (true) {
    SmallVector<Stream *> order;
    for (auto &[name, stream] : streams)
      if (stream.next < stream.commands.size())
        order.push_back(&stream);
    llvm::stable_sort(order, [](Stream *one, Stream *two) {
      return one->clock < two->clock;
    });
    if (!llvm::any_of(order, [&](Stream *stream) { return advance(*stream); }))
      break;
  }
  for (auto &[name, stream] : streams)
    result.seconds = std::max(result.seconds, stream.clock);
  // It ends when the others have ended, too.
  for (auto &[name, stream] : streams)
    if (stream.computes)
      result.waiting += result.seconds - stream.clock;
  return std::move(result);
}

} // namespace

Prediction predictStep(EntryOp entry, const Links &links,
                       TrafficModel &traffic) {
  return Player(entry, links, traffic).play();
}

} // namespace accel::scale
