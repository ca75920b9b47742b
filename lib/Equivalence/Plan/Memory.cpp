// Reading and writing elements: whole ranges, and ranges of rows in which other
// tensors have columns of their own.

#include "Memory.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// Rows that are written one by one where no period fits.
static constexpr int64_t kMostRows = 4096;

namespace {
/// A digit of a written view: apart in memory, and in the written term.
struct WrittenStep {
  int64_t size, stride, weight;
};
} // namespace

/// The digits of a view, those far apart in memory first.
static SmallVector<WrittenStep> sortSteps(const IndexMap &map) {
  SmallVector<WrittenStep> steps;
  int64_t weight = 1;
  for (Step step : llvm::reverse(map.steps)) {
    steps.push_back({step.size, step.stride, weight});
    weight *= step.size;
  }
  llvm::stable_sort(steps, [](const WrittenStep &lhs, const WrittenStep &rhs) {
    return lhs.stride > rhs.stride;
  });
  return steps;
}

/// Elements without gaps that the digits apart in memory end with; `rows` are
/// the others.
static int64_t takeRow(ArrayRef<WrittenStep> steps,
                       ArrayRef<WrittenStep> &rows) {
  int64_t width = 1;
  size_t outer = steps.size();
  while (outer > 0 && steps[outer - 1].stride == width)
    width *= steps[--outer].size;
  rows = steps.take_front(outer);
  return width;
}

bool Place::touches(const Place &other) const {
  if (space != other.space || first() >= other.last() ||
      other.first() >= last())
    return false;
  // Of one micro-batch's copy and anything else, nobody knows which copy it is.
  if (copies != other.copies)
    return true;
  if (begin >= other.end || other.begin >= end)
    return false;
  if (elementBytes != other.elementBytes ||
      (other.begin - begin) % elementBytes != 0)
    return true;
  SmallVector<WrittenStep> steps = sortSteps(map),
                           otherSteps = sortSteps(other.map);
  ArrayRef<WrittenStep> rows, otherRows;
  int64_t width = takeRow(steps, rows),
          otherWidth = takeRow(otherSteps, otherRows);
  if (rows.empty())
    return true;
  int64_t period = rows.back().stride;
  auto isEven = [&](auto &list) {
    return llvm::all_of(
        list, [&](const auto &each) { return each.stride % period == 0; });
  };
  if (period <= 0 || !isEven(rows) || !isEven(otherRows) ||
      !isEven(map.coordinates) || !isEven(other.map.coordinates))
    return true;
  int64_t column = (other.begin - begin) / elementBytes % period;
  column += column < 0 ? period : 0;
  return column < width || column + otherWidth > period;
}

/// Makes `at` a boundary between entries; an element that it cuts is lost.
void Memory::cut(Entries &entries, int64_t at) {
  auto next = entries.lower_bound(at);
  if (next == entries.begin())
    return;
  auto left = std::prev(next);
  Entry old = left->second;
  if (old.end <= at)
    return;
  int64_t before = (at - left->first) / old.elementBytes;
  int64_t whole = left->first + before * old.elementBytes;
  left->second.end = whole;
  if (whole == left->first)
    entries.erase(left);
  if (whole != at) {
    ++before;
    whole += old.elementBytes;
  }
  if (whole < old.end) {
    old.first += before;
    entries.emplace(whole, old);
  }
}

LogicalResult Memory::erase(plan::Space space, int64_t begin, int64_t end,
                            Operation *op) {
  Entries &entries = arenas[space];
  cut(entries, begin);
  cut(entries, end);
  auto at = entries.lower_bound(begin);
  while (at != entries.end() && at->first < end) {
    // What was there before, and was read, must be there the next time.
    for (unsigned begin : scopes)
      if (at->second.written < begin && at->second.read >= begin)
        return op->emitOpError()
               << "overwrites what was read, and is read again when it runs "
                  "the "
                  "next time: it was there before what repeats began";
    at = entries.erase(at);
  }
  llvm::erase_if(ownPieces, [&](const OwnPiece &own) {
    return own.place.space == space && own.place.begin < end &&
           begin < own.place.end;
  });
  return success();
}

void Memory::forgetWritten() {
  for (auto &[space, entries] : arenas)
    for (auto at = entries.begin(); at != entries.end();)
      at = at->second.written >= scopes.back() ? entries.erase(at)
                                               : std::next(at);
  llvm::erase_if(ownPieces, [&](const OwnPiece &own) {
    return own.written >= scopes.back();
  });
}

LogicalResult Memory::put(plan::Space space, int64_t begin, int64_t end,
                          TermId term, int64_t elementBytes, Operation *op) {
  if (failed(erase(space, begin, end, op)))
    return failure();
  arenas[space][begin] = {end, term, 0, elementBytes, now, 0};
  return success();
}

