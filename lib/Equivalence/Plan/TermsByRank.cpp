// Terms that are others on each rank: looked at one by one, and one term
// however they were come by.

#include "Terms.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// How many ranks are looked at one by one.
static constexpr int64_t kChoices = 64;

/// What a map picks, rank by rank: where parts lie differently to each rank's
/// piece of what they make together.
std::optional<TermId> Terms::selectByRank(TermId id, const IndexMap &at) {
  int64_t ranks = 1;
  for (const Coordinate &coordinate : at.coordinates)
    if (!coordinate.microBatch)
      ranks *= coordinate.size;
  if (ranks > kChoices)
    return std::nullopt;
  for (const Coordinate &coordinate : at.coordinates) {
    if (coordinate.microBatch)
      continue;
    SmallVector<TermId> choices;
    for (int64_t number = 0; number < coordinate.size; ++number) {
      auto selected = selectInDigits(id, at.at(coordinate.axis, number));
      if (!selected)
        return std::nullopt;
      choices.push_back(*selected);
    }
    return choose(coordinate.axis, choices);
  }
  return std::nullopt;
}

/// How far apart elements of one value lie from rank to rank; none if they are
/// not as far apart.
std::optional<int64_t> Terms::findStride(ArrayRef<TermId> choices) const {
  const Term &first = get(choices[0]), &second = get(choices[1]);
  if (!first.isOfValue() || !second.isOfValue())
    return std::nullopt;
  int64_t stride = second.map.offset - first.map.offset;
  for (auto [number, choice] : llvm::enumerate(choices)) {
    const Term &term = get(choice);
    if (!term.isOfValue() || term.value != first.value ||
        term.map.steps != first.map.steps ||
        term.map.coordinates != first.map.coordinates ||
        term.map.offset != first.map.offset + int64_t(number) * stride)
      return std::nullopt;
  }
  return stride;
}

/// What a term is on the ranks whose number along an axis is `number`.
TermId Terms::at(TermId id, StringAttr axis, int64_t number) {
  const Term &term = get(id);
  if (term.isOfValue())
    return strided(term.value, term.map.at(axis, number));
  if (term.axis == axis)
    return term.choices[number];
  if (term.axis) {
    SmallVector<TermId> choices;
    for (TermId choice : term.choices)
      choices.push_back(at(choice, axis, number));
    return choose(term.axis, choices);
  }
  SmallVector<Term::Part> parts;
  for (Term::Part part : term.parts)
    parts.push_back({part.width, at(part.term, axis, number)});
  return join(term.rows, parts);
}

/// Adds the axes, but one, whose ranks have pieces of the term that lie
/// differently.
void Terms::collectAxes(TermId id, StringAttr except, Axes &axes) const {
  const Term &term = get(id);
  if (term.axis && term.axis != except)
    axes[term.axis.getValue()] = {term.axis, int64_t(term.choices.size())};
  for (TermId choice : term.choices)
    collectAxes(choice, except, axes);
  for (Term::Part part : term.parts)
    collectAxes(part.term, except, axes);
  if (term.isOfValue())
    for (const Coordinate &each : term.map.coordinates)
      if (!each.microBatch && each.axis != except)
        axes[each.axis.getValue()] = {each.axis, each.size};
}

/// Parts of the same widths on all ranks are chosen one by one.
std::optional<TermId>
Terms::chooseParts(ArrayRef<TermId> choices,
                   function_ref<TermId(ArrayRef<TermId>)> chooseOne) {
  const Term &first = get(choices.front());
  auto haveLikeParts = [&](TermId id) {
    const Term &term = get(id);
    return term.rows == first.rows &&
           llvm::equal(term.parts, first.parts,
                       [](Term::Part lhs, Term::Part rhs) {
                         return lhs.width == rhs.width;
                       });
  };
  if (first.parts.empty() || !llvm::all_of(choices, haveLikeParts))
    return std::nullopt;
  SmallVector<Term::Part> parts;
  for (auto [number, part] : llvm::enumerate(first.parts)) {
    SmallVector<TermId> each;
    for (TermId choice : choices)
      each.push_back(get(choice).parts[number].term);
    parts.push_back({part.width, chooseOne(each)});
  }
  return join(first.rows, parts);
}

