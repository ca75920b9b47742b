// What an executor does before its first run: arenas, constants, tasks, the
// places of views, and the steps of every entry.

#include "Execute/Executor.h"

#include "Format/Views.h"

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

/// Overwrites what nobody reads any more.
class PoisonTask : public HostTask {
public:
  PoisonTask(Memory &memory, const std::vector<View> &released)
      : memory(memory) {
    for (const View &view : released)
      views.push_back({PairLayout(view.shape, view.strides, view.strides),
                       dtypeBytes(view.dtype)});
  }
  Status run(const Address *addresses, int64_t) override {
    Status status;
    for (size_t i = 0; i < views.size(); ++i)
      views[i].layout.forRange(
          0, views[i].layout.elements(),
          [&](int64_t at, int64_t, int64_t stride, int64_t, int64_t count) {
            int64_t bytes = views[i].bytes;
            if (status.ok())
              status = memory.fill(addresses[i] + at * bytes, kPoison,
                                   Rows::ofElements(bytes, count, stride, 1));
          });
    return status;
  }

private:
  struct Released {
    PairLayout layout;
    int64_t bytes;
  };
  Memory &memory;
  std::vector<Released> views;
};

} // namespace

Status Executor::prepare(const ExecutableFile &file) {
  ACCEL_RT_RETURN_IF_ERROR(allocate());
  ACCEL_RT_RETURN_IF_ERROR(fillConstants(file));
  microBatches = file.plan().microBatches;
  plan.names = {"compute"};
  plan.program = &program;
  plan.capacity = kEnqueuedAtOnce;
  ACCEL_RT_RETURN_IF_ERROR(bindBodies());
  for (const Entry &entry : program.entries) {
    size_t firstEvent = plan.events;
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands)
        plan.events += std::holds_alternative<RecordCommand>(command.what);
    entries.push_back(bindEntry(entry, firstEvent));
  }
  if (parts.tape)
    recorder.emplace(*parts.tape, plan.names.size());
  ACCEL_RT_RETURN_IF_ERROR(parts.device->makeStreams(plan, *this, streams));
  for (BoundEntry &entry : entries)
    for (BoundLoop &loop : entry.loops)
      for (BoundSegment &segment : loop.segments)
        if (segment.isCaptured)
          ACCEL_RT_RETURN_IF_ERROR(
              streams->capture(segment.steps, segment.graph));
  return Status();
}

Status Executor::allocate() {
  for (const ArenaPlan &wanted : program.arenas) {
    Arena &arena = arenas.emplace_back();
    ACCEL_RT_RETURN_IF_ERROR(wanted.space == "shared"
                                 ? parts.comm->allocate(wanted, arena.base)
                                 : parts.device->allocate(wanted, arena.base));
    allocated += static_cast<uint64_t>(wanted.bytes);
    if (poison)
      ACCEL_RT_RETURN_IF_ERROR(poisonArena(arena.base, wanted.bytes));
  }
  return Status();
}

