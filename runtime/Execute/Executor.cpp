// Binding views to addresses, and running entries.

#include "Execute/Executor.h"

#include "Base/StartThread.h"
#include "Format/Views.h"

#include <cstring>

namespace accel::rt {
namespace {

/// What poisoned bytes hold: NaN in every float type, -1 in the integers.
constexpr int kPoison = 0xff;
/// Of an arena: each piece is a sign of life, because all of a large one takes
/// as long as a hang.
constexpr int64_t kPoisonedAtOnce = int64_t(64) << 20;
/// How long a wait sleeps before it looks for an abort.
constexpr int kSleepMilliseconds = 50;

class CoordinateTask : public Task {
public:
  /// The index in the first micro-batch, and what each later one adds.
  CoordinateTask(Device &device, int64_t first, int64_t step)
      : device(device), first(first), step(step) {}
  Status run(void *const *addresses, int64_t microBatch) override {
    int64_t index = first + step * microBatch;
    return device.upload(addresses[0], &index, sizeof index);
  }

private:
  Device &device;
  int64_t first, step;
};

} // namespace

Executor::Executor(const Program &program, Coordinates coordinates, Parts parts,
                   bool poison)
    : program(program), coordinates(std::move(coordinates)),
      parts(std::move(parts)), poison(poison) {}

Executor::~Executor() {
  stopping = true;
  call.fetch_add(1);
  wakeWaiters(call);
  for (std::thread &thread : threads)
    thread.join();
}

Counts Executor::takeCounts() {
  Counts counts{};
  for (auto &body : bodies)
    for (BoundCommand &command : body) {
      addCosts(program, *command.command, command.runs, counts);
      command.runs = 0;
    }
  return counts;
}

uint64_t Executor::touchedBytes() const {
  uint64_t bytes = 0;
  for (const auto &arena : arenas)
    bytes += arena->touched.load();
  return bytes;
}

//===----------------------------------------------------------------------===//
// Before the first run
//===----------------------------------------------------------------------===//

Status Executor::prepare(const ExecutableFile &file) {
  for (const ArenaPlan &plan : program.arenas) {
    auto memory = std::make_unique<ArenaMemory>();
    void *base = nullptr;
    ACCEL_RT_RETURN_IF_ERROR(plan.space == "shared"
                                 ? parts.comm->allocate(plan, &base)
                                 : parts.device->allocate(plan, &base));
    memory->base = static_cast<char *>(base);
    memory->bytes = plan.bytes;
    allocated += static_cast<uint64_t>(plan.bytes);
    if (poison)
      poisonArena(memory->base, plan.bytes);
    arenas.push_back(std::move(memory));
  }
  ACCEL_RT_RETURN_IF_ERROR(fillConstants(file));
  microBatches = file.plan().microBatches;

  streams = {"compute"};
  int64_t index = 0;
  size_t mostViews = 0;
  findEvents();
  for (const Body &body : program.bodies) {
    auto &commands = bodies.emplace_back();
    for (const Command &command : body.commands) {
      BoundCommand &bound = commands.emplace_back();
      bound.index = index++;
      if (Status status = bind(command, bound); !status.ok())
        return Status::error("node " + inQuotes(command.node) + ": " +
                             status.message());
      bindEvent(bodies.size() - 1, bound);
      mostViews = std::max(mostViews, bound.views.size());
    }
  }
  for (const Entry &entry : program.entries)
    entries.push_back(bindEntry(entry));
  addresses.assign(streams.size(), std::vector<void *>(mostViews));
  results.resize(streams.size());
  for (size_t stream = 1; stream < streams.size(); ++stream)
    ACCEL_RT_RETURN_IF_ERROR(startThread(
        threads, "the thread of stream " + inQuotes(streams[stream]),
        [this, stream] { streamThread(stream); }));
  return Status();
}

void Executor::findEvents() {
  for (const Body &body : program.bodies) {
    std::vector<std::string> &events = eventsOf.emplace_back();
    for (const Command &command : body.commands)
      if (auto *record = std::get_if<RecordCommand>(&command.what))
        events.push_back(record->event);
  }
}

/// What a record or wait is about; nothing of another command.
void Executor::bindEvent(size_t body, BoundCommand &bound) const {
  const std::string *name = nullptr;
  bound.recorder = static_cast<int64_t>(body);
  if (auto *record = std::get_if<RecordCommand>(&bound.command->what))
    name = &record->event;
  if (auto *wait = std::get_if<WaitCommand>(&bound.command->what)) {
    name = &wait->event;
    if (wait->body >= 0)
      bound.recorder = wait->body;
  }
  if (!name)
    return;
  const auto &events = eventsOf[static_cast<size_t>(bound.recorder)];
  bound.event = std::find(events.begin(), events.end(), *name) - events.begin();
}

Executor::BoundEntry Executor::bindEntry(const Entry &entry) const {
  BoundEntry bound;
  bound.bodies.resize(program.bodies.size());
  for (const Loop &loop : entry.loops) {
    BoundLoop &turns = bound.loops.emplace_back();
    turns.trips = static_cast<uint32_t>(loop.trips);
    std::map<int64_t, uint32_t> inTurn; // runs of a body
    for (const Segment &segment : loop.segments)
      for (const Run &run : segment.runs)
        turns.runs.push_back(
            {&run, bound.bodies[run.body].count + inTurn[run.body]++, 0});
    for (RunRef &ref : turns.runs) {
      ref.step = inTurn[ref.run->body];
      bound.bodies[ref.run->body].spans.push_back(
          {ref.run->microBatch, turns.trips, ref.first, ref.step});
    }
    for (auto [body, runs] : inTurn)
      bound.bodies[body].count += runs * turns.trips;
  }
  size_t events = 0;
  for (size_t body = 0; body < eventsOf.size(); ++body) {
    bound.bodies[body].firstEvent = events;
    events += eventsOf[body].size();
  }
  bound.events = std::make_unique<Word[]>(events);
  for (size_t i = 0; i < events; ++i)
    bound.events[i] = 0;
  return bound;
}

uint32_t Executor::BodyRuns::numberOf(int64_t microBatch) const {
  for (const Span &span : spans)
    if (microBatch >= span.microBatch &&
        microBatch < span.microBatch + span.trips)
      return span.first +
             static_cast<uint32_t>(microBatch - span.microBatch) * span.step;
  return 0;
}

void Executor::poisonArena(char *base, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPoisonedAtOnce) {
    std::memset(base + at, kPoison,
                static_cast<size_t>(std::min(kPoisonedAtOnce, bytes - at)));
    parts.rankControl->progress.fetch_add(1, std::memory_order_relaxed);
  }
}

