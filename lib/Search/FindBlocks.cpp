// Finds what repeats itself, joins copies to blocks by what they read of each
// other, and puts blocks in order.

#include "FindBlocks.h"

#include "dialects/Accel/AlikeOps.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;

/// Of a mark of dist-recompute, which names the layer.
static llvm::hash_code hashWithoutNumbers(StringRef text) {
  std::string rest = text.str();
  llvm::erase_if(rest, [](char c) { return llvm::isDigit(c); });
  return llvm::hash_value(rest);
}

/// A cut is like no other op: a block is of one chunk.
static size_t hashOp(Operation *op, size_t position) {
  if (isa<nn::CutOp, nn::StateOp>(op))
    return llvm::hash_combine(position, 1);
  llvm::hash_code hash = hashAlike(op, dist::kRecomputeAttr);
  if (auto mark = op->getAttrOfType<StringAttr>(dist::kRecomputeAttr))
    hash = llvm::hash_combine(hash, hashWithoutNumbers(mark));
  return hash;
}

Blocks::Blocks(func::FuncOp entry, const States &states, unsigned fewest)
    : entry(entry), arguments(entry.getNumArguments()) {
  std::vector<size_t> hashes;
  for (BlockArgument argument : entry.getArguments()) {
    hashes.push_back(llvm::hash_value(argument.getType().getAsOpaquePointer()));
    if (StringAttr state = getState(argument.getArgNumber()))
      argumentOf[state] = argument.getArgNumber();
  }
  for (Operation &op : entry.front().without_terminator()) {
    positions[&op] = hashes.size();
    ops.push_back(&op);
    hashes.push_back(hashOp(&op, hashes.size()));
  }
  repeats = findRepeats(hashes, fewest + 1);
  repeatOf.resize(hashes.size());
  for (auto [number, repeat] : llvm::enumerate(repeats)) {
    for (unsigned i = 0; i < repeat.length; ++i) {
      unsigned item = repeat.begin + i;
      if (item >= arguments || !states.contains(getState(item)))
        continue;
      repeat.begin += i % repeat.period;
      repeat.length -= i % repeat.period;
      break;
    }
    for (unsigned i = 0; i < repeat.length; ++i)
      repeatOf[repeat.begin + i] = number;
  }
  joinCopies();
  findStretches(fewest);
}

StringAttr Blocks::getState(unsigned argument) const {
  auto state =
      entry.getArgAttrOfType<FlatSymbolRefAttr>(argument, nn::kStateAttr);
  return state ? state.getAttr() : nullptr;
}

std::optional<unsigned> Blocks::findItem(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber();
  return findItem(value.getDefiningOp());
}

std::optional<unsigned> Blocks::findItem(Operation *op) const {
  auto found = positions.find(op);
  return found == positions.end() ? std::optional<unsigned>() : found->second;
}

std::optional<unsigned> Blocks::findArgument(StringAttr state) const {
  auto found = argumentOf.find(state);
  return found == argumentOf.end() ? std::optional<unsigned>() : found->second;
}

std::optional<Copy> Blocks::findCopy(unsigned item) const {
  if (!repeatOf[item])
    return std::nullopt;
  const Repeat &repeat = repeats[*repeatOf[item]];
  unsigned copy = (item - repeat.begin) / repeat.period;
  return copy < repeat.countCopies() ? Copy(*repeatOf[item], copy)
                                     : std::optional<Copy>();
}

/// A block has one copy of a repeat at most.
void Blocks::join(Copy one, Copy other) {
  joined.insert(one);
  joined.insert(other);
  if (joined.isEquivalent(one, other))
    return;
  llvm::SmallDenseSet<unsigned> taken;
  for (auto it = joined.findLeader(one); it != joined.member_end(); ++it)
    taken.insert(it->first);
  for (auto it = joined.findLeader(other); it != joined.member_end(); ++it)
    if (taken.contains(it->first))
      return;
  joined.unionSets(one, other);
}

/// Where copies of one repeat read what those of another make, each two that do
/// so at the same place are of one block. One place for two repeats is enough.
void Blocks::joinCopies() {
  for (auto [number, repeat] : llvm::enumerate(repeats)) {
    llvm::SmallDenseSet<unsigned> known;
    for (unsigned offset = 0; offset < repeat.period; ++offset) {
      Operation *first = getOp(repeat.begin + offset);
      unsigned count = first ? first->getNumOperands() : 0;
      for (unsigned operand = 0; operand < count; ++operand) {
        // By the other repeat: those that are of one block.
        llvm::MapVector<unsigned, SmallVector<std::pair<Copy, Copy>>> now;
        for (unsigned copy = 0; copy < repeat.countCopies(); ++copy) {
          Operation *op = getOp(repeat.begin + copy * repeat.period + offset);
          auto item = findItem(op->getOperand(operand));
          auto other = item ? findCopy(*item) : std::nullopt;
          if (other && other->first != number && !known.contains(other->first))
            now[other->first].push_back({{number, copy}, *other});
        }
        for (auto &[other, pairs] : now) {
          unsigned copies =
              std::min(repeat.countCopies(), repeats[other].countCopies());
          // At its ends a repeat may read what is like nothing else.
          if (2 * pairs.size() < copies)
            continue;
          for (auto [one, two] : pairs)
            join(one, two);
          known.insert(other);
        }
      }
    }
  }
}