Status Executor::poisonArena(Address base, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPoisonedAtOnce) {
    uint64_t step =
        static_cast<uint64_t>(std::min(kPoisonedAtOnce, bytes - at));
    ACCEL_RT_RETURN_IF_ERROR(parts.device->fill(base + at, kPoison, {step}));
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
        ACCEL_RT_RETURN_IF_ERROR(parts.device->upload(
            arenas[i].base + buffer.offset, value.data(), {value.size()}));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

Status Executor::bindBodies() {
  int64_t number = 0;
  for (const Body &body : program.bodies) {
    auto &commands = bodies.emplace_back(body.commands.size());
    for (size_t i = 0; i < commands.size(); ++i) {
      BoundCommand &bound = commands[i];
      bound.work.number = bound.poison.number = number++;
      numbered.push_back(&bound);
      if (Status status = bind(body.commands[i], bound); !status.ok())
        return Status::error("node " + inQuotes(body.commands[i].node) + ": " +
                             status.message());
      bindEvent(bodies.size() - 1, bound);
      plan.mostViews = std::max({plan.mostViews, bound.work.places.size(),
                                 bound.poison.places.size()});
    }
  }
  return Status();
}

Status Executor::bind(const Command &command, BoundCommand &bound) {
  bound.command = &command;
  auto stream = std::find(plan.names.begin(), plan.names.end(), command.stream);
  bound.stream = static_cast<size_t>(stream - plan.names.begin());
  if (stream == plan.names.end())
    plan.names.push_back(command.stream);
  format::forEachView(command, [&](const View &view) {
    bound.views.push_back(bindView(view));
    bound.work.places.push_back(bound.views.back().place);
  });
  if (poison && !command.releases.empty()) {
    bound.poison.kind = Work::Kind::Host;
    bound.poison.isPoison = true;
    bound.poison.task =
        std::make_unique<PoisonTask>(*parts.device, command.releases);
    for (const View &view : command.releases)
      bound.poison.places.push_back(bindView(view).place);
  }
  return prepareTask(command, bound.work);
}

Status Executor::prepareTask(const Command &command, Work &work) {
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
    int64_t first = 0, step = 0;
    for (const std::string &axis : coordinate->axes) {
      int64_t size = axis == "mb" ? microBatches : coordinates.size(axis);
      first = first * size + coordinates.at(axis);
      step = step * size + (axis == "mb");
    }
    work.kind = Work::Kind::Host;
    work.task = std::make_unique<CoordinateTask>(*parts.device, first, step);
    return Status();
  }
  if (std::optional<Command> here = moveToRank(command))
    return parts.device->prepare(*here, work.task);
  return parts.device->prepare(command, work.task);
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

Executor::BoundView Executor::bindView(const View &view) const {
  const BufferPlan &buffer = program.buffers[view.buffer];
  BoundView bound;
  bound.arena = 0;
  while (program.arenas[bound.arena].space != buffer.space)
    ++bound.arena;
  bound.bytes = spanBytes(view);
  Place &place = bound.place;
  place.base = arenas[bound.arena].base + (buffer.offset + view.offset);
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

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// What one execution takes of the tape at most: waits for others are in what
/// the host does.
static uint64_t spansOf(const Work &work) {
  return 1 + (work.kind == Work::Kind::Host && !work.isPoison) * Tape::kWaits;
}

/// The plan has kept apart what its target cannot capture; how ranks exchange
/// what they do it does not know.
bool Executor::isCapturable(const std::vector<Step> &steps) const {
  return std::all_of(steps.begin(), steps.end(), [&](const Step &step) {
    return step.work->isCapturable && (step.work->kind != Work::Kind::Host ||
                                       parts.device->capturesHostTasks());
  });
}

Executor::BoundEntry Executor::bindEntry(const Entry &entry,
                                         size_t firstEvent) {
  EventCounts counts(program, entry);
  BoundEntry bound;
  const bool isWhole = hasMessages(program);
  size_t enqueued = 0;
  bound.touched.resize(arenas.size());
  for (size_t l = 0; l < entry.loops.size(); ++l) {
    const Loop &loop = entry.loops[l];
    BoundLoop &turns = bound.loops.emplace_back();
    turns.trips = static_cast<uint32_t>(loop.trips);
    for (size_t s = 0; s < loop.segments.size(); ++s) {
      const auto &runs = counts.segmentsOf(l)[s];
      BoundSegment &segment = turns.segments.emplace_back();
      std::vector<Step> &steps = segment.steps;
      for (const EventCounts::RunRef &run : runs)
        addRun(loop, run, counts, firstEvent, bound, steps);
      for (const Step &step : steps)
        bound.spans += turns.trips * spansOf(*step.work);
      segment.isCaptured =
          loop.segments[s].capturable && isCapturable(segment.steps);
      enqueued += static_cast<size_t>(turns.trips) *
                  (segment.isCaptured ? 1 : steps.size());
      plan.capacity =
          std::max(plan.capacity, isWhole ? enqueued : steps.size());
    }
  }
  return bound;
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
    steps.push_back(step);
    if (command.poison.task) {
      step.work = &command.poison;
      steps.push_back(step);
    }
    for (const BoundView &view : command.views) {
      // Copies follow each other: after as many turns as there are, a later
      // turn is not further on unless a stride makes it so.
      int64_t last = run.run->microBatch + loop.trips - 1;
      int64_t first =
          std::max(run.run->microBatch, last - (view.place.slots - 1));
      for (int64_t m = first; m <= last; ++m) {
        uint64_t end = static_cast<uint64_t>(
            view.place.at(m) - arenas[view.arena].base + view.bytes);
        uint64_t &touched = bound.touched[view.arena];
        touched = std::max(touched, end);
      }
      if (view.place.microBatchStride < 0) {
        uint64_t end =
            static_cast<uint64_t>(view.place.at(run.run->microBatch) -
                                  arenas[view.arena].base + view.bytes);
        bound.touched[view.arena] = std::max(bound.touched[view.arena], end);
      }
    }
  }
}

} // namespace accel::rt
