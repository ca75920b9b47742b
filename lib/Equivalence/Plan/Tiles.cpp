// Kernels on tiles. What computes element by element makes of a part of its
// arguments that part of what it would make of all of them: so tiles of one
// update are parts of the value that a task computes at once.

#include "Replay.h"

#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

namespace {
/// What a row of elements is a part of, from one of its elements on.
struct Within {
  TermId whole;
  int64_t first;
};

/// So many elements from one on, in which all arguments are found.
struct Frame {
  int64_t first, count;
};
} // namespace

/// Whether each element that a function makes is of the same element of what
/// has as many, and of numbers: `count` elements in a tile.
static bool isByElement(func::FuncOp function, int64_t count) {
  auto isKnown = [&](Type type) {
    int64_t own = cast<RankedTensorType>(type).getNumElements();
    return own == count || own == 1;
  };
  for (Operation &op : function.front().without_terminator()) {
    if (!llvm::all_of(op.getOperandTypes(), isKnown) ||
        !llvm::all_of(op.getResultTypes(), isKnown))
      return false;
    auto constant = dyn_cast<nn::ConstantOp>(op);
    if (constant ? !isa<SplatElementsAttr>(constant.getValue())
                 : !op.hasTrait<nn::Elementwise>() &&
                       !isa<nn::ReshapeOp, nn::BroadcastOp>(op))
      return false;
  }
  return llvm::all_of(function.getArgumentTypes(), isKnown) &&
         llvm::all_of(function.getResultTypes(), [&](Type type) {
           return cast<RankedTensorType>(type).getNumElements() == count;
         });
}

/// The term that a term is a part of, in a frame that may be larger than what
/// is known of it.
static std::optional<TermId> extend(Terms &terms, TermId id,
                                    ArrayRef<Within> known, Frame frame) {
  for (Within each : known)
    if (each.first == frame.first && terms.get(each.whole).count == frame.count)
      return each.whole;
  const Term &term = terms.get(id);
  if (!term.isOfValue() || term.map.steps.size() != 1)
    return std::nullopt;
  IndexMap map = term.map;
  map.steps.front().size = frame.count;
  if (map.steps.front().stride == 0)
    return terms.strided(term.value, std::move(map));
  if (map.steps.front().stride != 1)
    return std::nullopt;
  map.offset -= frame.first;
  auto [low, high] = map.range();
  if (low < 0 || high >= terms.at(term.value).count)
    return std::nullopt;
  return terms.strided(term.value, std::move(map));
}

void PlanReplay::evaluateWhole(func::FuncOp function,
                               ArrayRef<TermId> arguments, int64_t part,
                               int64_t count,
                               SmallVectorImpl<TermId> &results) {
  llvm::DenseMap<Value, TermId> known;
  for (auto [argument, term] :
       llvm::zip_equal(function.getArguments(), arguments))
    known[argument] = term;
  for (Operation &op : function.front().without_terminator()) {
    Value result = op.getResult(0);
    int64_t own = typeOf(result).getNumElements() == part ? count : 1;
    if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
      auto value = cast<SplatElementsAttr>(constant.getValue());
      known[result] = meaning.splat(value.getSplatValue<Attribute>(),
                                    value.getElementType(), own, constant);
      continue;
    }
    SmallVector<TermId> operands;
    for (Value operand : op.getOperands())
      operands.push_back(known.lookup(operand));
    if (op.hasTrait<nn::Elementwise>()) {
      known[result] = meaning.byElement(&op, operands, own);
      continue;
    }
    TermId operand = operands.front();
    IndexMap repeated;
    repeated.steps = {{own, 0}};
    known[result] = terms.get(operand).count == own
                        ? operand
                        : terms.select(operand, repeated);
  }
  for (Value result : function.front().getTerminator()->getOperands())
    results.push_back(known.lookup(result));
}

bool PlanReplay::evaluateTile(func::FuncOp function,
                              ArrayRef<plan::ViewAttr> views,
                              ArrayRef<TermId> arguments,
                              SmallVectorImpl<TermId> &results) {
  int64_t part = cast<RankedTensorType>(function.getResultTypes().front())
                     .getNumElements();
  if (part < 2 || !isByElement(function, part))
    return false;
  SmallVector<SmallVector<Within, 2>> known;
  SmallVector<Frame> frames;
  for (auto [view, argument] : llvm::zip_equal(views, arguments)) {
    SmallVector<Within, 2> &own = known.emplace_back();
    const Term &term = terms.get(argument);
    if (term.count != part)
      continue;
    // What lies there with it, and what it is of.
    FailureOr<Place> place = locate(view);
    if (succeeded(place))
      if (auto found = at(*place).findWhole(*place))
        own.push_back({found->first, found->second});
    if (term.isOfValue() && term.map.coordinates.empty() &&
        term.map.steps.size() == 1 && term.map.steps.front().stride == 1)
      own.push_back({terms.whole(term.value), term.map.offset});
    for (Within each : own)
      if (terms.get(each.whole).count > part)
        frames.push_back({each.first, terms.get(each.whole).count});
  }
  llvm::stable_sort(frames, [](const Frame &lhs, const Frame &rhs) {
    return lhs.count < rhs.count;
  });
  for (Frame frame : frames) {
    SmallVector<TermId> wholes;
    for (auto [argument, own] : llvm::zip_equal(arguments, known)) {
      std::optional<TermId> whole = argument;
      if (terms.get(argument).count == part)
        whole = extend(terms, argument, own, frame);
      if (!whole)
        break;
      wholes.push_back(*whole);
    }
    if (wholes.size() != arguments.size())
      continue;
    unsigned before = terms.size();
    SmallVector<TermId> all;
    evaluateWhole(function, wholes, part, frame.count, all);
    // Nobody else computes that: a part of something larger is all there is.
    // What has been tried before is no more computed for that.
    bool isNew = terms.size() != before;
    if (isNew)
      tried.push_back({before, terms.size()});
    if (isNew || llvm::any_of(all, [&](TermId id) {
          const Term &term = terms.get(id);
          return term.isOfValue() && isTried(term.value);
        }))
      continue;
    IndexMap here = IndexMap::dense(part);
    here.offset = frame.first;
    for (TermId term : all)
      results.push_back(terms.select(term, here));
    return true;
  }
  return false;
}
