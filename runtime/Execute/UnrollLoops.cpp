// Captures that go over the turns of loops: on a device where a replay costs
// little however much it holds, the runs between two reads or writes of files
// are one. What differs between turns is fixed where they are unrolled: the
// micro-batch, the counts of events, and the coordinates of `mb`.

#include "Execute/Executor.h"

namespace accel::rt {

/// The index of a rank over axes in the first micro-batch, and what each later
/// one adds.
std::pair<int64_t, int64_t>
Executor::findIndex(const CoordinateCommand &coordinate) const {
  int64_t first = 0, step = 0;
  for (const std::string &axis : coordinate.axes) {
    int64_t size = axis == "mb" ? microBatches : coordinates.size(axis);
    first = first * size + coordinates.at(axis);
    step = step * size + (axis == "mb");
  }
  return {first, step};
}

/// Fills the bytes of an index, which is the same in every call.
Status Executor::prepareIndex(int64_t index, const View &target, size_t engine,
                              Work &work) {
  std::vector<int64_t> value;
  for (size_t byte = 0; byte < sizeof index; ++byte)
    value.push_back(index >> (8 * byte) & 0xff);
  return prepareFill(std::move(value), target, engine, work);
}

/// Null where a step is something else.
const CoordinateCommand *Executor::asIndex(const Step &step) const {
  const BoundCommand &bound = *numbered[static_cast<size_t>(step.work->number)];
  return step.work == &bound.work
             ? std::get_if<CoordinateCommand>(&bound.command->what)
             : nullptr;
}

/// The plan has kept apart what its target cannot capture; how ranks exchange
/// what they do it does not know. Where micro-batches are known beforehand, so
/// are their indices.
bool Executor::isCapturable(const BoundSegment &segment,
                            bool isUnrolled) const {
  bool capturesHost = engines[segment.engine]->device.capturesHostTasks();
  return segment.mayCapture &&
         std::all_of(
             segment.steps.begin(), segment.steps.end(), [&](const Step &step) {
               return (isUnrolled && asIndex(step)) ||
                      (step.work->isCapturable &&
                       (capturesHost || step.work->kind != Work::Kind::Host));
             });
}

Status Executor::unroll(const BoundSegment &segment, uint32_t turn,
                        BoundSegment &into) {
  into.engine = segment.engine;
  into.mayCapture = segment.mayCapture;
  into.commands += segment.commands;
  for (Step step : segment.steps) {
    step.microBatch += turn;
    if (!step.count.pieces.empty())
      step.count.pieces = {{0, step.count.at({0, turn}) - 1, 0}};
    if (const CoordinateCommand *coordinate = asIndex(step)) {
      auto [first, each] = findIndex(*coordinate);
      Work &fill = *fixedWorks.emplace_back(std::make_unique<Work>());
      fill.number = step.work->number;
      fill.places = step.work->places;
      ACCEL_RT_RETURN_IF_ERROR(prepareIndex(first + each * step.microBatch,
                                            coordinate->target, segment.engine,
                                            fill));
      step.work = &fill;
    }
    into.steps.push_back(std::move(step));
  }
  return Status();
}

/// Joins segments that can be captured as one, and the turns of loops whose
/// segments all are, as long as the device holds so many commands in one.
Status Executor::joinCaptures(BoundEntry &entry) {
  std::vector<BoundLoop> joined;
  BoundSegment *open = nullptr; // the last, if it is captured
  auto add = [&](const BoundSegment &segment, uint32_t turn) {
    size_t most = engines[segment.engine]->device.mostCaptured();
    bool captured = isCapturable(segment, /*isUnrolled=*/true);
    bool goesOn = captured && open && open->engine == segment.engine &&
                  open->commands + segment.commands <= most;
    if (!goesOn) {
      BoundLoop &loop = joined.emplace_back();
      loop.trips = 1;
      open = &loop.segments.emplace_back();
    }
    open->isCaptured = captured;
    Status status = unroll(segment, turn, *open);
    if (!captured)
      open = nullptr;
    return status;
  };
  for (BoundLoop &loop : entry.loops) {
    uint64_t commands = 0;
    bool isWhole = true;
    for (const BoundSegment &segment : loop.segments) {
      commands += uint64_t(loop.trips) * segment.commands;
      isWhole &= isCapturable(segment, /*isUnrolled=*/true) &&
                 segment.engine == loop.segments.front().engine &&
                 commands <= engines[segment.engine]->device.mostCaptured();
    }
    if (!isWhole && loop.trips > 1) {
      for (BoundSegment &segment : loop.segments)
        segment.isCaptured = isCapturable(segment, /*isUnrolled=*/false);
      joined.push_back(std::move(loop));
      open = nullptr;
      continue;
    }
    for (uint32_t turn = 0; turn < loop.trips; ++turn)
      for (const BoundSegment &segment : loop.segments)
        ACCEL_RT_RETURN_IF_ERROR(add(segment, turn));
  }
  entry.loops = std::move(joined);
  return Status();
}

} // namespace accel::rt
