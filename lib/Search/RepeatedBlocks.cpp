// Takes the blocks in the middle of each stretch out of the entries. What stays
// and read something of them reads what lies as many blocks away as have gone,
// of ops, arguments and symbols alike.

#include "RepeatedBlocks.h"

#include "FindBlocks.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/RecomputeChoices.h"
#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::search;
using parallel::RecomputeChoices;

static constexpr StringLiteral kPrefix = "accel.block.";

std::optional<KeptBlock> search::getBlock(Location location) {
  std::optional<KeptBlock> found;
  location->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    StringRef text = name ? name.getName().getValue() : "";
    if (!text.consume_front(kPrefix))
      return WalkResult::advance();
    auto [number, index] = text.split('.');
    KeptBlock block;
    if (number.getAsInteger(10, block.number) ||
        index.getAsInteger(10, block.index))
      return WalkResult::advance();
    found = block;
    return WalkResult::interrupt();
  });
  return found;
}

static void mark(Operation *op, KeptBlock block) {
  if (!op || getBlock(op->getLoc()))
    return;
  std::string name =
      (kPrefix + Twine(block.number) + "." + Twine(block.index)).str();
  op->setLoc(
      NameLoc::get(StringAttr::get(op->getContext(), name), op->getLoc()));
}

namespace {
/// The blocks of a stretch that go.
struct Gap {
  unsigned first = 0, length = 0;

  bool contains(unsigned block) const {
    return block >= first && block < first + length;
  }
};

/// One entry.
class Shortener {
public:
  /// `states` are those that another entry has lost.
  Shortener(func::FuncOp entry, const States &states)
      : entry(entry), end(entry.front().getTerminator()),
        blocks(entry, states, kBlocksLeft), gaps(blocks.getStretches().size()) {
  }

  /// Of each class all blocks go but those that stay.
  void choose();
  /// Those that have one of the states.
  void choose(const States &states);
  /// Leaves classes as they are of which something that stays reads what it
  /// cannot find elsewhere, or which alone read something that stays.
  void check();
  /// The states of what goes.
  States getStates() const;
  /// Takes out what goes. `number` is the number of the next class.
  void apply(int64_t &number, std::vector<BlockClass> &classes);

private:
  using Place = Blocks::Place;

  bool isGone(std::optional<unsigned> item) const {
    auto place = item ? blocks.findPlace(*item) : std::nullopt;
    return place && gaps[place->stretch].contains(place->block);
  }
  /// Whether an argument has a use, or an op a result with one, that stays and
  /// has nothing else to read.
  bool isMissed(unsigned item, Value value) const;
  /// A reader of what stays and is made elsewhere, if nothing that stays reads
  /// it: without its readers it would be something else.
  Operation *findLastReader(unsigned item, ValueRange values) const;
  /// The item that is to a place, seen from a block that stays, what the place
  /// was without the gap: none at the ends.
  std::optional<unsigned> shift(const Place &place, unsigned reader) const;
  /// What a use reads when what it reads now is gone: what the op reads that is
  /// as far away from it as the gap is wide. Null if there is none, or that is
  /// gone, too.
  Value findOther(OpOperand &use) const;
  /// The argument of the state that is returned as a result; none of an output.
  std::optional<unsigned> findReturned(unsigned result) const;
  /// Of a state that is gone and is returned by what stays, the one that is
  /// returned in its place; null if there is none.
  StringAttr findOtherState(OpOperand &returned) const;
  /// Says of which block an op that stays is, and states that it names; names
  /// others in the place of those that are gone.
  void keep(Operation *op, const Place &place, KeptBlock block,
            SymbolTable &symbols);

  /// Layers begin elsewhere than blocks do: of one that the gap cuts what is
  /// behind it goes on with what is in front.
  void renumberLayers() const;

  func::FuncOp entry;
  Operation *end;
  Blocks blocks;
  std::vector<Gap> gaps; ///< by stretch
  SmallVector<std::tuple<Operation *, StringAttr, Attribute>> names;
};
} // namespace

