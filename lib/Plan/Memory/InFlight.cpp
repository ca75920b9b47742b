// Follows each micro-batch from the first run that touches a buffer to the
// last.

#include "InFlight.h"

#include <map>
#include <set>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
/// The first and the last run, by their places in the list, in which a micro-
/// batch needs what one has written.
struct Span {
  int64_t microBatch;
  size_t first, last;
};
} // namespace

InFlight::InFlight(EntryOp entry) : runs(listRuns(entry)) {
  for (const RunTurn &run : runs)
    ++count[run.run.getTaskAttr().getAttr()];
}

int64_t InFlight::countCopies(ArrayRef<BodyUse> uses) const {
  llvm::DenseMap<StringAttr, bool> begins;
  for (const BodyUse &use : uses)
    begins[use.body] = use.begins;
  std::vector<Span> spans;
  llvm::DenseMap<int64_t, size_t> latest; // by micro-batch
  for (auto [place, run] : llvm::enumerate(runs)) {
    auto user = begins.find(run.run.getTaskAttr().getAttr());
    if (user == begins.end())
      continue;
    int64_t batch = run.getMicroBatch();
    auto [span, isNew] = latest.try_emplace(batch, spans.size());
    if (isNew || user->second) {
      span->second = spans.size();
      spans.push_back({batch, place, place});
    }
    spans[span->second].last = place;
  }
  // A run is of one micro-batch: no two begin, and no two end, in one.
  std::map<size_t, std::pair<int64_t, bool>> events;
  for (const Span &span : spans) {
    events[2 * span.first] = {span.microBatch, true};
    events[2 * span.last + 1] = {span.microBatch, false};
  }
  // Of those that have begun and not ended, the oldest and the newest.
  std::set<int64_t> alive;
  int64_t copies = 1;
  for (auto &[place, event] : events) {
    auto [batch, begin] = event;
    if (!begin) {
      alive.erase(batch);
      continue;
    }
    alive.insert(batch);
    copies = std::max(copies, *alive.rbegin() - *alive.begin() + 1);
  }
  return copies;
}