Status Executor::fillConstants(const ExecutableFile &file) {
  for (const BufferPlan &buffer : program.buffers) {
    if (buffer.section.empty())
      continue;
    const Section *section = file.find(buffer.section);
    std::vector<char> value(section->bytes);
    ACCEL_RT_RETURN_IF_ERROR(file.read(*section, value.data()));
    for (size_t i = 0; i < program.arenas.size(); ++i)
      if (program.arenas[i].space == buffer.space)
        ACCEL_RT_RETURN_IF_ERROR(parts.device->upload(
            arenas[i]->base + buffer.offset, value.data(), value.size()));
  }
  return Status();
}

Executor::BoundView Executor::bindView(const View &view) const {
  const BufferPlan &buffer = program.buffers[view.buffer];
  size_t arena = 0;
  while (program.arenas[arena].space != buffer.space)
    ++arena;
  BoundView bound;
  bound.base = arenas[arena]->base + buffer.offset + view.offset;
  bound.slots = buffer.slots;
  bound.slotStride = buffer.slotStride;
  bound.microBatchStride = 0;
  bound.bytes = spanBytes(view);
  bound.arena = arena;
  for (const AxisStride &stride : view.axes) {
    if (stride.axis == "mb")
      bound.microBatchStride += stride.bytes;
    else
      bound.base += coordinates.at(stride.axis) * stride.bytes;
  }
  return bound;
}