TermId Memory::readRange(plan::Space space, int64_t begin, int64_t end,
                         Type element, int64_t bytes, bool ofThisTime) {
  Entries &entries = arenas[space];
  SmallVector<Term::Part> parts;
  auto skipTo = [&](int64_t at) {
    int64_t count = llvm::divideCeil(at - begin, bytes);
    parts.push_back({count, terms.undefined(count, element)});
    begin += count * bytes;
  };
  auto next = entries.upper_bound(begin);
  if (next != entries.begin() && std::prev(next)->second.end > begin)
    --next;
  while (begin < end) {
    if (next == entries.end() || next->first >= end) {
      skipTo(end);
      break;
    }
    if (next->first > begin)
      skipTo(next->first);
    Entry &entry = next->second;
    int64_t stop = std::min(entry.end, end);
    if (!ofThisTime)
      entry.read = now;
    if ((ofThisTime && entry.written < scopes.back()) ||
        terms.get(entry.term).element != element ||
        (begin - next->first) % bytes != 0 || (stop - begin) % bytes != 0) {
      if (stop > begin)
        skipTo(stop);
    } else {
      IndexMap map = IndexMap::dense((stop - begin) / bytes);
      map.offset = entry.first + (begin - next->first) / bytes;
      parts.push_back({(stop - begin) / bytes, terms.select(entry.term, map)});
      begin = stop;
    }
    ++next;
  }
  return terms.join(1, parts);
}

/// What a view picks of a rank's own piece, which lies without gaps: positions
/// in it; none if the view is of other ranks' bytes as well.
static std::optional<IndexMap> findWithin(const Place &own,
                                          const Place &place) {
  int64_t count = own.map.count(), into = place.begin - own.begin;
  IndexMap dense = IndexMap::dense(count), within = place.map;
  dense.offset = own.map.offset;
  dense.coordinates = own.map.coordinates;
  if (own.space != place.space || own.copies != place.copies ||
      own.element != place.element || !(own.map == dense) ||
      into % place.elementBytes != 0)
    return std::nullopt;
  for (const Coordinate &each : own.map.coordinates) {
    auto *found = llvm::find(within.coordinates, each);
    if (found == within.coordinates.end())
      return std::nullopt;
    within.coordinates.erase(found);
  }
  within.offset += into / place.elementBytes - own.map.offset;
  auto [first, last] = within.range();
  if (first < 0 || last >= count)
    return std::nullopt;
  return within;
}

TermId Memory::read(const Place &place) {
  if (place.begin >= place.end)
    return terms.empty(place.element);
  if (!place.map.coordinates.empty())
    for (const OwnPiece &own : ownPieces) {
      if (own.written < scopes.back())
        continue;
      if (own.place.isSameAs(place))
        return own.term;
      if (std::optional<IndexMap> within = findWithin(own.place, place))
        return terms.select(own.term, *within);
    }
  // Mostly it is one entry, of which the view picks elements.
  Entries &entries = arenas[place.space];
  auto at = entries.upper_bound(place.begin);
  if (at != entries.begin()) {
    auto &[begin, entry] = *std::prev(at);
    int64_t into = place.begin - begin;
    if (place.end <= entry.end && into % place.elementBytes == 0 &&
        terms.get(entry.term).element == place.element) {
      entry.read = now;
      IndexMap map = place.map;
      map.offset += entry.first + into / place.elementBytes;
      return terms.select(entry.term, map);
    }
  }
  TermId range = readRange(place.space, place.begin, place.end, place.element,
                           place.elementBytes, /*ofThisTime=*/false);
  return terms.select(range, place.map);
}

std::optional<std::pair<TermId, int64_t>>
Memory::findWhole(const Place &place) const {
  auto found = arenas.find(place.space);
  if (found == arenas.end() || place.begin >= place.end ||
      !(place.map == IndexMap::dense(place.map.count())))
    return std::nullopt;
  auto at = found->second.upper_bound(place.begin);
  if (at == found->second.begin())
    return std::nullopt;
  auto &[begin, entry] = *std::prev(at);
  int64_t into = place.begin - begin;
  if (place.end > entry.end || into % place.elementBytes != 0 ||
      terms.get(entry.term).element != place.element)
    return std::nullopt;
  return std::pair(entry.term, entry.first + into / place.elementBytes);
}

