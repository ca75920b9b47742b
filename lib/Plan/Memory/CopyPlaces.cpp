// Plays the commands of a body and its copies against each other: forwards for
// those that are to end early, backwards for those that are to begin late.

#include "CopyPlaces.h"

#include "lib/Plan/CommandSeconds.h"

#include <limits>
#include <map>
#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// The copies of so many ops are under way at once at most, where copies take
/// longer than the computation: it waits for them, and more of them at once
/// would not make that shorter. About those of a layer.
static constexpr size_t kMostUnderWay = 8;
/// How much longer than by the table a copy is allowed to take: its figures are
/// round.
static constexpr double kSlack = 2;

CopyPlaces::CopyPlaces(Copies copies, BodyOp body, const BufferTable &buffers,
                       SymbolTableCollection &symbols)
    : copies(copies) {
  for (Operation &op : body.getBody().front()) {
    places[&op] = ops.size();
    ops.push_back(&op);
    double &own = seconds.emplace_back(0);
    op.walk([&](CommandOpInterface command) {
      own += getCommandSeconds(command, buffers, symbols);
    });
  }
}

void CopyPlaces::add(Operation *op, int64_t bytes) {
  if (copied.empty() || copied.back().op != op) {
    numbers[op] = copied.size();
    copied.push_back({op, places.lookup(op)});
  }
  copied.back().seconds += getCopySeconds(bytes, Space::host);
}

void CopyPlaces::place() {
  if (copies == Copies::Behind)
    placeBehind();
  else
    placeAhead();
}

/// Each copy begins when its value is there and the copy before it has ended.
void CopyPlaces::placeBehind() {
  double now = 0, stream = 0;
  std::vector<double> ends;
  size_t next = 0, gone = 0; // of `copied`
  for (size_t place = 0; place < ops.size(); ++place) {
    bool isNext = next < copied.size() && copied[next].place == place;
    if (isNext && next >= kMostUnderWay)
      now = std::max(now, ends[next - kMostUnderWay]);
    for (; gone < next && ends[gone] <= now; ++gone)
      copied[gone].other = ops[place];
    now += seconds[place];
    if (!isNext)
      continue;
    stream = std::max(stream, now) + kSlack * copied[next].seconds;
    ends.push_back(stream);
    ++next;
  }
  for (auto [copy, end] : llvm::zip_equal(copied, ends))
    copy.away = now - end;
}

/// Each copy ends when its reader begins, or the next copy.
void CopyPlaces::placeAhead() {
  std::vector<double> ends(ops.size());
  std::partial_sum(seconds.begin(), seconds.end(), ends.begin());
  double limit = ends.empty() ? 0 : ends.back();
  for (size_t number = copied.size(); number-- > 0;) {
    Copied &copy = copied[number];
    limit = std::min(limit, ends[copy.place] - seconds[copy.place]);
    double begin = limit - kSlack * copy.seconds;
    if (number >= kMostUnderWay)
      begin = std::max(begin, ends[copied[number - kMostUnderWay].place]);
    copy.away = begin;
    if (begin < 0)
      continue;
    limit = begin;
    auto after = llvm::upper_bound(ends, begin);
    size_t place = std::min<size_t>(after - ends.begin(), copy.place);
    copy.other = place == 0 ? nullptr : ops[place - 1];
  }
}

double CopyPlaces::getWaiting(ArrayRef<Operation *> copiedFor) const {
  double now = 0, stream = 0;
  std::multimap<size_t, const Copied *> begins; ///< by the place in front of it
  std::map<size_t, double> ends;                ///< by the place behind it
  for (Operation *op : copiedFor) {
    const Copied &copy = at(op);
    bool isBehind = copies == Copies::Behind;
    Operation *first = isBehind ? op : copy.other;
    begins.insert({first ? places.lookup(first) + 1 : 0, &copy});
  }
  for (size_t place = 0; place <= ops.size(); ++place) {
    auto [first, last] = begins.equal_range(place);
    for (auto begun = first; begun != last; ++begun) {
      const Copied &copy = *begun->second;
      stream = std::max(stream, now) + copy.seconds;
      Operation *end = copies == Copies::Behind ? copy.other : copy.op;
      double &latest = ends[end ? places.lookup(end) : ops.size()];
      latest = std::max(latest, stream);
    }
    if (auto end = ends.find(place); end != ends.end())
      now = std::max(now, end->second);
    if (place < ops.size())
      now += seconds[place];
  }
  double alone = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return now > 0 ? (now - alone) / now : 0;
}
