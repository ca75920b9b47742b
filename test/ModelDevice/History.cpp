// Ranges of bytes with one history, cut as accesses meet them. The order is
// that of C. Flanagan and S. N. Freund, "FastTrack: efficient and precise
// dynamic race detection" (PLDI 2009): of writes the last is enough, of reads
// the last of each thread.

#include "History.h"

#include <algorithm>

namespace accel::rt::model {
namespace {

/// Whether `event` has happened before `by`, whose clock this is, or is it.
bool isBefore(const Event &event, const Event &by, const Clock &clock) {
  return event.index == 0 || event.stream == by.stream ||
         clock[event.stream] >= event.index;
}

} // namespace

History::Ranges::iterator History::split(uint64_t at) {
  auto next = ranges.lower_bound(at);
  if (next == ranges.begin() || (next != ranges.end() && next->first == at))
    return next;
  Range &left = std::prev(next)->second;
  if (left.end <= at)
    return next;
  Range right = left;
  left.end = at;
  return ranges.emplace_hint(next, at, std::move(right));
}

History::Span History::cut(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  uint64_t at = begin;
  for (auto next = ranges.lower_bound(begin); at < end; ++next) {
    uint64_t stop = next == ranges.end() ? end : std::min(next->first, end);
    if (at < stop) {
      Range gap;
      gap.end = stop;
      next = ranges.emplace_hint(next, at, std::move(gap));
    }
    at = next->second.end;
  }
  return {ranges.lower_bound(begin), ranges.lower_bound(end)};
}

void History::writeByHost(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  auto [first, last] = cut(begin, end);
  last = ranges.erase(first, last);
  Range range;
  range.end = end;
  range.isWritten = true;
  ranges.emplace_hint(last, begin, std::move(range));
}

std::optional<Conflict> History::read(uint64_t begin, uint64_t end,
                                      const Event &by, const Clock &clock,
                                      int64_t root, bool needsValue) {
  if (begin >= end)
    return std::nullopt;
  auto [first, last] = cut(begin, end);
  for (; first != last; ++first) {
    Range &range = first->second;
    auto conflict = [&range, at = first->first](Conflict::Kind kind) {
      return Conflict{kind, range.writer, true, at, range.end};
    };
    // What it finds depends on the order: that comes first.
    if (!isBefore(range.writer, by, clock))
      return conflict(Conflict::Kind::Race);
    if (needsValue && range.isReleased)
      return conflict(Conflict::Kind::Released);
    if (needsValue && !range.isWritten)
      return conflict(Conflict::Kind::Unwritten);
    if (needsValue && root >= 0 && range.root >= 0 && range.root != root)
      return conflict(Conflict::Kind::Overwritten);
    auto own = std::find_if(
        range.readers.begin(), range.readers.end(),
        [&](const Event &reader) { return reader.stream == by.stream; });
    if (own == range.readers.end())
      range.readers.push_back(by);
    else
      *own = by;
  }
  return std::nullopt;
}

std::optional<Conflict> History::overwrite(uint64_t begin, uint64_t end,
                                           Range with, const Event &by,
                                           const Clock &clock) {
  if (begin >= end)
    return std::nullopt;
  auto [first, last] = cut(begin, end);
  for (auto at = first; at != last; ++at) {
    const Range &range = at->second;
    if (!isBefore(range.writer, by, clock))
      return Conflict{Conflict::Kind::Race, range.writer, true, at->first,
                      range.end};
    for (const Event &reader : range.readers)
      if (!isBefore(reader, by, clock))
        return Conflict{Conflict::Kind::Race, reader, false, at->first,
                        range.end};
  }
  last = ranges.erase(first, last);
  ranges.emplace_hint(last, begin, std::move(with));
  return std::nullopt;
}

std::optional<Conflict> History::write(uint64_t begin, uint64_t end,
                                       const Event &by, const Clock &clock,
                                       int64_t root) {
  Range range;
  range.end = end;
  range.isWritten = true;
  range.root = root;
  range.writer = by;
  return overwrite(begin, end, std::move(range), by, clock);
}

std::optional<Conflict> History::release(uint64_t begin, uint64_t end,
                                         const Event &by, const Clock &clock) {
  Range range;
  range.end = end;
  range.isReleased = true;
  range.writer = by;
  return overwrite(begin, end, std::move(range), by, clock);
}

} // namespace accel::rt::model
