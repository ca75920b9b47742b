// What an executor does before its first run: arenas, constants, tasks, the
// places of views, and the steps of every entry.

#include "Execute/Executor.h"

#include "Format/Views.h"
#include "Storage/StoredArenas.h"

namespace accel::rt {
namespace {

/// What poisoned bytes hold: NaN in every float type, -1 in the integers.
constexpr int kPoison = 0xff;
/// Of an arena: each piece is a sign of life, because all of a large one takes
/// as long as a hang.
constexpr int64_t kPoisonedAtOnce = int64_t(64) << 20;

/// Items of a stream, or more where one segment has them: thousands of
/// micro-batches are joined in between, which takes no time of theirs. Not
/// where a rank exchanges messages: one that is posted ahead meets another rank
/// that may wait for what this one enqueues later.
constexpr size_t kEnqueuedAtOnce = 4096;

bool hasMessages(const Program &program) {
  for (const Body &body : program.bodies)
    for (const Command &command : body.commands)
      if (std::holds_alternative<SendCommand>(command.what) ||
          std::holds_alternative<RecvCommand>(command.what) ||
          std::holds_alternative<GroupCommand>(command.what))
        return true;
  return false;
}

class CoordinateTask : public HostTask {
public:
  /// The index in the first micro-batch, and what each later one adds.
  CoordinateTask(Memory &memory, int64_t first, int64_t step)
      : memory(memory), first(first), step(step) {}
  Status run(const Address *views, int64_t microBatch) override {
    int64_t index = first + step * microBatch;
    return memory.upload(views[0], &index, {sizeof index});
  }

private:
  Memory &memory;
  int64_t first, step;
};

/// An event that streams of two engines meet at: a word of the host's, counted
/// as the engines' own events are. A step of the host's in its stream's order
/// is what every device has, so that none must know another's events. It calls
/// nothing of a device.
class CrossingTask : public HostTask {
public:
  /// `call` is the executor's, which no call changes before it has joined.
  CrossingTask(Word &word, const Step &step, const uint32_t &call,
               ControlPlane &control)
      : word(word), count(step.count), firstMicroBatch(step.microBatch),
        records(step.work->kind == Work::Kind::Record), call(call),
        control(control) {}
  Status run(const Address *, int64_t microBatch) override {
    uint32_t wanted =
        count.at({call, static_cast<uint32_t>(microBatch - firstMicroBatch)});
    if (records) {
      word.store(wanted);
      wakeWaiters(word);
      return Status();
    }
    for (uint32_t value;
         static_cast<int32_t>((value = word.load()) - wanted) < 0;) {
      if (control.isAborted())
        return Status::error(kAbortedMessage);
      waitWhile(word, value, kSleepMilliseconds);
    }
    return Status();
  }

private:
  Word &word;
  EventCount count;
  int64_t firstMicroBatch;
  bool records;
  const uint32_t &call;
  ControlPlane &control;
};

} // namespace

Status Executor::prepare(const ExecutableFile &file) {
  microBatches = file.plan().microBatches;
  capacity = kEnqueuedAtOnce;
  for (const Engine &engine : parts.engines)
    engines.push_back(std::make_unique<EngineStreams>(*this, *engine.device));
  ACCEL_RT_RETURN_IF_ERROR(allocate());
  ACCEL_RT_RETURN_IF_ERROR(fillConstants(file));
  microBatches = file.plan().microBatches;
  // Where a watcher looks for what is at hand.
  streamNames = engines[0]->plan.names = {"compute"};
  engines[0]->numbers = {0};
  ACCEL_RT_RETURN_IF_ERROR(bindBodies());
  findCrossings();
  size_t records = 0;
  for (const Body &body : program.bodies)
    for (const Command &command : body.commands)
      records += std::holds_alternative<RecordCommand>(command.what);
  events = records * program.entries.size();
  crossingWords = std::make_unique<Word[]>(events);
  for (size_t i = 0; i < events; ++i)
    crossingWords[i] = 0;
  for (size_t i = 0; i < program.entries.size(); ++i) {
    entries.push_back(bindEntry(program.entries[i], records * i));
    ACCEL_RT_RETURN_IF_ERROR(joinCaptures(entries.back()));
    countEnqueued(entries.back());
  }
  if (parts.tape)
    recorder.emplace(*parts.tape, streamNames.size());
  for (auto &engine : engines) {
    engine->plan.program = &program;
    engine->plan.events = events;
    engine->plan.capacity = capacity;
    engine->plan.mayWorkInJoin = engine == engines.front();
    ACCEL_RT_RETURN_IF_ERROR(
        engine->device.makeStreams(engine->plan, *engine, engine->streams));
  }
  for (BoundEntry &entry : entries)
    for (BoundLoop &loop : entry.loops)
      for (BoundSegment &segment : loop.segments)
        if (segment.isCaptured)
          ACCEL_RT_RETURN_IF_ERROR(engines[segment.engine]->streams->capture(
              segment.steps, segment.graph));
  return Status();
}

Status Executor::allocate() {
  for (const ArenaPlan &wanted : program.arenas) {
    Arena &arena = arenas.emplace_back();
    Address base;
    ACCEL_RT_RETURN_IF_ERROR(wanted.space == "shared"
                                 ? parts.comm->allocate(wanted, base)
                                 : engines[0]->device.allocate(wanted, base));
    arena.bases.resize(engines.size());
    arena.bases[0] = base;
    uint64_t bytes = static_cast<uint64_t>(wanted.bytes);
    char *host = engines[0]->device.find(base);
    for (size_t i = 1; i < engines.size() && host; ++i)
      ACCEL_RT_RETURN_IF_ERROR(
          engines[i]->device.share(host, bytes, arena.bases[i].emplace()));
    if (!wanted.isStored())
      allocated += bytes;
    if (poison)
      ACCEL_RT_RETURN_IF_ERROR(poisonArena(base, wanted.bytes));
  }
  return Status();
}

Status Executor::poisonArena(Address base, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPoisonedAtOnce) {
    uint64_t step =
        static_cast<uint64_t>(std::min(kPoisonedAtOnce, bytes - at));
    ACCEL_RT_RETURN_IF_ERROR(memory().fill(base + at, kPoison, {step}));
    parts.control->self().progress.fetch_add(1, std::memory_order_relaxed);
  }
  return Status();
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
        ACCEL_RT_RETURN_IF_ERROR(memory().upload(
            *arenas[i].bases[0] + buffer.offset, value.data(), {value.size()}));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

Status Executor::findEngine(const std::string &name, size_t &engine) const {
  for (engine = 0; engine < parts.engines.size(); ++engine)
    if (parts.engines[engine].name == name)
      return Status();
  return Status::error("found no device for engine " + inQuotes(name));
}

Status Executor::bindBodies() {
  int64_t number = 0;
  for (const Body &body : program.bodies) {
    size_t engine;
    if (Status status = findEngine(body.engine, engine); !status.ok())
      return Status::error("body " + inQuotes(body.name) + ": " +
                           status.message());
    auto &commands = bodies.emplace_back(body.commands.size());
    for (size_t i = 0; i < commands.size(); ++i) {
      BoundCommand &bound = commands[i];
      bound.work.number = number++;
      numbered.push_back(&bound);
      if (Status status = bind(body.commands[i], engine, bound); !status.ok())
        return Status::error("node " + inQuotes(body.commands[i].node) + ": " +
                             status.message());
      bindEvent(bodies.size() - 1, bound);
      size_t &most = engines[engine]->plan.mostViews;
      most = std::max({most, bound.work.places.size(), size_t(1)});
    }
  }
  return Status();
}

/// Whether a command is carried out by what knows the first engine's memory
/// alone: files and other ranks.
static bool isOfHost(const Command &command) {
  if (auto *coordinate = std::get_if<CoordinateCommand>(&command.what))
    return std::find(coordinate->axes.begin(), coordinate->axes.end(), "mb") !=
           coordinate->axes.end();
  return std::holds_alternative<ReadCommand>(command.what) ||
         std::holds_alternative<WriteCommand>(command.what) ||
         std::holds_alternative<CollectiveCommand>(command.what) ||
         std::holds_alternative<SendCommand>(command.what) ||
         std::holds_alternative<RecvCommand>(command.what) ||
         std::holds_alternative<GroupCommand>(command.what);
}

Status Executor::bind(const Command &command, size_t engine,
                      BoundCommand &bound) {
  bound.command = &command;
  bound.engine = engine;
  EngineStreams &own = *engines[engine];
  std::vector<std::string> &names = own.plan.names;
  auto stream = std::find(names.begin(), names.end(), command.stream);
  bound.stream = static_cast<size_t>(stream - names.begin());
  if (stream == names.end()) {
    names.push_back(command.stream);
    own.numbers.push_back(streamNames.size());
    streamNames.push_back(command.stream);
  }
  const size_t memoryOf = isOfHost(command) ? 0 : engine;
  Status status;
  format::forEachView(command, [&](const View &view) {
    bound.views.push_back(bindView(view, memoryOf));
    bound.work.places.push_back(bound.views.back().place);
    const BufferPlan &buffer = program.buffers[view.buffer];
    if (status.ok() && !arenas[bound.views.back().arena].bases[memoryOf])
      status = Status::error(
          "expected buffer " + inQuotes(buffer.name) + " where engine " +
          inQuotes(parts.engines[engine].name) +
          " reaches it, found it in space " + inQuotes(buffer.space) +
          " of engine " + inQuotes(parts.engines[0].name));
  });
  ACCEL_RT_RETURN_IF_ERROR(status);
  for (const View &view : command.releases) {
    BoundView released = bindView(view, engine);
    // What the engine does not reach the host has moved for it, and an engine
    // that does reach it would have to be asked on a stream of its own. A disk
    // is not written for it.
    if (!poison || !arenas[released.arena].bases[engine] ||
        program.buffers[static_cast<size_t>(view.buffer)].space ==
            kStorageSpace)
      continue;
    Work &fill = bound.poison.emplace_back();
    fill.number = bound.work.number;
    fill.isPoison = true;
    fill.places = {released.place};
    std::vector<int64_t> value(static_cast<size_t>(dtypeBytes(view.dtype)),
                               kPoison);
    ACCEL_RT_RETURN_IF_ERROR(prepareFill(value, view, engine, fill));
  }
  return prepareTask(command, engine, bound.work);
}

Status Executor::prepareTask(const Command &command, size_t engine,
                             Work &work) {
  const auto &what = command.what;
  if (std::holds_alternative<RecordCommand>(what)) {
    work.kind = Work::Kind::Record;
    return Status();
  }
  if (std::holds_alternative<WaitCommand>(what)) {
    work.kind = Work::Kind::Wait;
    return Status();
  }
  if (std::holds_alternative<CollectiveCommand>(what) ||
      std::holds_alternative<SendCommand>(what) ||
      std::holds_alternative<RecvCommand>(what) ||
      std::holds_alternative<GroupCommand>(what))
    return parts.comm->prepare(program, command, work);
  if (std::holds_alternative<ReadCommand>(what) ||
      std::holds_alternative<WriteCommand>(what))
    return parts.transfer(command, work);
  if (auto *coordinate = std::get_if<CoordinateCommand>(&what)) {
    auto [first, step] = findIndex(*coordinate);
    if (step == 0)
      return prepareIndex(first, coordinate->target, engine, work);
    work.kind = Work::Kind::Host;
    work.isCapturable = memory().isHostMemory(work.places[0].base);
    work.task = std::make_unique<CoordinateTask>(memory(), first, step);
    return Status();
  }
  // It waits for the disk, which no capture may.
  if (touchesStorage(program, command)) {
    work.kind = Work::Kind::Host;
    work.isCapturable = false;
  }
  if (std::optional<Command> here = moveToRank(command))
    return engines[engine]->device.prepare(
        *made.emplace_back(std::make_unique<Command>(std::move(*here))),
        work.task);
  return engines[engine]->device.prepare(command, work.task);
}

/// A fill that no plan has.
Status Executor::prepareFill(std::vector<int64_t> value, View view,
                             size_t engine, Work &work) {
  Command &fill = *made.emplace_back(std::make_unique<Command>());
  fill.what = FillCommand{std::move(value), std::move(view)};
  return engines[engine]->device.prepare(fill, work.task);
}

/// Attention of the rank's own rows, or on its keys, as one of rows and keys
/// that begin where they do; none of other commands.
std::optional<Command> Executor::moveToRank(const Command &command) const {
  std::optional<Command> here;
  auto move = [&](auto attention) {
    if (attention.rowSteps.empty() && attention.columnSteps.empty() &&
        attention.stride == 1)
      return;
    for (const auto &[axis, step] : attention.rowSteps)
      attention.rowOffset += coordinates.at(axis) * std::get<int64_t>(step);
    for (const auto &[axis, step] : attention.columnSteps) {
      int64_t size = coordinates.size(axis);
      attention.columnOffset +=
          (coordinates.at(axis) + size - attention.turn % size) % size *
          std::get<int64_t>(step);
    }
    attention.rowSteps.clear();
    attention.columnSteps.clear();
    attention.turn = 0;
    // Where a key stands between two rows, it is the later one that sees it.
    int64_t apart = attention.rowOffset - attention.columnOffset,
            rows = apart / attention.stride -
                   (apart < 0 && apart % attention.stride != 0 ? 1 : 0);
    attention.rowOffset = std::max<int64_t>(rows, 0);
    attention.columnOffset = std::max<int64_t>(-rows, 0);
    attention.stride = 1;
    here = command;
    here->what = std::move(attention);
  };
  if (auto *attention = std::get_if<AttentionCommand>(&command.what))
    move(*attention);
  if (auto *grad = std::get_if<AttentionGradCommand>(&command.what))
    move(*grad);
  return here;
}

/// Of an arena that the engine does not reach the place is nowhere.
Executor::BoundView Executor::bindView(const View &view, size_t engine) const {
  const BufferPlan &buffer = program.buffers[view.buffer];
  BoundView bound;
  bound.arena = 0;
  while (program.arenas[bound.arena].space != buffer.space)
    ++bound.arena;
  bound.bytes = spanBytes(view);
  Place &place = bound.place;
  bound.base = arenas[bound.arena].bases[engine].value_or(Address{});
  place.base = bound.base + (buffer.offset + view.offset);
  place.slots = buffer.slots;
  place.slotStride = buffer.slotStride;
  for (const AxisStride &stride : view.axes) {
    if (stride.axis == "mb")
      place.microBatchStride += stride.bytes;
    else
      place.base = place.base + coordinates.at(stride.axis) * stride.bytes;
  }
  return bound;
}

/// What a record or wait is about; nothing of another command. Events are
/// numbered by body, and in it in the order of their records.
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
  for (size_t i = 0; name && i <= static_cast<size_t>(bound.recorder); ++i)
    for (const Command &command : program.bodies[i].commands)
      if (auto *record = std::get_if<RecordCommand>(&command.what)) {
        if (i == static_cast<size_t>(bound.recorder) && record->event == *name)
          return;
        ++bound.event;
      }
}

