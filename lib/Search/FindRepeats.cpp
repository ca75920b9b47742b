// Periods are guessed by how far alike items lie apart; each is tried on all.

#include "FindRepeats.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace accel::search;

/// Periods that are tried: those by which most items have their next like.
static constexpr size_t kPeriods = 64;

static std::vector<unsigned> guessPeriods(llvm::ArrayRef<size_t> hashes) {
  // By hash; its highest bits are what the map keeps for itself.
  llvm::DenseMap<size_t, unsigned> last;
  llvm::MapVector<unsigned, unsigned> counts;
  for (auto [position, hash] : llvm::enumerate(hashes)) {
    auto [known, isNew] = last.try_emplace(hash >> 2, position);
    if (!isNew)
      ++counts[position - known->second];
    known->second = position;
  }
  auto ordered = counts.takeVector();
  llvm::stable_sort(ordered, [](const auto &one, const auto &other) {
    return one.second > other.second;
  });
  std::vector<unsigned> periods;
  for (auto &[period, count] : ordered)
    if (periods.size() < kPeriods)
      periods.push_back(period);
  return periods;
}

std::vector<Repeat> accel::search::findRepeats(llvm::ArrayRef<size_t> hashes,
                                               unsigned fewest) {
  std::vector<Repeat> all;
  for (unsigned period : guessPeriods(hashes)) {
    unsigned begin = 0;
    for (unsigned at = 0; at + period <= hashes.size(); ++at) {
      if (at + period < hashes.size() && hashes[at] == hashes[at + period])
        continue;
      Repeat repeat{begin, period, at + period - begin};
      if (repeat.countCopies() >= fewest)
        all.push_back(repeat);
      begin = at + 1;
    }
  }
  llvm::stable_sort(all, [](const Repeat &one, const Repeat &other) {
    return one.length != other.length ? one.length > other.length
                                      : one.period < other.period;
  });
  std::vector<Repeat> chosen;
  std::vector<bool> isTaken(hashes.size());
  for (Repeat repeat : all) {
    // Of what is left of it between those that are longer.
    unsigned end = repeat.begin + repeat.length;
    while (repeat.begin < end && isTaken[repeat.begin])
      ++repeat.begin;
    auto begin = isTaken.begin() + repeat.begin;
    repeat.length = std::find(begin, isTaken.begin() + end, true) - begin;
    if (repeat.countCopies() < fewest)
      continue;
    std::fill(begin, begin + repeat.length, true);
    chosen.push_back(repeat);
  }
  return chosen;
}