void Blocks::findStretches(unsigned fewest) {
  for (auto [number, repeat] : llvm::enumerate(repeats)) {
    std::vector<Copies> of;
    for (unsigned copy = 0; copy < repeat.countCopies(); ++copy) {
      Copies &own = of.emplace_back();
      own[number] = copy;
      if (joined.contains(Copy(number, copy)))
        for (auto it = joined.findLeader(Copy(number, copy));
             it != joined.member_end(); ++it)
          own[it->first] = it->second;
    }
    // From those that have most on: where a chunk ends, a block lacks some.
    auto order = llvm::to_vector(llvm::seq<unsigned>(0, of.size() - 1));
    llvm::stable_sort(order, [&](unsigned one, unsigned other) {
      return of[one].size() > of[other].size();
    });
    for (unsigned from : order)
      if (!blockOf.contains({number, from}))
        addStretch(of, from, fewest);
  }
}

/// The one around a block. `of` are the copies that are of one block with each
/// copy of a repeat.
void Blocks::addStretch(ArrayRef<Copies> of, unsigned from, unsigned fewest) {
  Stretch stretch;
  for (auto [other, copy] : of[from]) {
    auto next = of[from + 1].find(other);
    int step = next == of[from + 1].end() ? 0 : int(next->second) - int(copy);
    if (step != 1 && step != -1)
      return;
    stretch.starts[other] = {copy, step};
  }
  // Whether a block has the same repeats, so many blocks away.
  auto goesOn = [&](unsigned block) {
    return llvm::all_of(stretch.starts, [&](auto &each) {
      auto &[other, start] = each;
      auto found = of[block].find(other);
      return found != of[block].end() &&
             int(found->second) ==
                 int(start.first) + start.second * (int(block) - int(from)) &&
             !blockOf.contains({other, found->second});
    });
  };
  unsigned begin = from, end = from + 1;
  while (begin > 0 && goesOn(begin - 1))
    --begin;
  while (end < of.size() && goesOn(end))
    ++end;
  if (!goesOn(from))
    return;
  for (auto &[other, start] : stretch.starts) {
    start.first = of[begin].lookup(other);
    auto together =
        countTogether(other, start.first, start.second, end - begin);
    if (!together)
      return;
    stretch.copies = std::max(stretch.copies, *together);
  }
  stretch.length = (end - begin) / stretch.copies;
  if (stretch.length <= fewest)
    return;
  for (auto &[other, start] : stretch.starts)
    for (unsigned copy = 0; copy < stretch.length * stretch.copies; ++copy)
      blockOf[{other, of[begin + copy].lookup(other)}] = {
          unsigned(stretches.size()), copy};
  stretches.push_back(std::move(stretch));
}

std::optional<unsigned> Blocks::countTogether(unsigned repeat, unsigned first,
                                              int step, unsigned copies) const {
  auto getMark = [&](unsigned offset, unsigned copy) -> Attribute {
    int at = int(first) + step * int(copy);
    Operation *op = getOp(repeats[repeat].begin +
                          unsigned(at) * repeats[repeat].period + offset);
    return op ? op->getAttr(dist::kRecomputeAttr) : Attribute();
  };
  unsigned offset = 0;
  while (offset < repeats[repeat].period && !getMark(offset, 0))
    ++offset;
  if (offset == repeats[repeat].period)
    return 1;
  // At the ends fewer of them may be in the repeat.
  SmallVector<unsigned> counts{0};
  for (unsigned copy = 0; copy < copies; ++copy) {
    if (copy > 0 && getMark(offset, copy) != getMark(offset, copy - 1))
      counts.push_back(0);
    ++counts.back();
  }
  unsigned most = *llvm::max_element(counts);
  if (llvm::any_of(ArrayRef(counts).drop_back().drop_front(
                       std::min<size_t>(1, counts.size() - 1)),
                   [&](unsigned count) { return count != most; }))
    return std::nullopt;
  return most;
}

std::optional<Blocks::Place> Blocks::findPlace(unsigned item) const {
  auto copy = findCopy(item);
  auto block = copy ? blockOf.find(*copy) : blockOf.end();
  if (block == blockOf.end())
    return std::nullopt;
  const Repeat &repeat = repeats[copy->first];
  auto [stretch, before] = block->second;
  unsigned copies = stretches[stretch].copies;
  return Place{stretch, before / copies, before % copies, copy->first,
               (item - repeat.begin) % repeat.period};
}

std::optional<std::pair<unsigned, int>> Blocks::findNext(unsigned item) const {
  if (!repeatOf[item])
    return std::nullopt;
  const Repeat &repeat = repeats[*repeatOf[item]];
  int copy = int((item - repeat.begin) / repeat.period);
  for (auto [number, stretch] : llvm::enumerate(stretches)) {
    auto found = stretch.starts.find(*repeatOf[item]);
    if (found == stretch.starts.end())
      continue;
    auto [start, step] = found->second;
    int before = (copy - int(start)) * step, copies = int(stretch.copies);
    if (before < 0 && before >= -copies)
      return std::pair(unsigned(number), -1);
    if (before >= 0 && before / copies == int(stretch.length))
      return std::pair(unsigned(number), int(stretch.length));
  }
  return std::nullopt;
}

unsigned Blocks::getItem(const Place &place, unsigned block) const {
  const Stretch &stretch = stretches[place.stretch];
  auto [start, step] = stretch.starts.lookup(place.repeat);
  const Repeat &repeat = repeats[place.repeat];
  int before = int(block * stretch.copies + place.copy);
  return repeat.begin + (int(start) + step * before) * int(repeat.period) +
         place.offset;
}