/// Which events bodies of one engine record and those of another wait for.
void Executor::findCrossings() {
  for (const auto &body : bodies)
    for (const BoundCommand &command : body) {
      if (command.work.kind != Work::Kind::Wait)
        continue;
      const auto &recorder = bodies[static_cast<size_t>(command.recorder)];
      if (!recorder.empty() && recorder.front().engine != command.engine)
        crossings.insert(command.event);
    }
}

/// The step at which a stream meets one of another engine, beside its own
/// record or in the place of its wait.
Step Executor::addCrossing(const Step &step) {
  Work &work = *crossingWorks.emplace_back(std::make_unique<Work>());
  work.kind = Work::Kind::Host;
  work.number = step.work->number;
  work.task = std::make_unique<CrossingTask>(crossingWords[step.event], step,
                                             call, *parts.control);
  Step crossing = step;
  crossing.work = &work;
  return crossing;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// What one execution takes of the tape at most: waits for others are in what
/// the host does.
static uint64_t spansOf(const Work &work) {
  return 1 + (work.kind == Work::Kind::Host) * Tape::kWaits;
}

Executor::BoundEntry Executor::bindEntry(const Entry &entry,
                                         size_t firstEvent) {
  EventCounts counts(program, entry);
  BoundEntry bound;
  bound.touched.resize(arenas.size());
  bound.runs.resize(numbered.size());
  for (size_t l = 0; l < entry.loops.size(); ++l) {
    const Loop &loop = entry.loops[l];
    BoundLoop &turns = bound.loops.emplace_back();
    turns.trips = static_cast<uint32_t>(loop.trips);
    for (size_t s = 0; s < loop.segments.size(); ++s) {
      const auto &runs = counts.segmentsOf(l)[s];
      BoundSegment &segment = turns.segments.emplace_back();
      std::vector<Step> &steps = segment.steps;
      // Of the segment's engine is every body in it.
      if (!loop.segments[s].runs.empty())
        (void)findEngine(
            program.bodies[loop.segments[s].runs.front().body].engine,
            segment.engine);
      for (const EventCounts::RunRef &run : runs) {
        addRun(loop, run, counts, firstEvent, bound, steps);
        segment.commands += bodies[run.run->body].size();
      }
      for (const Step &step : steps)
        bound.spans += turns.trips * spansOf(*step.work);
      segment.mayCapture = loop.segments[s].capturable;
    }
  }
  return bound;
}

void Executor::countEnqueued(const BoundEntry &entry) {
  const bool isWhole = hasMessages(program);
  size_t enqueued = 0;
  for (const BoundLoop &loop : entry.loops)
    for (const BoundSegment &segment : loop.segments) {
      size_t count = segment.isCaptured ? 1 : segment.steps.size();
      enqueued += loop.trips * count;
      capacity = std::max(capacity, isWhole ? enqueued : count);
    }
}

void Executor::addRun(const Loop &loop, const EventCounts::RunRef &run,
                      const EventCounts &counts, size_t firstEvent,
                      BoundEntry &bound, std::vector<Step> &steps) {
  for (BoundCommand &command : bodies[run.run->body]) {
    Step step;
    step.work = &command.work;
    step.stream = command.stream;
    step.microBatch = run.run->microBatch;
    step.event = firstEvent + command.event;
    step.isInLoop = loop.trips > 1;
    if (command.work.kind == Work::Kind::Record ||
        command.work.kind == Work::Kind::Wait)
      step.count = counts.countOf(run, loop.trips, command.recorder);
    bound.runs[static_cast<size_t>(command.work.number)] +=
        static_cast<uint64_t>(loop.trips);
    bool crosses = step.count.perCall && crossings.count(command.event);
    bool isAbroad =
        crosses && command.work.kind == Work::Kind::Wait &&
        bodies[static_cast<size_t>(command.recorder)].front().engine !=
            command.engine;
    if (!isAbroad)
      steps.push_back(step);
    if (crosses && (isAbroad || command.work.kind == Work::Kind::Record))
      steps.push_back(addCrossing(step));
    for (Work &fill : command.poison) {
      step.work = &fill;
      steps.push_back(step);
    }
    for (const BoundView &view : command.views) {
      // Copies follow each other: after as many turns as there are, a later
      // turn is not further on unless a stride makes it so.
      int64_t last = run.run->microBatch + loop.trips - 1;
      int64_t first =
          std::max(run.run->microBatch, last - (view.place.slots - 1));
      for (int64_t m = first; m <= last; ++m) {
        uint64_t end =
            static_cast<uint64_t>(view.place.at(m) - view.base + view.bytes);
        uint64_t &touched = bound.touched[view.arena];
        touched = std::max(touched, end);
      }
      if (view.place.microBatchStride < 0) {
        uint64_t end = static_cast<uint64_t>(
            view.place.at(run.run->microBatch) - view.base + view.bytes);
        bound.touched[view.arena] = std::max(bound.touched[view.arena], end);
      }
    }
  }
}

} // namespace accel::rt