/// A table of choices along one axis after another, the last one the minor one,
/// as nested choices.
TermId Terms::nest(ArrayRef<Ranks> axes, ArrayRef<TermId> table) {
  if (axes.empty())
    return table.front();
  if (std::optional<TermId> joined = chooseParts(
          table, [&](ArrayRef<TermId> parts) { return tabulate(axes, parts); }))
    return *joined;
  const Term &first = get(table.front());
  size_t inner = table.size() / axes.front().count;
  Term term;
  term.axis = axes.front().axis;
  term.count = first.count;
  term.element = first.element;
  term.defined = true;
  ValueKey key;
  key.add(int64_t(3)).add(term.axis.getAsOpaquePointer());
  for (; !table.empty(); table = table.drop_front(inner)) {
    TermId choice = nest(axes.drop_front(), table.take_front(inner));
    term.choices.push_back(choice);
    term.defined &= get(choice).defined;
    key.add(int64_t(choice));
  }
  return intern(std::move(term), key);
}

/// A table of choices along axes, without those along which all ranks have the
/// same, or pieces of one value that lie as far apart, whatever the others'
/// numbers.
TermId Terms::tabulate(ArrayRef<Ranks> axes, ArrayRef<TermId> given) {
  SmallVector<Ranks> left(axes);
  SmallVector<TermId> table(given);
  for (size_t number = 0; number < left.size();) {
    int64_t count = left[number].count, minor = 1;
    for (const Ranks &each : ArrayRef(left).drop_front(number + 1))
      minor *= each.count;
    SmallVector<TermId> fewer;
    std::optional<int64_t> stride;
    for (size_t at = 0; at < table.size(); ++at) {
      if (int64_t(at) / minor % count != 0)
        continue;
      SmallVector<TermId> row;
      for (int64_t rank = 0; rank < count; ++rank)
        row.push_back(table[at + rank * minor]);
      std::optional<int64_t> own =
          llvm::all_equal(row) ? std::optional(int64_t(0)) : findStride(row);
      if (!own || stride.value_or(*own) != *own)
        break;
      stride = own;
      TermId one = row.front();
      if (*own != 0) {
        IndexMap map = get(one).map;
        map.add({left[number].axis, count, *own});
        one = strided(get(one).value, std::move(map));
      }
      fewer.push_back(one);
    }
    if (int64_t(fewer.size()) * count != int64_t(table.size())) {
      ++number;
      continue;
    }
    table = std::move(fewer);
    left.erase(left.begin() + number);
  }
  return nest(left, table);
}

TermId Terms::choose(StringAttr axis, ArrayRef<TermId> given) {
  SmallVector<TermId> choices;
  Axes others;
  for (auto [number, choice] : llvm::enumerate(given)) {
    choices.push_back(at(choice, axis, number));
    collectAxes(choices.back(), axis, others);
  }
  if (std::optional<TermId> joined = chooseParts(
          choices, [&](ArrayRef<TermId> parts) { return choose(axis, parts); }))
    return *joined;
  // Whatever was chosen first, the same is the same: along several axes ranks
  // are looked at one by one, in the order of the axes' names.
  others[axis.getValue()] = {axis, int64_t(choices.size())};
  SmallVector<Ranks> axes;
  int64_t ranks = 1;
  for (const auto &[name, each] : others) {
    axes.push_back(each);
    ranks *= each.count;
  }
  if (ranks > kChoices)
    return tabulate({{axis, int64_t(choices.size())}}, choices);
  SmallVector<TermId> table;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    llvm::SmallDenseMap<StringAttr, int64_t> numbers;
    int64_t rest = rank;
    for (const Ranks &each : llvm::reverse(axes)) {
      numbers[each.axis] = rest % each.count;
      rest /= each.count;
    }
    TermId own = choices[numbers[axis]];
    for (const Ranks &each : axes)
      if (each.axis != axis)
        own = at(own, each.axis, numbers[each.axis]);
    table.push_back(own);
  }
  return tabulate(axes, table);
}