void Shortener::choose() {
  for (auto [gap, stretch] : llvm::zip(gaps, blocks.getStretches()))
    gap = {kBlocksLeft / 2, unsigned(stretch.length - kBlocksLeft)};
}

void Shortener::choose(const States &states) {
  for (StringAttr state : states) {
    auto argument = blocks.findArgument(state);
    auto place = argument ? blocks.findPlace(*argument) : std::nullopt;
    if (!place)
      continue;
    Gap &gap = gaps[place->stretch];
    if (gap.length == 0)
      gap = {place->block, 1};
    unsigned last = std::max(gap.first + gap.length, place->block + 1);
    gap.first = std::min(gap.first, place->block);
    gap.length = last - gap.first;
  }
}

std::optional<unsigned> Shortener::shift(const Place &place,
                                         unsigned reader) const {
  const Gap &gap = gaps[place.stretch];
  int block = int(place.block) +
              (reader < gap.first ? int(gap.length) : -int(gap.length));
  if (block < 0 || block >= int(blocks.getStretches()[place.stretch].length))
    return std::nullopt;
  return blocks.getItem(place, block);
}

Value Shortener::findOther(OpOperand &use) const {
  auto from = blocks.findPlace(*blocks.findItem(use.get()));
  auto reader = blocks.findItem(use.getOwner());
  auto place = reader ? blocks.findPlace(*reader) : std::nullopt;
  if (!place || place->stretch != from->stretch)
    return nullptr;
  auto like = shift(*place, place->block);
  if (!like)
    return nullptr;
  Value other = blocks.getOp(*like)->getOperand(use.getOperandNumber());
  bool fits =
      other.getType() == use.get().getType() && !isGone(blocks.findItem(other));
  return fits ? other : nullptr;
}

std::optional<unsigned> Shortener::findReturned(unsigned result) const {
  auto state = func::FuncOp(entry).getResultAttrOfType<FlatSymbolRefAttr>(
      result, nn::kStateAttr);
  return state ? blocks.findArgument(state.getAttr()) : std::nullopt;
}

StringAttr Shortener::findOtherState(OpOperand &returned) const {
  auto place = blocks.findPlace(*findReturned(returned.getOperandNumber()));
  auto item = blocks.findItem(returned.get());
  auto reader = item ? blocks.findPlace(*item) : std::nullopt;
  if (!reader || reader->stretch != place->stretch)
    return nullptr;
  auto other = shift(*place, reader->block);
  return other && !isGone(other) ? blocks.getState(*other) : nullptr;
}

bool Shortener::isMissed(unsigned item, Value value) const {
  return isGone(item) && llvm::any_of(value.getUses(), [&](OpOperand &use) {
           return use.getOwner() != end &&
                  !isGone(blocks.findItem(use.getOwner())) && !findOther(use);
         });
}

Operation *Shortener::findLastReader(unsigned item, ValueRange values) const {
  Operation *reader = nullptr;
  for (Value value : values)
    for (Operation *user : value.getUsers()) {
      if (!isGone(blocks.findItem(user)))
        return nullptr;
      reader = user;
    }
  if (!reader || isGone(item))
    return nullptr;
  // Within a class, what stays behind reads it instead.
  auto own = blocks.findPlace(item);
  auto theirs = blocks.findPlace(*blocks.findItem(reader));
  return own && own->stretch == theirs->stretch ? nullptr : reader;
}

