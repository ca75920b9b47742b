// Numbers for values and terms, and the few identities of index maps: a piece
// of a piece is a piece, neighbours that lie side by side are one.

#include "Terms.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

ValueKey &ValueKey::add(ArrayRef<int64_t> list) {
  add(static_cast<int64_t>(list.size()));
  for (int64_t word : list)
    add(word);
  return *this;
}

Terms::Terms() = default;

unsigned Terms::intern(llvm::DenseMap<ArrayRef<uint64_t>, unsigned> &known,
                       const ValueKey &key, unsigned next) {
  ArrayRef<uint64_t> words = key.get();
  auto found = known.find(words);
  if (found != known.end())
    return found->second;
  known.insert({words.copy(memory), next});
  return next;
}

ValueId Terms::getValue(const ValueKey &key, const Computation &value) {
  unsigned id = intern(knownValues, key, values.size());
  if (id == values.size()) {
    values.push_back(value);
    origins.push_back({knownValues.find(key.get())->first,
                       ArrayRef(key.operands).copy(memory),
                       ArrayRef(key.microBatches).copy(memory), key.isPair});
  }
  return id;
}

ValueKey Terms::getKey(ValueId value) const {
  const Origin &origin = origins[value];
  ValueKey key;
  key.words.assign(origin.words.begin(), origin.words.end());
  key.operands.assign(origin.operands.begin(), origin.operands.end());
  key.microBatches.assign(origin.microBatches.begin(),
                          origin.microBatches.end());
  key.isPair = origin.isPair;
  return key;
}

TermId Terms::intern(Term term, const ValueKey &key) {
  unsigned id = intern(knownTerms, key, terms.size());
  if (id == terms.size())
    terms.push_back(std::make_unique<Term>(std::move(term)));
  return id;
}

TermId Terms::undefined(int64_t count, Type element) {
  ValueKey key;
  key.add(int64_t(ValueKind::Undefined)).add(element.getAsOpaquePointer());
  IndexMap map;
  map.steps.push_back({count, 0});
  return strided(getValue(key, {ValueKind::Undefined, 1, element}), map);
}

TermId Terms::empty(Type element) {
  ValueKey key;
  key.add(int64_t(ValueKind::Given)).add(int64_t(3));
  key.add(element.getAsOpaquePointer());
  Term term;
  term.value = getValue(key, {ValueKind::Given, 0, element});
  term.map.steps = {{0, 1}};
  term.count = 0;
  term.element = element;
  term.defined = true;
  ValueKey own;
  own.add(int64_t(2)).add(element.getAsOpaquePointer());
  return intern(std::move(term), own);
}

TermId Terms::whole(ValueId value) {
  return strided(value, IndexMap::dense(at(value).count));
}

TermId Terms::strided(ValueId value, IndexMap map) {
  const Computation &of = at(value);
  if (map.count() == 0)
    return empty(of.element);
  if (of.kind == ValueKind::Undefined) { // nothing is known of any element
    map.steps = {{map.count(), 0}};
    map.offset = 0;
    map.coordinates.clear();
  }
  map.normalize();
  ValueKey key;
  key.add(int64_t(0)).add(int64_t(value)).add(map.offset);
  key.add(int64_t(map.steps.size()));
  for (Step step : map.steps)
    key.add(step.size).add(step.stride);
  for (const Coordinate &coordinate : map.coordinates)
    key.add(coordinate.axis.getAsOpaquePointer())
        .add(int64_t(coordinate.microBatch.has_value()))
        .add(coordinate.microBatch.value_or(0))
        .add(coordinate.stride);
  Term term;
  term.value = value;
  term.count = map.count();
  term.element = of.element;
  term.defined = of.kind != ValueKind::Undefined;
  term.map = std::move(map);
  return intern(std::move(term), key);
}

