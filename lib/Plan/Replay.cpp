// Order first: streams are queues, a wait is passed when its record has been.
// Then bytes: in that order, every read must find what was last written through
// its own buffer.

#include "Replay.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// Whether `first` happens before `second`.
static bool isBefore(const Step &first, const Step &second) {
  auto known = second.before.find(first.command.getStreamName());
  return known != second.before.end() && first.position < known->second;
}

/// The buffer whose bytes `buffer` says it shares, or itself.
static BufferOp getRoot(ProgramOp program, BufferOp buffer) {
  while (buffer && buffer.getAliasOf())
    buffer = program.lookupSymbol<BufferOp>(*buffer.getAliasOf());
  return buffer;
}

LogicalResult Replay::run() {
  for (auto buffer : program.getOps<BufferOp>())
    if (buffer.getValue()) {
      int64_t begin = buffer.getOffset();
      write({buffer.getSpace(), begin, begin + int64_t(buffer.getBytes()),
             buffer},
            {getRoot(program, buffer)});
    }
  // What an entry leaves behind must still serve it when it runs again.
  for (auto entry : program.getOps<EntryOp>())
    if (entry.getSymName() == "load" && failed(runEntry(entry)))
      return failure();
  for (int round = 0; round < 2; ++round)
    for (auto entry : program.getOps<EntryOp>())
      if (entry.getSymName() != "load" && failed(runEntry(entry)))
        return failure();
  return success();
}

LogicalResult Replay::runEntry(EntryOp entry) {
  for (auto segment : entry.getOps<SegmentOp>())
    if (failed(runSegment(segment)))
      return failure();
  return success();
}

LogicalResult Replay::runSegment(SegmentOp segment) {
  llvm::MapVector<StringRef, std::vector<Step>> queues;
  for (auto run : segment.getOps<RunOp>()) {
    auto body = program.lookupSymbol<BodyOp>(run.getTask());
    body.walk([&](CommandOpInterface command) {
      queues[command.getStreamName()].push_back({command, run, {}, 0});
    });
  }
  // Clocks at the records that have been passed, by run and event.
  std::map<std::pair<Operation *, std::string>, llvm::StringMap<int64_t>>
      records;
  llvm::StringMap<llvm::StringMap<int64_t>> clocks;
  llvm::StringMap<size_t> next;
  std::vector<Step> order;
  for (bool progress = true; progress;) {
    progress = false;
    for (auto &[stream, queue] : queues)
      for (; next[stream] < queue.size(); progress = true) {
        Step &step = queue[next[stream]];
        llvm::StringMap<int64_t> &clock = clocks[stream];
        if (auto wait = dyn_cast<WaitOp>(step.command.getOperation())) {
          auto record = records.find({step.run, wait.getEvent().str()});
          if (record == records.end())
            break;
          for (auto &entry : record->second)
            clock[entry.getKey()] =
                std::max(clock[entry.getKey()], entry.getValue());
        }
        step.before = clock;
        step.position = next[stream];
        clock[stream] = ++next[stream];
        if (auto record = dyn_cast<RecordOp>(step.command.getOperation()))
          records[{step.run, record.getEvent().str()}] = clock;
        order.push_back(step);
      }
  }
  for (auto &[stream, queue] : queues)
    if (next[stream] < queue.size()) {
      auto wait = cast<WaitOp>(queue[next[stream]].command.getOperation());
      return wait.emitOpError()
             << "waits for event '" << wait.getEvent()
             << "', which no command of the run can record before it";
    }
  if (queues.size() > 1 && failed(checkRaces(order)))
    return failure();
  if (failed(checkCollectives(order)))
    return failure();
  for (const Step &step : order)
    if (failed(execute(step)))
      return failure();
  return success();
}

LogicalResult Replay::checkRaces(ArrayRef<Step> steps) {
  for (size_t second = 0; second < steps.size(); ++second)
    for (size_t first = 0; first < second; ++first) {
      const Step &a = steps[first], &b = steps[second];
      if (isBefore(a, b) || isBefore(b, a))
        continue;
      CommandOpInterface left = a.command, right = b.command;
      SmallVector<ViewAttr> leftAll = left.getReads();
      llvm::append_range(leftAll, left.getWrites());
      auto meets = [&](ArrayRef<ViewAttr> lefts, ArrayRef<ViewAttr> rights) {
        for (ViewAttr l : lefts)
          for (ViewAttr r : rights)
            if (getBytes(l, a.run).overlaps(getBytes(r, b.run)))
              return true;
        return false;
      };
      if (!meets(leftAll, right.getWrites()) &&
          !meets(left.getWrites(), right.getReads()))
        continue;
      InFlightDiagnostic diagnostic =
          right.emitOpError()
          << "races: it and a command of stream '" << left.getStreamName()
          << "' touch the same bytes, one of them writes, and neither waits "
             "for the other";
      diagnostic.attachNote(left.getLoc()) << "the other command";
      return diagnostic;
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
    if (previous && !isBefore(*previous, step)) {
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

Bytes Replay::getBytes(ViewAttr view, RunOp run) {
  auto buffer = program.lookupSymbol<BufferOp>(view.getBuffer());
  int64_t begin = int64_t(buffer.getOffset()) + view.getOffset();
  if (view.getSlot() >= 0)
    begin += run.getSlots()[view.getSlot()] * int64_t(buffer.getSlotStride());
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
  BufferOp root = getRoot(program, bytes.buffer);
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
    write(bytes, {getRoot(program, bytes.buffer), command});
  }
  if (auto releases = command->getAttrOfType<ArrayAttr>(kReleasesAttr))
    for (auto view : releases.getAsRange<ViewAttr>()) {
      Bytes bytes = getBytes(view, step.run);
      write(bytes, {getRoot(program, bytes.buffer), command, true});
    }
  return success();
}