void Shortener::check() {
  auto drop = [&](unsigned item) {
    gaps[blocks.findPlace(item)->stretch].length = 0;
  };
  for (bool isStable = false; !isStable;) {
    isStable = true;
    auto look = [&](unsigned item, Value value) {
      if (!isMissed(item, value))
        return;
      drop(item);
      isStable = false;
    };
    auto lookAtReaders = [&](unsigned item, ValueRange values) {
      Operation *reader = findLastReader(item, values);
      if (!reader)
        return;
      drop(*blocks.findItem(reader));
      isStable = false;
    };
    for (BlockArgument argument : entry.getArguments()) {
      Value value = argument;
      look(argument.getArgNumber(), value);
      lookAtReaders(argument.getArgNumber(), value);
    }
    for (Operation *op : blocks.getOps()) {
      for (Value result : op->getResults())
        look(*blocks.findItem(op), result);
      if (op->getNumOperands() > 0) // a constant is nobody's
        lookAtReaders(*blocks.findItem(op), op->getResults());
    }
    for (OpOperand &returned : end->getOpOperands()) {
      auto argument = findReturned(returned.getOperandNumber());
      if (isGone(blocks.findItem(returned.get())) || !isGone(argument) ||
          findOtherState(returned))
        continue;
      drop(*argument);
      isStable = false;
    }
  }
}

States Shortener::getStates() const {
  States states;
  for (unsigned argument = 0; argument < blocks.getNumArguments(); ++argument)
    if (StringAttr state = blocks.getState(argument); state && isGone(argument))
      states.insert(state);
  return states;
}

void Shortener::keep(Operation *op, const Place &place, KeptBlock block,
                     SymbolTable &symbols) {
  mark(op, block);
  for (NamedAttribute attr : op->getAttrs()) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(attr.getValue());
    if (!symbol)
      continue;
    auto argument = blocks.findArgument(symbol.getAttr());
    if (!argument)
      mark(symbols.lookup<nn::StateOp>(symbol.getAttr()), block);
    else if (auto like = shift(place, place.block); isGone(argument) && like)
      names.push_back(
          {op, attr.getName(), blocks.getOp(*like)->getAttr(attr.getName())});
  }
}

void Shortener::renumberLayers() const {
  std::map<unsigned, unsigned> layers;
  llvm::DenseMap<Attribute, Attribute> marks;
  auto isGoneOp = [&](Operation *op) { return isGone(blocks.findItem(op)); };
  for (Operation *op : blocks.getOps()) {
    auto place = blocks.findPlace(*blocks.findItem(op));
    if (!place || place->block < gaps[place->stretch].first ||
        gaps[place->stretch].length == 0 || isGoneOp(op))
      continue;
    Operation *like = blocks.getOp(
        blocks.getItem(*place, place->block - gaps[place->stretch].length));
    auto layer = RecomputeChoices::getLayer(op->getLoc()),
         before = RecomputeChoices::getLayer(like->getLoc());
    if (layer && before)
      layers[*layer] = *before;
    Attribute mark = op->getAttr(dist::kRecomputeAttr),
              other = like->getAttr(dist::kRecomputeAttr);
    if (mark && other)
      marks[mark] = other;
  }
  for (Operation *op : blocks.getOps()) {
    if (isGoneOp(op))
      continue;
    if (auto layer = RecomputeChoices::getLayer(op->getLoc()))
      if (auto other = layers.find(*layer); other != layers.end())
        RecomputeChoices::setLayer(op, other->second);
    if (Attribute other = marks.lookup(op->getAttr(dist::kRecomputeAttr)))
      op->setAttr(dist::kRecomputeAttr, other);
  }
}

