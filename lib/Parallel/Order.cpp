// Holds each pass that places or splits to its row in Order.def.

#include "Order.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Established.h"
#include "dialects/Accel/Zero.h"
#include "dialects/Dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace accel::parallel {
namespace {
/// In the order in which phases establish them.
enum Property : unsigned {
#define PROPERTY(name, phase, by, what) name,
#define PASS(flag, needs, before, why)
#include "Order.def"
#undef PASS
#undef PROPERTY
};

struct Meaning {
  Phase phase;        ///< by whose end it holds
  StringLiteral by;   ///< the pass that establishes it
  StringLiteral what; ///< it is
};

struct Row {
  StringLiteral flag;
  uint64_t needs;  ///< a bit for each property
  Property before; ///< the first that it would break
  StringLiteral why;
};
} // namespace

static constexpr Meaning kMeanings[] = {
#define PROPERTY(name, phase, by, what) {Phase::phase, by, what},
#define PASS(flag, needs, before, why)
#include "Order.def"
#undef PASS
#undef PROPERTY
};

static constexpr uint64_t maskOf(std::initializer_list<Property> properties) {
  uint64_t mask = 0;
  for (Property property : properties)
    mask |= uint64_t(1) << property;
  return mask;
}

static constexpr Row kRows[] = {
#define NOTHING 0
#define NEEDS(...) maskOf({__VA_ARGS__})
#define PROPERTY(name, phase, by, what)
#define PASS(flag, needs, before, why) {flag, needs, before, why},
#include "Order.def"
#undef PASS
#undef PROPERTY
#undef NEEDS
#undef NOTHING
};

/// What a program shows that it lacks.
static constexpr uint64_t kShown = maskOf({Sharded, Decided, Localized});

static constexpr bool isEachNeedShown() {
  for (const Row &row : kRows)
    if ((row.needs & ~kShown) != 0)
      return false;
  return true;
}
static_assert(isEachNeedShown(), "isMissing() answers for it");

/// Whether a tensor that a function takes or gives is, or one is not, placed.
static bool hasInSignature(ModuleOp module, bool placed) {
  return llvm::any_of(module.getOps<func::FuncOp>(), [&](func::FuncOp one) {
    return llvm::any_of(
        llvm::concat<const Type>(one.getArgumentTypes(), one.getResultTypes()),
        [&](Type type) {
          return isa<RankedTensorType>(type) &&
                 bool(dist::ShardingAttr::of(type)) == placed;
        });
  });
}

static bool isOfOneRank(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (function.getArgAttr(index, dist::kLayoutAttr))
      return true;
  return false;
}

/// Whether the program itself shows that a property holds.
static bool isSeen(ModuleOp module, Property property) {
  switch (property) {
  case StatesSharded:
    return getZeroStage(module) > 0;
  case Sharded:
    return hasInSignature(module, /*placed=*/true);
  case Localized:
    return llvm::any_of(module.getOps<func::FuncOp>(), isOfOneRank);
  case TasksSplit:
    return !module.getOps<dist::ScheduleOp>().empty();
  default:
    return false;
  }
}

/// Whether it shows that a property that passes need does not.
static bool isMissing(ModuleOp module, Property property) {
  switch (property) {
  case Sharded:
    return hasInSignature(module, /*placed=*/false);
  case Decided:
    return !module->hasAttr(kDecisionsAttr);
  case Localized:
    return hasInSignature(module, /*placed=*/true);
  default:
    llvm_unreachable("no pass needs it");
  }
}

static bool holds(ModuleOp module, Property property) {
  const Meaning &meaning = kMeanings[property];
  auto established = module->getAttrOfType<ArrayAttr>(kEstablishedAttr);
  return getPhase(module) >= meaning.phase || isSeen(module, property) ||
         (established &&
          llvm::is_contained(established,
                             StringAttr::get(module.getContext(), meaning.by)));
}

static LogicalResult checkTurn(ModuleOp module, const Row &row) {
  const Meaning *own = llvm::find_if(
      kMeanings, [&](const Meaning &one) { return one.by == row.flag; });
  if (own != std::end(kMeanings) &&
      holds(module, Property(own - std::begin(kMeanings))))
    return module.emitError() << row.flag << " has run: what it establishes ("
                              << own->what << ") is there: run it once";
  for (unsigned property = row.before; property < std::size(kMeanings);
       ++property)
    if (const Meaning &broken = kMeanings[property];
        holds(module, Property(property)))
      return module.emitError()
             << row.flag << " comes too late: " << broken.by
             << " has established what it would break (" << broken.what
             << "), for " << row.why << ": run it before " << broken.by;
  for (unsigned property = 0; property < std::size(kMeanings); ++property)
    if (const Meaning &needed = kMeanings[property];
        (row.needs >> property & 1) && isMissing(module, Property(property)))
      return module.emitError()
             << row.flag << " comes too early: expected what " << needed.by
             << " establishes (" << needed.what << "), found none: run "
             << needed.by << " before it";
  return success();
}

void OrderedPass::runOnOperation() {
  ModuleOp module = getOperation();
  const Row *row = llvm::find_if(
      kRows, [&](const Row &one) { return one.flag == getArgument(); });
  assert(row != std::end(kRows) && "expected a row in Order.def");
  if (failed(checkTurn(module, *row)))
    return signalPassFailure();
  runInOrder();
  auto flag = StringAttr::get(&getContext(), getArgument());
  if (llvm::none_of(kMeanings,
                    [&](const Meaning &one) { return one.by == flag; }))
    return;
  SmallVector<Attribute> established{flag};
  if (auto others = module->getAttrOfType<ArrayAttr>(kEstablishedAttr))
    established.insert(established.begin(), others.begin(), others.end());
  module->setAttr(kEstablishedAttr, ArrayAttr::get(&getContext(), established));
}
} // namespace accel::parallel