Status Executor::bind(const Command &command, BoundCommand &bound) {
  bound.command = &command;
  auto stream = std::find(streams.begin(), streams.end(), command.stream);
  bound.stream = static_cast<size_t>(stream - streams.begin());
  if (stream == streams.end())
    streams.push_back(command.stream);
  format::forEachView(command, [&](const View &view) {
    bound.views.push_back(bindView(view));
  });
  for (const View &view : command.releases) {
    bound.releases.push_back(bindView(view));
    bound.releaseLayouts.emplace_back(view.shape, view.strides, view.strides);
  }
  const auto &what = command.what;
  if (std::holds_alternative<RecordCommand>(what) ||
      std::holds_alternative<WaitCommand>(what))
    return Status();
  if (auto *coordinate = std::get_if<CoordinateCommand>(&what)) {
    int64_t first = 0, step = 0;
    for (const std::string &axis : coordinate->axes) {
      int64_t size = axis == "mb" ? microBatches : coordinates.size(axis);
      first = first * size + coordinates.at(axis);
      step = step * size + (axis == "mb");
    }
    bound.task = std::make_unique<CoordinateTask>(*parts.device, first, step);
    return Status();
  }
  if (std::holds_alternative<ReadCommand>(what) ||
      std::holds_alternative<WriteCommand>(what))
    return parts.transfer(command, bound.task);
  if (std::holds_alternative<CollectiveCommand>(what) ||
      std::holds_alternative<SendCommand>(what) ||
      std::holds_alternative<RecvCommand>(what) ||
      std::holds_alternative<GroupCommand>(what))
    return parts.comm->prepare(program, command, bound.task);
  return parts.device->prepare(command, bound.task);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Executor::run(const std::string &name) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (program.entries[i].name != name)
      continue;
    job = &entries[i];
    finished.store(0);
    call.fetch_add(1);
    if (!threads.empty())
      wakeWaiters(call);
    results[0] = runStream(entries[i], 0);
    uint32_t done;
    while ((done = finished.load()) < threads.size())
      waitWhile(finished, done, kSleepMilliseconds);
    Status aborted;
    for (Status &result : results) {
      if (result.ok())
        continue;
      // What failed first matters, not who was told to end because of it.
      if (result.message() != kAbortedMessage)
        return result;
      aborted = result;
    }
    return aborted;
  }
  return Status();
}

void Executor::streamThread(size_t stream) {
  for (uint32_t seen = 0; !stopping;) {
    uint32_t now = call.load();
    if (now == seen) {
      waitWhile(call, seen, 1000);
      continue;
    }
    seen = now;
    if (stopping)
      return;
    results[stream] = runStream(*job, stream);
    finished.fetch_add(1);
    wakeWaiters(finished);
  }
}

/// Where the watchdog looks for what a stream does.
static size_t placeOf(size_t stream) {
  return std::min<size_t>(stream, RankControl::kStreams - 1);
}

Status Executor::runStream(const BoundEntry &entry, size_t stream) {
  for (const BoundLoop &loop : entry.loops)
    for (uint32_t turn = 0; turn < loop.trips; ++turn)
      ACCEL_RT_RETURN_IF_ERROR(runTurn(entry, loop, turn, stream));
  parts.rankControl->command[placeOf(stream)] = RankControl::kIdle;
  return Status();
}

