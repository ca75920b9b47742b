// Dynamic programming by chunk and place, thrice: how long the longest must be,
// how large then the largest, and which division of those is the most even.

#include "Balance.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <limits>

using namespace accel;
using namespace accel::stages;

namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();

class Divider {
public:
  Divider(const Row &row, llvm::ArrayRef<double> copies)
      : row(row), copies(copies), stops{{0, 0}} {
    stops.insert(stops.end(), row.places.begin(), row.places.end());
    stops.push_back({row.work.size() - 1, 0});
  }

  std::vector<size_t> run();

private:
  struct Stretch {
    size_t chunk, begin, end; ///< of stops
  };
  double getWork(const Stretch &stretch) const {
    return row.work[stops[stretch.end].at] - row.work[stops[stretch.begin].at];
  }
  double getLength(const Stretch &stretch) const {
    return getWork(stretch) + stops[stretch.begin].sent +
           stops[stretch.end].sent;
  }
  double getBytes(const Stretch &stretch) const {
    size_t begin = stops[stretch.begin].at, end = stops[stretch.end].at;
    return row.states[end] - row.states[begin] +
           copies[stretch.chunk] * (row.kept[end] - row.kept[begin]);
  }

  /// The least that chunks come to, `extend` says of one more behind others;
  /// each no longer than `longest`, and no larger than `largest`.
  double
  minimise(llvm::function_ref<double(double before, const Stretch &)> extend);

  const Row &row;
  llvm::ArrayRef<double> copies;
  std::vector<Row::Place> stops;
  double longest = kNever, largest = kNever;
  std::vector<std::vector<size_t>> from; ///< by chunks and last stop
};
} // namespace

double Divider::minimise(
    llvm::function_ref<double(double before, const Stretch &)> extend) {
  from.assign(copies.size(), std::vector<size_t>(stops.size()));
  std::vector<double> before(stops.size(), kNever), best;
  before[0] = 0;
  for (size_t chunk = 0; chunk < copies.size(); ++chunk) {
    best.assign(stops.size(), kNever);
    for (size_t end = 1; end < stops.size(); ++end)
      for (size_t begin = end; begin-- > 0;) {
        Stretch stretch{chunk, begin, end};
        // Those that begin before are longer still. While the longest is looked
        // for, none that is longer than what has been found is better.
        if (getWork(stretch) > (longest == kNever ? best[end] : longest))
          break;
        if (before[begin] == kNever || getLength(stretch) > longest ||
            getBytes(stretch) > largest)
          continue;
        double all = extend(before[begin], stretch);
        if (all < best[end]) {
          best[end] = all;
          from[chunk][end] = begin;
        }
      }
    before.swap(best);
  }
  return before.back();
}

std::vector<size_t> Divider::run() {
  longest = minimise([&](double before, const Stretch &stretch) {
              return std::max(before, getLength(stretch));
            }) *
            (1 + kAsLong);
  largest = minimise([&](double before, const Stretch &stretch) {
    return std::max(before, getBytes(stretch));
  });
  minimise([&](double before, const Stretch &stretch) {
    return before + getLength(stretch) * getLength(stretch);
  });
  std::vector<size_t> ends;
  size_t at = stops.size() - 1;
  for (size_t chunk = copies.size(); chunk-- > 1;) {
    at = from[chunk][at];
    ends.push_back(stops[at].at);
  }
  std::reverse(ends.begin(), ends.end());
  return ends;
}

std::optional<std::vector<size_t>>
stages::balance(const Row &row, llvm::ArrayRef<double> copies) {
  if (row.places.size() + 1 < copies.size())
    return std::nullopt;
  return Divider(row, copies).run();
}
