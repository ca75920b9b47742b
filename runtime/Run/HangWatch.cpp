// Comparing the ranks' counters with those of the last look.

#include "Run/HangWatch.h"

#include "Run/Rank.h"
#include "Run/WhereIs.h"

#include <algorithm>
#include <map>

namespace accel::rt {
namespace {

/// What one look counts for at most: the time of a stopped parent is nobody's.
constexpr std::chrono::duration<double> kLongestLook(0.2);

} // namespace

HangWatch::HangWatch(const Executable &plan, ControlCenter &control,
                     double limit)
    : plan(plan), control(control), limit(limit),
      lastProgress(static_cast<size_t>(plan.numRanks())) {}

void HangWatch::rest() {
  lastLook = Clock::now();
  silent = {};
}

bool HangWatch::look() {
  auto now = Clock::now();
  silent +=
      std::min<std::chrono::duration<double>>(now - lastLook, kLongestLook);
  lastLook = now;
  for (size_t rank = 0; rank < lastProgress.size(); ++rank) {
    const RankControl &self = control.rank(static_cast<int64_t>(rank));
    uint64_t progress = self.progress.load() + self.runsDone +
                        self.bytesPopulated + self.weightBytesRead;
    if (progress != lastProgress[rank])
      silent = {};
    lastProgress[rank] = progress;
  }
  return silent.count() > limit;
}

std::string HangWatch::describe(const std::vector<pid_t> &processes) const {
  // A rank that came to fewer barriers than others of its program is not
  // waiting for them, even if it was stopped in a wait that is over; but it may
  // be behind because it waits for a rank of another program, in a message.
  // What ranks do between barriers differs, and so do their counts of it.
  struct Barriers {
    uint64_t least = UINT64_MAX, most = 0;
  };
  std::map<const Program *, Barriers> counts;
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    int64_t number = static_cast<int64_t>(rank);
    uint64_t barriers = control.rank(number).barriers.load();
    Barriers &known = counts[programOf(plan, number)];
    known.least = std::min(known.least, barriers);
    known.most = std::max(known.most, barriers);
  }
  std::string text = "no rank made progress for " +
                     std::to_string(static_cast<int64_t>(silent.count())) +
                     " s: ";
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    const RankControl &self = control.rank(static_cast<int64_t>(rank));
    text += rank ? "; " : "";
    if (self.state.load() == RankControl::Finished) {
      text += "rank " + std::to_string(rank) + ", which has finished";
      continue;
    }
    int64_t number = static_cast<int64_t>(rank);
    // A rank that was stopped in a wait stands for another reason.
    std::string why = whyItStands(processes[rank]);
    auto [least, most] = counts[programOf(plan, number)];
    bool waits = why.empty() && self.waiting.load() &&
                 (self.barriers.load() > least || least == most ||
                  isInMessage(plan, self, number)) &&
                 canOnlyWait(plan, self, number);
    text += whereIs(plan, self, number, waits) + why;
  }
  return text;
}

} // namespace accel::rt
