// Declares, reads and writes the states of delayed scaling.

#include "DelayedScales.h"
#include "AmaxHistory.h"
#include "AmaxWindow.h"
#include "Quantize.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::precision;
using autodiff::NNBuilder;
using autodiff::Write;

/// What the states of a slot are called, behind its name.
static constexpr StringLiteral kScale = "/scale", kHistory = "/amax_history",
                               kCount = "/amax_counter";

static StringRef getName(TensorRole role) {
  switch (role) {
  case TensorRole::Input:
    return "input";
  case TensorRole::Weight:
    return "weight";
  case TensorRole::Gradient:
    return "gradient";
  }
  llvm_unreachable("a role");
}

unsigned DelayedScales::addSlot(Value tensor, FloatType format, StringRef site,
                                TensorRole role, int64_t chunk) {
  auto [known, isNew] = byTensor.try_emplace({tensor, format}, slots.size());
  if (!isNew)
    return known->second;
  std::string name = ("fp8/" + site + "/" + getName(role)).str();
  auto [named, isFirst] = byName.try_emplace(name, slots.size());
  known->second = named->second;
  if (isFirst)
    slots.push_back({name, chunk, format, {}});
  return known->second;
}

LogicalResult DelayedScales::bind() {
  return nn::getEntryKind(entry) == nn::EntryKind::step ? declare() : read();
}

/// Before the counters, which are last.
LogicalResult DelayedScales::declare() {
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  std::vector<autodiff::NewState> wanted;
  Type f32 = Float32Type::get(entry.getContext());
  for (const Slot &slot : slots) {
    wanted.push_back({slot.name + kScale.str(), RankedTensorType::get({}, f32),
                      slot.chunk, 1});
    wanted.push_back({slot.name + kHistory.str(),
                      RankedTensorType::get({recipe.historyLength}, f32),
                      slot.chunk, 0});
    if (recipe.isMsAmp())
      wanted.push_back(
          {slot.name + kCount.str(),
           RankedTensorType::get({}, IntegerType::get(entry.getContext(), 64)),
           slot.chunk, 0});
  }
  nn::ArgumentStates known(entry);
  BlockArgument counters;
  for (BlockArgument argument : llvm::reverse(entry.getArguments())) {
    nn::StateOp state = known.find(argument);
    if (!state || state.getRole() != nn::StateRole::counter)
      break;
    counters = argument;
    if (!calls)
      calls = argument; // the last one
  }
  FailureOr<SmallVector<Write>> states = autodiff::declareStates(
      entry, symbols, counters, wanted, nn::StateRole::quantizer);
  if (failed(states))
    return failure();
  const Write *next = states->begin();
  for (Slot &slot : slots) {
    slot.scale = *next++;
    slot.history = *next++;
    if (recipe.isMsAmp())
      slot.count = *next++;
  }
  return success();
}

LogicalResult DelayedScales::read() {
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  MLIRContext *context = entry.getContext();
  auto take = [&](const Slot &slot, StringRef what) -> FailureOr<Write> {
    auto state = symbols.lookup<nn::StateOp>(slot.name + what.str());
    if (!state)
      return entry.emitError() << "expected a step that has a state '"
                               << slot.name << what << "', found none";
    unsigned place = entry.getNumArguments();
    auto attribute = DictionaryAttr::get(
        context,
        NamedAttribute(StringAttr::get(context, nn::kStateAttr),
                       FlatSymbolRefAttr::get(state.getSymNameAttr())));
    if (failed(entry.insertArgument(place, state.getType(), attribute,
                                    state.getLoc())))
      return failure();
    return Write{state, entry.getArgument(place), nullptr};
  };
  for (Slot &slot : slots) {
    FailureOr<Write> scale = take(slot, kScale);
    if (failed(scale))
      return failure();
    slot.scale = *scale;
    if (!recipe.isMsAmp())
      continue;
    FailureOr<Write> count = take(slot, kCount);
    if (failed(count))
      return failure();
    slot.count = *count;
  }
  return success();
}

Value DelayedScales::getOld(const NNBuilder &build, const Slot &slot,
                            const Write &state, int64_t chunk) {
  if (chunk == slot.chunk)
    return state.old;
  // Each chunk has codes of its own of a tensor: the scale goes where they are
  // made, and scalars that depend on it stay there.
  return nn::CutOp::create(build.builder, build.loc, state.old, slot.chunk,
                           chunk);
}

Value DelayedScales::getScale(const NNBuilder &build, unsigned index,
                              int64_t chunk) {
  return getOld(build, slots[index], slots[index].scale, chunk);
}

Value DelayedScales::getScaleInTime(const NNBuilder &build, unsigned index,
                                    int64_t chunk, Value tensor,
                                    int64_t parts) {
  const Slot &slot = slots[index];
  return buildScaleInTime(build, getOld(build, slot, slot.scale, chunk),
                          getOld(build, slot, slot.count, chunk),
                          recipe.historyLength, buildAmax(build, tensor, parts),
                          getLargest(slot.format));
}

void DelayedScales::measure(const NNBuilder &build, unsigned index,
                            Value tensor) {
  Slot &slot = slots[index];
  if (slot.measured.insert(tensor).second)
    slot.amaxes.push_back(buildAmax(build, tensor, /*parts=*/1));
}

void DelayedScales::write() {
  Operation *exit = entry.front().getTerminator();
  OpBuilder builder(exit);
  NNBuilder build{builder, NameLoc::get(builder.getStringAttr("fp8 scales"))};
  SmallVector<Value> results(exit->getOperands());
  SmallVector<DictionaryAttr> attributes;
  Value verdict;
  for (auto [index, value] : llvm::enumerate(results)) {
    attributes.push_back(
        builder.getDictionaryAttr(entry.getResultAttrs(index)));
    auto output = entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
    if (output && output == kVerdictReport)
      verdict = value;
  }
  Value isFailed =
      build.compare(nn::ComparePredicate::eq, verdict,
                    build.splat(static_cast<double>(Verdict::Failed), verdict));
  auto add = [&](Write &write, Value value) {
    results.push_back(build.select(
        build.spread(isFailed, typeOf(value).getShape()), write.old, value));
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(write.state.getSymNameAttr()))));
  };
  Value isDue;
  if (recipe.interval > 1)
    isDue = build.compare(nn::ComparePredicate::eq,
                          build.make<nn::ModOp>(build.add(calls, build.i64(1)),
                                                build.i64(recipe.interval)),
                          build.i64(0));
  for (Slot &slot : slots) {
    Value amax = slot.amaxes.front();
    for (Value other : ArrayRef(slot.amaxes).drop_front())
      amax = build.make<nn::MaxOp>(amax, other);
    if (recipe.isMsAmp()) {
      WindowStates updated = updateWindow(
          build, {slot.scale.old, slot.history.old, slot.count.old}, amax,
          getLargest(slot.format));
      add(slot.scale, updated.scale);
      add(slot.history, updated.window);
      add(slot.count, updated.count);
      continue;
    }
    QuantizerStates updated =
        updateHistory(build, {slot.scale.old, slot.history.old}, amax,
                      getLargest(slot.format), recipe);
    add(slot.scale, recipe.interval == 1
                        ? updated.scale
                        : build.select(isDue, updated.scale, slot.scale.old));
    add(slot.history, updated.history);
  }
  exit->setOperands(results);
  entry.setFunctionType(builder.getFunctionType(
      entry.getArgumentTypes(), ValueRange(results).getTypes()));
  entry.setAllResultAttrs(attributes);
}
