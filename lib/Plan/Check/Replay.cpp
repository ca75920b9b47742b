// Order first: streams are queues, a wait is passed when its record has been.
// Then bytes: in that order, every read must find what was last written through
// its own buffer.

#include "Replay.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

LogicalResult Replay::run() {
  for (auto buffer : program.getOps<BufferOp>())
    if (buffer.getValue()) {
      int64_t begin = buffer.getOffset();
      write({buffer.getSpace(), begin, begin + int64_t(buffer.getBytes()),
             buffer},
            {buffers.getRoot(buffer)});
    }
  // What an entry leaves behind must still serve it when it runs again.
  for (auto entry : program.getOps<EntryOp>())
    if (entry.getKind() == kLoadEntry && failed(runEntry(entry)))
      return failure();
  for (int round = 0; round < 2; ++round)
    for (auto entry : program.getOps<EntryOp>())
      if (entry.getKind() != kLoadEntry && failed(runEntry(entry)))
        return failure();
  return success();
}

LogicalResult Replay::runEntry(EntryOp entry) {
  auto known = orders.find(entry);
  if (known == orders.end()) {
    FailureOr<std::vector<Step>> steps = order(entry);
    if (failed(steps))
      return failure();
    known = orders.try_emplace(entry, std::move(*steps)).first;
  }
  for (const Step &step : known->second)
    if (failed(execute(step)))
      return failure();
  return success();
}

FailureOr<std::vector<Step>> Replay::order(EntryOp entry) {
  llvm::MapVector<StringAttr, std::vector<Step>> queues;
  SmallVector<RunTurn> runs = ProofTurns(program).listRuns(entry);
  // Where each record stands in the run list, by run and event.
  llvm::DenseMap<std::pair<size_t, StringAttr>, int64_t> told;
  int64_t enqueued = 0;
  for (size_t number = 0; number < runs.size(); ++number)
    buffers.getBody(runs[number].run).walk([&](CommandOpInterface command) {
      if (!runs[number].lists(command))
        return;
      auto name = StringAttr::get(entry.getContext(), command.getStreamName());
      queues[name].push_back(
          {command, runs[number], number, 0, 0, enqueued, {}});
      if (auto record = dyn_cast<RecordOp>(command.getOperation()))
        told.insert({{number, record.getEventAttr()}, enqueued});
      ++enqueued;
    });
  // Clocks at the records that have been passed, by run and event.
  Recorders recorders(runs);
  using Clock = SmallVector<int64_t, 2>;
  llvm::DenseMap<std::pair<size_t, StringAttr>, Clock> records;
  std::vector<Clock> clocks(queues.size(), Clock(queues.size()));
  SmallVector<size_t> next(queues.size());
  std::vector<Step> steps;
  for (bool progress = true; progress;) {
    progress = false;
    for (auto [stream, named] : llvm::enumerate(queues)) {
      std::vector<Step> &queue = named.second;
      for (; next[stream] < queue.size(); progress = true) {
        Step &step = queue[next[stream]];
        Clock &clock = clocks[stream];
        if (auto wait = dyn_cast<WaitOp>(step.command.getOperation())) {
          auto recorder = recorders.find(wait, step.number);
          auto record = recorder
                            ? records.find({*recorder, wait.getEventAttr()})
                            : records.end();
          if (record == records.end())
            break;
          if (told.lookup(record->first) > step.enqueued)
            return wait.emitOpError()
                   << "waits for event '" << wait.getEvent()
                   << "', whose record stands behind it: a device that is told "
                      "of the wait first has nothing to wait for";
          for (auto [mine, theirs] : llvm::zip_equal(clock, record->second))
            mine = std::max(mine, theirs);
        }
        step.stream = stream;
        step.position = next[stream];
        step.before = clock;
        clock[stream] = ++next[stream];
        if (auto record = dyn_cast<RecordOp>(step.command.getOperation()))
          records[{step.number, record.getEventAttr()}] = clock;
        steps.push_back(step);
      }
    }
  }
  for (auto [stream, named] : llvm::enumerate(queues))
    if (next[stream] < named.second.size()) {
      auto wait =
          cast<WaitOp>(named.second[next[stream]].command.getOperation());
      return wait.emitOpError() << "waits for event '" << wait.getEvent()
                                << "', which no command can record before it";
    }
  if (failed(checkRaces(steps)) || failed(checkCollectives(steps)))
    return failure();
  return steps;
}