std::optional<ValueId> Terms::getWhole(TermId id) const {
  const Term &term = get(id);
  if (!term.isOfValue() || term.count != at(term.value).count ||
      term.map.offset != 0 || !term.map.coordinates.empty() ||
      term.map.steps.size() > 1 ||
      (term.map.steps.size() == 1 && term.map.steps.front().stride != 1))
    return std::nullopt;
  return term.value;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static bool isIdentity(const IndexMap &map, int64_t count) {
  return map.offset == 0 && map.coordinates.empty() && map.count() == count &&
         (map.steps.empty() ||
          (map.steps.size() == 1 && map.steps.front().stride == 1));
}

/// What a map picks, if digits can say which elements these are.
std::optional<TermId> Terms::selectInDigits(TermId id, const IndexMap &at) {
  const Term &term = get(id);
  if (at.count() == 0)
    return empty(term.element);
  if (isIdentity(at, term.count))
    return id;
  if (!term.choices.empty()) {
    SmallVector<TermId> choices;
    for (auto [number, choice] : llvm::enumerate(term.choices)) {
      auto selected = selectInDigits(choice, at.at(term.axis, number));
      if (!selected)
        return std::nullopt;
      choices.push_back(*selected);
    }
    return choose(term.axis, choices);
  }
  if (!term.parts.empty()) {
    if (std::optional<TermId> selected = selectJoined(id, at))
      return selected;
    if (std::optional<TermId> selected = selectByRows(id, at))
      return selected;
  } else if (std::optional<IndexMap> map = compose(term.map, at)) {
    // Of an order that no digits say they may say a part.
    const Computation &of = this->at(term.value);
    if (of.kind == ValueKind::Materialized)
      if (std::optional<TermId> part = selectInDigits(of.operand, *map))
        return part;
    return strided(term.value, std::move(*map));
  }
  return selectByRank(id, at);
}

TermId Terms::select(TermId id, const IndexMap &at) {
  if (std::optional<TermId> selected = selectInDigits(id, at))
    return *selected;
  const Term &term = get(id);
  if (!term.defined)
    return undefined(at.count(), term.element);
  // An order that no digits say: the elements themselves are a value, read so.
  ValueKey key;
  key.add(int64_t(ValueKind::Materialized)).addTerm(id);
  Computation value{ValueKind::Materialized, term.count, term.element, id};
  return strided(getValue(key, value), at);
}

namespace {
/// A map into rows of `period` elements, in digits of rows and of columns.
struct Grid {
  struct Digit {
    int64_t size, stride; ///< in rows, or in columns
    bool isRow;
  };
  SmallVector<Digit, 4> digits;
  SmallVector<std::pair<Coordinate, bool>, 1> coordinates;
  int64_t row, column;
  int64_t lastColumn;

  static std::optional<Grid> make(const IndexMap &at, int64_t rows,
                                  int64_t period);
  /// The same within a part of `width` columns from `begin` on, the digit
  /// `crossing` running from `first` on for `count`.
  IndexMap within(int64_t width, int64_t begin, size_t crossing, int64_t first,
                  int64_t count) const;
};
} // namespace

std::optional<Grid> Grid::make(const IndexMap &at, int64_t rows,
                               int64_t period) {
  Grid grid;
  if (at.offset < 0)
    return std::nullopt;
  grid.row = at.offset / period;
  grid.column = grid.lastColumn = at.offset % period;
  int64_t lastRow = grid.row;
  auto add = [&](int64_t size, int64_t stride, bool isRow) {
    grid.digits.push_back({size, stride, isRow});
    (isRow ? lastRow : grid.lastColumn) += (size - 1) * stride;
  };
  for (Step step : at.steps) {
    if (step.stride < 0)
      return std::nullopt;
    if (step.stride % period == 0) {
      add(step.size, step.stride / period, true);
    } else if (step.stride * (step.size - 1) < period) {
      add(step.size, step.stride, false);
    } else {
      int64_t columns = period / step.stride;
      if (period % step.stride != 0 || step.size % columns != 0)
        return std::nullopt;
      add(step.size / columns, 1, true);
      add(columns, step.stride, false);
    }
  }
  for (Coordinate coordinate : at.coordinates) {
    bool isRow = coordinate.stride % period == 0;
    if (coordinate.stride < 0)
      return std::nullopt;
    if (isRow)
      coordinate.stride /= period;
    (isRow ? lastRow : grid.lastColumn) +=
        (coordinate.size - 1) * coordinate.stride;
    grid.coordinates.push_back({coordinate, isRow});
  }
  if (grid.lastColumn >= period || lastRow >= rows)
    return std::nullopt;
  return grid;
}

IndexMap Grid::within(int64_t width, int64_t begin, size_t crossing,
                      int64_t first, int64_t count) const {
  IndexMap map;
  map.offset = row * width + column - begin;
  for (auto [number, digit] : llvm::enumerate(digits)) {
    int64_t size = digit.size;
    if (number == crossing) {
      map.offset += first * digit.stride;
      size = count;
    }
    map.steps.push_back({size, digit.stride * (digit.isRow ? width : 1)});
  }
  for (auto [coordinate, isRow] : coordinates) {
    Coordinate within = coordinate;
    within.stride *= isRow ? width : 1;
    map.add(within);
  }
  map.normalize();
  return map;
}

std::optional<TermId> Terms::selectJoined(TermId id, const IndexMap &at) {
  const Term &from = get(id);
  int64_t period = from.count / from.rows;
  std::optional<Grid> grid = Grid::make(at, from.rows, period);
  if (!grid)
    return std::nullopt;
  // All of it in one part,
  int64_t begin = 0;
  for (Term::Part part : from.parts) {
    if (begin <= grid->column && grid->lastColumn < begin + part.width)
      return select(part.term,
                    grid->within(part.width, begin, grid->digits.size(), 0, 0));
    begin += part.width;
  }
  // or the digit that counts farthest through the columns crosses from one to
  // the next.
  size_t crossing = grid->digits.size();
  int64_t most = 0;
  for (auto [number, digit] : llvm::enumerate(grid->digits))
    if (!digit.isRow && digit.stride > most) {
      crossing = number;
      most = digit.stride;
    }
  if (crossing == grid->digits.size() ||
      llvm::any_of(grid->coordinates, [](auto &each) { return !each.second; }))
    return std::nullopt;
  Grid::Digit across = grid->digits[crossing];
  int64_t others =
      grid->lastColumn - grid->column - (across.size - 1) * across.stride;
  int64_t rows = 1, minor = 1, next = 0;
  for (auto [number, digit] : llvm::enumerate(grid->digits))
    if (number != crossing)
      (number < crossing ? rows : minor) *= digit.size;
  SmallVector<Term::Part> parts;
  begin = 0;
  for (Term::Part part : from.parts) {
    int64_t last = begin + part.width - 1 - others - grid->column;
    int64_t end =
        last < 0 ? 0 : std::min(across.size, last / across.stride + 1);
    if (end > next) {
      if (grid->column + next * across.stride < begin)
        return std::nullopt; // one that lies in two parts
      parts.push_back(
          {(end - next) * minor,
           select(part.term, grid->within(part.width, begin, crossing, next,
                                          end - next))});
      next = end;
    }
    begin += part.width;
  }
  if (next != across.size)
    return std::nullopt;
  return join(rows, parts);
}

/// The digit that counts farthest begins within a row, or ends there: what is
/// left of the first one, the whole ones, and what is left of the last one.
std::optional<TermId> Terms::selectByRows(TermId id, const IndexMap &at) {
  const Term &from = get(id);
  int64_t period = from.count / from.rows;
  if (!at.coordinates.empty() || at.offset < 0)
    return std::nullopt;
  size_t crossing = at.steps.size();
  int64_t rows = 1, minor = 1, most = 0;
  for (auto [number, step] : llvm::enumerate(at.steps))
    if (step.stride % period != 0 && step.stride > most) {
      crossing = number;
      most = step.stride;
    }
  if (crossing == at.steps.size() || period % most != 0)
    return std::nullopt;
  for (auto [number, step] : llvm::enumerate(at.steps))
    if (number != crossing)
      (number < crossing ? rows : minor) *= step.size;
  int64_t size = at.steps[crossing].size, columns = period / most,
          before = at.offset % period / most;
  int64_t first = std::min(before == 0 ? 0 : columns - before, size);
  int64_t last = (size - first) % columns;
  SmallVector<Term::Part> parts;
  int64_t begin = 0;
  for (int64_t count : {first, size - first - last, last}) {
    if (count == size)
      return std::nullopt; // there is nothing to divide
    if (count == 0)
      continue;
    IndexMap piece = at;
    piece.offset += begin * most;
    piece.steps[crossing].size = count;
    piece.normalize();
    std::optional<TermId> selected = selectInDigits(id, piece);
    if (!selected)
      return std::nullopt;
    parts.push_back({count * minor, *selected});
    begin += count;
  }
  return join(rows, parts);
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// What lies beside each other in a value lies there as one piece.
std::optional<TermId> Terms::merge(int64_t rows, Term::Part lhs,
                                   Term::Part rhs) {
  const Term &left = get(lhs.term), &right = get(rhs.term);
  if (!left.isOfValue() || !right.isOfValue() || left.value != right.value ||
      left.map.coordinates != right.map.coordinates)
    return std::nullopt;
  auto one = left.map.splitAt(rows), other = right.map.splitAt(rows);
  if (!one || !other || one->first != other->first)
    return std::nullopt;
  ArrayRef<Step> inner = one->second, beside = other->second;
  int64_t distance = right.map.offset - left.map.offset;
  // The first minor digit may differ in size; a digit of size 1 is not there.
  Step joined;
  int64_t leftSize = 1;
  ArrayRef<Step> rest;
  if (inner.empty() && beside.empty()) {
    joined = {2, 1};
  } else if (inner.size() == beside.size() &&
             inner.front().stride == beside.front().stride &&
             inner.drop_front() == beside.drop_front()) {
    rest = inner.drop_front();
    leftSize = inner.front().size;
    joined = {leftSize + beside.front().size, inner.front().stride};
  } else if (inner.size() < beside.size() && inner == beside.drop_front()) {
    rest = inner;
    joined = {1 + beside.front().size, beside.front().stride};
  } else if (inner.size() > beside.size() && beside == inner.drop_front()) {
    rest = beside;
    leftSize = inner.front().size;
    joined = {leftSize + 1, inner.front().stride};
  } else {
    return std::nullopt;
  }
  if (distance != leftSize * joined.stride)
    return std::nullopt;
  IndexMap map;
  map.offset = left.map.offset;
  map.coordinates = left.map.coordinates;
  map.steps.append(one->first.begin(), one->first.end());
  map.steps.push_back(joined);
  map.steps.append(rest.begin(), rest.end());
  return strided(left.value, std::move(map));
}

/// Parts that joins of joins are flattened to: a chain of `concat x, x` doubles
/// them with each op. What has more is a join of joins.
static constexpr size_t kMostParts = 1 << 15;

TermId Terms::join(int64_t rows, ArrayRef<Term::Part> parts) {
  SmallVector<Term::Part> flat;
  auto add = [&](Term::Part part) {
    if (!flat.empty())
      if (std::optional<TermId> merged = merge(rows, flat.back(), part)) {
        flat.back() = {flat.back().width + part.width, *merged};
        return;
      }
    flat.push_back(part);
  };
  for (Term::Part part : parts) {
    const Term &term = get(part.term);
    if (part.width == 0)
      continue;
    if (!term.parts.empty() && term.rows == rows &&
        flat.size() + term.parts.size() <= kMostParts)
      for (Term::Part inner : term.parts)
        add(inner);
    else
      add(part);
  }
  if (flat.empty() || rows == 0)
    return empty(get(parts.front().term).element);
  if (flat.size() == 1)
    return flat.front().term;
  Term term;
  term.rows = rows;
  term.parts.append(flat.begin(), flat.end());
  term.element = get(flat.front().term).element;
  term.count = 0;
  term.defined = true;
  ValueKey key;
  key.add(int64_t(1)).add(rows);
  for (Term::Part part : flat) {
    term.count += rows * part.width;
    term.defined &= get(part.term).defined;
    key.add(part.width).add(int64_t(part.term));
  }
  return intern(std::move(term), key);
}