SmallVector<Memory::Piece> Memory::list(plan::Space space, int64_t begin,
                                        int64_t end) const {
  SmallVector<Piece> pieces;
  auto found = arenas.find(space);
  if (found == arenas.end())
    return pieces;
  for (auto at = found->second.lower_bound(begin);
       at != found->second.end() && at->second.end <= end; ++at)
    pieces.push_back({at->first, at->second.end, at->second.term,
                      at->second.first, at->second.elementBytes});
  return pieces;
}

SmallVector<Memory::OwnPiece> Memory::listOwn(plan::Space space, int64_t begin,
                                              int64_t end) const {
  SmallVector<OwnPiece> pieces;
  for (const OwnPiece &own : ownPieces)
    if (own.place.space == space && begin <= own.place.begin &&
        own.place.end <= end)
      pieces.push_back(own);
  return pieces;
}

void Memory::put(plan::Space space, const Piece &piece) {
  arenas[space][piece.begin] = {piece.end,          piece.term, piece.first,
                                piece.elementBytes, now,        0};
}

void Memory::put(OwnPiece piece) {
  piece.written = now;
  ownPieces.push_back(std::move(piece));
}

/// The elements that some digits of a view write, in the order of memory.
static TermId orderAsWritten(Terms &terms, TermId term,
                             ArrayRef<WrittenStep> steps, int64_t offset) {
  IndexMap map;
  map.offset = offset;
  for (const WrittenStep &step : steps)
    map.steps.push_back({step.size, step.weight});
  map.normalize();
  return terms.select(term, map);
}

LogicalResult Memory::write(const Place &place, TermId term, Operation *op) {
  if (place.begin >= place.end)
    return success();
  if (place.map.coordinates.empty())
    return writeRows(place, term, op);
  // Where a rank writes depends on the rank: of the bytes that any of them may
  // write, only the piece itself is known.
  if (failed(erase(place.space, place.begin, place.end, op)))
    return failure();
  ownPieces.push_back({place, term, now});
  return success();
}

LogicalResult Memory::writeRows(const Place &place, TermId term,
                                Operation *op) {
  int64_t bytes = place.elementBytes;
  SmallVector<WrittenStep> steps = sortSteps(place.map);
  ArrayRef<WrittenStep> rows;
  int64_t width = takeRow(steps, rows);
  ArrayRef<WrittenStep> inner = ArrayRef(steps).drop_front(rows.size());
  if (rows.empty())
    return put(place.space, place.begin, place.end,
               orderAsWritten(terms, term, inner, 0), bytes, op);
  int64_t extent = width;
  for (const WrittenStep &step : llvm::reverse(rows)) {
    if (step.stride < extent)
      return op->emitOpError() << "writes an element of a view twice";
    extent += (step.size - 1) * step.stride;
  }

  // Rows that follow each other in one period, within the buffer, are columns
  // of a tensor whose other columns stay.
  int64_t period = rows.back().stride, count = 1;
  bool isEven = period >= width;
  for (const WrittenStep &step : llvm::reverse(rows)) {
    isEven &= step.stride == period * count;
    count *= step.size;
  }
  int64_t column = (place.begin - place.base) / bytes % period;
  int64_t begin = place.begin - column * bytes,
          end = begin + count * period * bytes;
  if (isEven && column + width <= period && begin >= place.base &&
      end <= place.limit && (place.begin - place.base) % bytes == 0) {
    TermId old = readRange(place.space, begin, end, place.element, bytes,
                           /*ofThisTime=*/true);
    auto keep = [&](int64_t from, int64_t to) {
      IndexMap map;
      map.offset = from;
      map.steps = {{count, period}, {to - from, 1}};
      map.normalize();
      return Term::Part{to - from, terms.select(old, map)};
    };
    SmallVector<Term::Part> parts;
    if (column > 0)
      parts.push_back(keep(0, column));
    parts.push_back({width, orderAsWritten(terms, term, steps, 0)});
    if (column + width < period)
      parts.push_back(keep(column + width, period));
    return put(place.space, begin, end, terms.join(count, parts), bytes, op);
  }

  // Otherwise row by row.
  if (count > kMostRows)
    return op->emitOpError() << "writes " << count
                             << " rows that lie in no even period of their "
                                "buffer: the proof follows at most "
                             << kMostRows;
  for (int64_t row = 0; row < count; ++row) {
    int64_t from = 0, weight = 0, left = row;
    for (size_t digit = rows.size(); digit-- > 0;) {
      int64_t index = left % rows[digit].size;
      left /= rows[digit].size;
      from += index * rows[digit].stride;
      weight += index * rows[digit].weight;
    }
    int64_t start = place.begin + from * bytes;
    if (failed(put(place.space, start, start + width * bytes,
                   orderAsWritten(terms, term, inner, weight), bytes, op)))
      return failure();
  }
  return success();
}