void Shortener::apply(int64_t &number, std::vector<BlockClass> &classes) {
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  renumberLayers();
  std::vector<int64_t> numbers;
  for (const Gap &gap : gaps) {
    numbers.push_back(number);
    if (gap.length > 0)
      classes.push_back({number++, int64_t(gap.length)});
  }
  // All is looked up before anything is changed.
  SmallVector<std::pair<OpOperand *, Value>> others;
  SmallVector<Operation *> gone;
  llvm::BitVector goneArguments(entry.getNumArguments()),
      goneResults(end->getNumOperands());
  auto collect = [&](Value value) {
    for (OpOperand &use : value.getUses())
      if (use.getOwner() != end && !isGone(blocks.findItem(use.getOwner())))
        others.push_back({&use, findOther(use)});
  };
  // The block that an item is of which stays.
  auto getKept = [&](const Place &place) -> KeptBlock {
    const Gap &gap = gaps[place.stretch];
    return {numbers[place.stretch],
            place.block < gap.first ? place.block : place.block - gap.length};
  };
  for (OpOperand &returned : end->getOpOperands()) {
    unsigned result = returned.getOperandNumber();
    goneResults[result] = isGone(blocks.findItem(returned.get()));
    if (!goneResults[result] && isGone(findReturned(result)))
      entry.setResultAttr(result, nn::kStateAttr,
                          FlatSymbolRefAttr::get(findOtherState(returned)));
  }
  for (BlockArgument argument : entry.getArguments()) {
    unsigned item = argument.getArgNumber();
    goneArguments[item] = isGone(item);
    auto place = blocks.findPlace(item);
    if (goneArguments[item])
      collect(argument);
    else if (place && gaps[place->stretch].length > 0)
      if (StringAttr state = blocks.getState(item))
        mark(symbols.lookup(state), getKept(*place));
  }
  for (Operation *op : blocks.getOps()) {
    unsigned item = *blocks.findItem(op);
    auto place = blocks.findPlace(item);
    if (auto next = blocks.findNext(item); !place && next) {
      auto [stretch, block] = *next;
      if (gaps[stretch].length > 0)
        mark(op, {numbers[stretch],
                  block < 0 ? block : block - int64_t(gaps[stretch].length)});
    }
    if (!place || gaps[place->stretch].length == 0)
      continue;
    if (!gaps[place->stretch].contains(place->block)) {
      keep(op, *place, getKept(*place), symbols);
      continue;
    }
    gone.push_back(op);
    llvm::for_each(op->getResults(), collect);
  }
  end->eraseOperands(goneResults);
  (void)entry.eraseResults(goneResults);
  for (auto [use, other] : others)
    use->set(other);
  for (auto [op, name, symbol] : names)
    op->setAttr(name, symbol);
  for (Operation *op : llvm::reverse(gone)) {
    op->dropAllUses();
    op->erase();
  }
  (void)entry.eraseArguments(goneArguments);
}

/// The states that a function takes, gives, or names in an op.
static void collectNames(func::FuncOp function, States &names) {
  auto add = [&](Attribute attr) {
    if (auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(attr))
      names.insert(symbol.getAttr());
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    add(function.getArgAttr(i, nn::kStateAttr));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    add(function.getResultAttr(i, nn::kStateAttr));
  function.walk([&](Operation *op) {
    if (op != function)
      for (NamedAttribute attr : op->getAttrs())
        add(attr.getValue());
  });
}

/// States that nothing names any more, of those that something did.
static void eraseStates(ModuleOp module, const States &named) {
  States left;
  for (auto function : module.getOps<func::FuncOp>())
    collectNames(function, left);
  for (auto state : llvm::make_early_inc_range(module.getOps<nn::StateOp>()))
    if (named.contains(state.getSymNameAttr()) &&
        !left.contains(state.getSymNameAttr()))
      state.erase();
}

FailureOr<std::vector<BlockClass>>
search::removeRepeatedBlocks(ModuleOp module) {
  std::vector<BlockClass> classes;
  SmallVector<func::FuncOp> entries = nn::getEntries(module);
  States named, gone;
  for (func::FuncOp entry : entries)
    collectNames(entry, named);
  // The one that has most of the states says which.
  llvm::stable_sort(entries, [](func::FuncOp one, func::FuncOp other) {
    return one.getNumArguments() > other.getNumArguments();
  });
  int64_t number = 0;
  for (func::FuncOp entry : entries) {
    bool isFirst = entry == entries.front();
    Shortener shortener(entry, gone);
    isFirst ? shortener.choose() : shortener.choose(gone);
    shortener.check();
    if (isFirst)
      gone = shortener.getStates();
    shortener.apply(number, classes);
    if (classes.empty())
      return classes;
    // What an entry still has did not go from it.
    States left;
    collectNames(entry, left);
    if (llvm::any_of(gone,
                     [&](StringAttr state) { return left.contains(state); }))
      return failure();
  }
  eraseStates(module, named);
  return classes;
}