namespace {
/// Who touched a range of bytes last, by stream: what an earlier step of the
/// same stream did comes before whatever that one comes before.
struct Touched {
  int64_t end;
  SmallVector<const Step *, 2> readers, writers;
};
} // namespace

/// Cuts what is known at the ends of `bytes`, and adds what is not known yet.
static llvm::iterator_range<std::map<int64_t, Touched>::iterator>
cut(std::map<int64_t, Touched> &known, const Bytes &bytes, size_t streams) {
  for (int64_t at : {bytes.begin, bytes.end}) {
    auto next = known.upper_bound(at);
    if (next == known.begin())
      continue;
    auto &[begin, touched] = *std::prev(next);
    if (begin < at && at < touched.end) {
      known.emplace_hint(next, at, touched);
      touched.end = at;
    }
  }
  SmallVector<const Step *, 2> nobody(streams);
  int64_t at = bytes.begin;
  auto next = known.lower_bound(at);
  if (at >= bytes.end)
    return {next, next};
  auto first = known.end();
  while (at < bytes.end) {
    if (next == known.end() || next->first > at) {
      int64_t end =
          next == known.end() ? bytes.end : std::min(bytes.end, next->first);
      next = known.emplace_hint(next, at, Touched{end, nobody, nobody});
    }
    if (first == known.end())
      first = next;
    at = next->second.end;
    ++next;
  }
  return {first, next};
}

/// The bytes that nobody reads any more when a command is done.
static SmallVector<ViewAttr> getReleases(Operation *command) {
  auto releases = command->getAttrOfType<ArrayAttr>(kReleasesAttr);
  return releases ? llvm::to_vector(releases.getAsRange<ViewAttr>())
                  : SmallVector<ViewAttr>();
}

/// One pass over the steps: each is held against the last of every stream that
/// touched its bytes. Of two that are not ordered and touch the same bytes,
/// neither may write. What is released others may write, and poison mode does.
LogicalResult Replay::checkRaces(ArrayRef<Step> steps) {
  size_t streams = steps.empty() ? 0 : steps.front().before.size();
  std::map<Space, std::map<int64_t, Touched>> touched;
  for (const Step &step : steps) {
    auto check = [&](ArrayRef<const Step *> others) -> LogicalResult {
      for (const Step *other : others) {
        if (!other || other->stream == step.stream ||
            other->happensBefore(step))
          continue;
        CommandOpInterface left = other->command, right = step.command;
        InFlightDiagnostic diagnostic =
            right.emitOpError()
            << "races: it and a command of stream '" << left.getStreamName()
            << "' touch the same bytes, one of them writes or releases them, "
               "and neither waits for the other";
        diagnostic.attachNote(left.getLoc()) << "the other command";
        return diagnostic;
      }
      return success();
    };
    auto touch = [&](ArrayRef<ViewAttr> views, bool writes) -> LogicalResult {
      for (ViewAttr view : views) {
        Bytes bytes = getBytes(view, step.run);
        for (auto &[begin, range] : cut(touched[bytes.space], bytes, streams)) {
          if (failed(check(range.writers)) ||
              (writes && failed(check(range.readers))))
            return failure();
          (writes ? range.writers : range.readers)[step.stream] = &step;
        }
      }
      return success();
    };
    CommandOpInterface command = step.command;
    if (failed(touch(command.getReads(), false)) ||
        failed(touch(command.getWrites(), true)) ||
        failed(touch(getReleases(command), true)))
      return failure();
  }
  return success();
}

