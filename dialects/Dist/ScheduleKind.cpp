// Reads the names of schedules and writes the orders that they stand for.

#include "dialects/Dist/ScheduleKind.h"

using namespace accel::dist;

std::optional<ScheduleKind> ScheduleKind::parse(llvm::StringRef name) {
  if (name == "sequential")
    return ScheduleKind(1);
  if (name == "gpipe")
    return ScheduleKind(0);
  int64_t inFlight;
  if (name.consume_front("1f1b:") && !name.getAsInteger(10, inFlight) &&
      inFlight >= 1)
    return ScheduleKind(inFlight);
  return std::nullopt;
}

llvm::SmallVector<SchedulePart> ScheduleKind::list(int64_t microBatches) const {
  constexpr TaskKind F = TaskKind::forward, B = TaskKind::backward;
  int64_t ahead = getInFlight(microBatches) - 1;
  assert(ahead < microBatches && "more in flight than there are");
  llvm::SmallVector<SchedulePart> parts;
  if (ahead > 0)
    parts.push_back({ahead, {{F, 0}}});
  parts.push_back({microBatches - ahead, {{F, ahead}, {B, 0}}});
  if (ahead > 0)
    parts.push_back({ahead, {{B, microBatches - ahead}}});
  return parts;
}