Status Executor::runTurn(const BoundEntry &entry, const BoundLoop &loop,
                         uint32_t turn, size_t stream) {
  std::atomic<int64_t> &place = parts.rankControl->command[placeOf(stream)];
  for (const RunRef &ref : loop.runs) {
    int64_t microBatch = ref.run->microBatch + turn;
    parts.rankControl->microBatch[placeOf(stream)].store(
        loop.trips > 1 ? microBatch : -1, std::memory_order_relaxed);
    for (BoundCommand &command : bodies[ref.run->body]) {
      if (command.stream != stream)
        continue;
      if (parts.control->aborted())
        return Status::error(kAbortedMessage);
      ++command.runs;
      place.store(command.index, std::memory_order_relaxed);
      parts.rankControl->progress.fetch_add(1, std::memory_order_relaxed);
      if (command.event >= 0) {
        const BodyRuns &recorder =
            entry.bodies[static_cast<size_t>(command.recorder)];
        Word &event = entry.events[recorder.firstEvent +
                                   static_cast<size_t>(command.event)];
        uint32_t run = command.recorder == ref.run->body
                           ? ref.first + turn * ref.step
                           : recorder.numberOf(microBatch);
        // Wraps with the calls; what is compared lies close together.
        uint32_t count = call.load() * recorder.count + run + 1;
        if (std::holds_alternative<RecordCommand>(command.command->what)) {
          event.store(count);
          wakeWaiters(event);
        } else {
          ACCEL_RT_RETURN_IF_ERROR(waitForEvent(event, count));
        }
        continue;
      }
      Status status = runCommand(command, microBatch, addresses[stream].data());
      if (!status.ok()) {
        if (status.message() == kAbortedMessage)
          return status;
        // The other streams of this rank, and the other ranks, end.
        parts.control->abort.store(1);
        return Status::error("node " + inQuotes(command.command->node) + ": " +
                             status.message());
      }
    }
  }
  return Status();
}

/// The stream that records may be turns ahead.
Status Executor::waitForEvent(Word &event, uint32_t count) {
  uint32_t value;
  for (uint32_t look = 0;
       static_cast<int32_t>((value = event.load()) - count) < 0; ++look) {
    if (look < parts.control->spin)
      pauseCore();
    else if (parts.control->aborted())
      return Status::error(kAbortedMessage);
    else
      waitWhile(event, value, kSleepMilliseconds);
  }
  return Status();
}

/// Of a view (BoundView) in a run.
template <class View>
static char *addressOf(const View &view, int64_t microBatch) {
  return view.base + microBatch % view.slots * view.slotStride +
         microBatch * view.microBatchStride;
}

Status Executor::runCommand(BoundCommand &command, int64_t microBatch,
                            void **scratch) {
  for (size_t i = 0; i < command.views.size(); ++i) {
    const BoundView &view = command.views[i];
    char *address = addressOf(view, microBatch);
    scratch[i] = address;
    ArenaMemory &arena = *arenas[view.arena];
    uint64_t end = static_cast<uint64_t>(address - arena.base + view.bytes);
    uint64_t before = arena.touched.load(std::memory_order_relaxed);
    while (end > before && !arena.touched.compare_exchange_weak(before, end)) {
    }
  }
  ACCEL_RT_RETURN_IF_ERROR(command.task->run(scratch, microBatch));
  if (poison)
    poisonReleased(command, microBatch);
  return Status();
}

void Executor::poisonReleased(const BoundCommand &command, int64_t microBatch) {
  for (size_t i = 0; i < command.releases.size(); ++i) {
    char *address = addressOf(command.releases[i], microBatch);
    int64_t bytes = dtypeBytes(command.command->releases[i].dtype);
    const PairLayout &layout = command.releaseLayouts[i];
    layout.forRange(
        0, layout.elements(),
        [&](int64_t at, int64_t, int64_t stride, int64_t, int64_t count) {
          if (stride == 1) {
            std::memset(address + at * bytes, kPoison,
                        static_cast<size_t>(count * bytes));
            return;
          }
          for (int64_t j = 0; j < count; ++j)
            std::memset(address + (at + j * stride) * bytes, kPoison,
                        static_cast<size_t>(bytes));
        });
  }
}

} // namespace accel::rt