/// Ranks of a group must meet in one order, whatever the streams' speeds.
LogicalResult Replay::checkCollectives(ArrayRef<Step> steps) {
  const Step *previous = nullptr;
  for (const Step &step : steps) {
    auto collective = dyn_cast<CollectiveOp>(step.command.getOperation());
    if (!collective)
      continue;
    if (previous && !previous->happensBefore(step)) {
      InFlightDiagnostic diagnostic =
          collective.emitOpError()
          << "may meet the ranks of its group in another order than an earlier "
             "collective: expected one to wait for the other";
      diagnostic.attachNote(CommandOpInterface(previous->command).getLoc())
          << "the earlier collective";
      return diagnostic;
    }
    previous = &step;
  }
  return success();
}

Bytes Replay::getBytes(ViewAttr view, const RunTurn &run) {
  BufferOp buffer = buffers.lookup(view);
  int64_t begin = int64_t(buffer.getOffset()) + view.getOffset() +
                  run.getMicroBatch() % int64_t(buffer.getSlots()) *
                      int64_t(buffer.getSlotStride());
  int64_t end = begin + view.getSpanBytes();
  // Any coordinate: a rank's own piece is somewhere in here.
  if (!view.getAxes().empty()) {
    begin -= view.getOffset();
    end = begin + int64_t(buffer.getBytes());
  }
  return {buffer.getSpace(), begin, end, buffer};
}

void Replay::write(const Bytes &bytes, Content content) {
  if (bytes.begin >= bytes.end)
    return;
  Contents &contents = arenas[bytes.space];
  // Cut what is partly covered, forget what is wholly.
  auto at = contents.lower_bound(bytes.begin);
  if (at != contents.begin()) {
    auto left = std::prev(at);
    auto [end, old] = left->second;
    if (end > bytes.begin) {
      left->second.first = bytes.begin;
      if (end > bytes.end)
        contents[bytes.end] = {end, old};
    }
  }
  at = contents.lower_bound(bytes.begin);
  while (at != contents.end() && at->first < bytes.end) {
    auto [end, old] = at->second;
    at = contents.erase(at);
    if (end > bytes.end)
      contents[bytes.end] = {end, old};
  }
  contents[bytes.begin] = {bytes.end, content};
}

LogicalResult Replay::checkRead(const Step &step, ViewAttr view) {
  Bytes bytes = getBytes(view, step.run);
  CommandOpInterface command = step.command;
  BufferOp root = buffers.getRoot(bytes.buffer);
  if (bytes.buffer.getRole() == Role::scratch)
    return success();
  Contents &contents = arenas[bytes.space];
  int64_t at = bytes.begin;
  while (at < bytes.end) {
    auto next = contents.upper_bound(at);
    bool found = next != contents.begin();
    auto range = found ? std::prev(next) : next;
    if (!found || range->second.first <= at)
      return command.emitOpError()
             << "reads byte " << at - int64_t(bytes.buffer.getOffset())
             << " of " << view.getBuffer() << ", which nothing has written";
    Content &content = range->second.second;
    if (content.released || content.buffer != root) {
      InFlightDiagnostic diagnostic = command.emitOpError();
      diagnostic << "reads byte " << at - int64_t(bytes.buffer.getOffset())
                 << " of " << view.getBuffer();
      if (content.released)
        diagnostic << ", which was released";
      else
        diagnostic << ", which @" << content.buffer.getSymName()
                   << " has overwritten";
      if (content.writer)
        diagnostic.attachNote(content.writer->getLoc())
            << (content.released ? "released here" : "overwritten here");
      return diagnostic;
    }
    at = range->second.first;
  }
  return success();
}

LogicalResult Replay::execute(const Step &step) {
  CommandOpInterface command = step.command;
  for (ViewAttr view : command.getReads())
    if (failed(checkRead(step, view)))
      return failure();
  for (ViewAttr view : command.getWrites()) {
    Bytes bytes = getBytes(view, step.run);
    write(bytes, {buffers.getRoot(bytes.buffer), command});
  }
  for (ViewAttr view : getReleases(command)) {
    Bytes bytes = getBytes(view, step.run);
    write(bytes, {buffers.getRoot(bytes.buffer), command, true});
  }
  return success();
}
