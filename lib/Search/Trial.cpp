// Plans a copy, and reads its arenas.

#include "Trial.h"

#include "RepeatedBlocks.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "dialects/Plan/Plan.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Frontier.h"
#include "lib/Cost/Work.h"
#include "lib/Parallel/RecomputeChoices.h"
#include "lib/Plan/CommandSeconds.h"
#include "lib/Plan/Roles.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::search;
using parallel::RecomputeChoices;

StringRef search::getBudgetKey(StringRef space, DictionaryAttr decisions) {
  auto of = plan::symbolizeSpace(space);
  if (of == plan::Space::nvme)
    return kNvmeBudgetKey;
  bool isHosts = of == plan::Space::host || of == plan::Space::pinned;
  return isHosts && decisions && decisions.contains(kHostBudgetKey)
             ? kHostBudgetKey
             : kMemoryBudgetKey;
}

const Trial::Stage &Trial::getLargest() const {
  return *llvm::max_element(stages, [](const Stage &one, const Stage &other) {
    return one.getBytes() < other.getBytes();
  });
}

/// What each block that was taken out has at a moment at which those that are
/// there have so much: as much as those in the middle whose turn it is not. The
/// least of two leaves out what is being computed, and what was fetched for the
/// next; more than the others, at the ends, it is nowhere for long.
static int64_t getBytesOfRemoved(ArrayRef<int64_t> kept) {
  static_assert(kBlocksLeft == 4);
  return std::min({kept[1], kept[2], std::max(kept[0], kept[3])});
}

namespace {
/// What is alive at the moments at which most and least is.
struct Range {
  int64_t least = INT64_MAX, most = 0;

  void add(int64_t bytes) {
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  double getSpan() const { return double(most - least); }
};
} // namespace

/// The largest buffer of an arena that comes and goes.
static int64_t getLargest(plan::ArenaOp arena) {
  int64_t largest = 0;
  auto program = arena->getParentOfType<plan::ProgramOp>();
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (buffer.getSpace() == arena.getSpace() &&
        buffer.getRole() == plan::Role::activation)
      largest = std::max(largest, plan::Liveness::getBytes(buffer));
  return largest;
}

namespace {
struct Peak {
  int64_t bytes;
  size_t moment;
};
} // namespace

/// The bytes of an arena with the blocks that were taken out. A gap as large as
/// a buffer is what one left; more of them grow as what comes and goes does.
static Peak
predictArena(plan::ArenaOp arena, const plan::Liveness &liveness,
             ArrayRef<BlockClass> classes,
             const llvm::DenseMap<Operation *, KeptBlock> &blockOf) {
  // One group for what is of no block, and one for each block of each class
  // that this stage has.
  llvm::SmallDenseMap<int64_t, unsigned> firstGroup;
  SmallVector<int64_t> removed;
  llvm::SmallDenseSet<int64_t> own;
  for (auto &[buffer, block] : blockOf)
    own.insert(block.number);
  for (const BlockClass &each : classes)
    if (own.contains(each.number)) {
      firstGroup[each.number] = 1 + kBlocksLeft * removed.size();
      removed.push_back(each.removed);
    }
  auto profiles = liveness.getProfiles(
      arena.getSpace(), arena.getAlignment(), 1 + kBlocksLeft * removed.size(),
      [&](plan::BufferOp buffer) -> std::optional<unsigned> {
        auto block = blockOf.find(buffer);
        if (block == blockOf.end() || block->second.index < 0 ||
            block->second.index >= kBlocksLeft)
          return 0;
        return firstGroup.lookup(block->second.number) + block->second.index;
      });
  Range now, then;
  size_t when = 0;
  for (size_t moment = 0; moment < profiles.front().size(); ++moment) {
    SmallVector<int64_t> bytes;
    for (const std::vector<int64_t> &profile : profiles)
      bytes.push_back(profile[moment]);
    int64_t alive = std::accumulate(bytes.begin(), bytes.end(), int64_t(0));
    int64_t more = 0;
    for (auto [number, count] : llvm::enumerate(removed))
      more += count * getBytesOfRemoved(ArrayRef(bytes).slice(
                          1 + number * kBlocksLeft, kBlocksLeft));
    now.add(alive);
    if (alive + more > then.most)
      when = moment;
    then.add(alive + more);
  }
  int64_t gaps = int64_t(arena.getBytes()) - now.most;
  double growth = now.getSpan() > 0 ? then.getSpan() / now.getSpan() : 1;
  int64_t growing = std::max<int64_t>(gaps - getLargest(arena), 0);
  return {then.most + gaps + std::llround(double(growing) * (growth - 1)),
          when};
}

/// Of what kernels make of ops of several blocks: the block of the op that
/// makes it. Blocks share kernels, whose ops say which they are for one of
/// them: for another they are as far away from those as it is.
static void
findBlocksOfResults(plan::ProgramOp program, const SymbolTable &symbols,
                    llvm::DenseMap<StringAttr, KeptBlock> &blockOf) {
  program.walk([&](plan::KernelOp kernel) {
    auto function = symbols.lookup<func::FuncOp>(kernel.getFunction());
    auto first = getBlock(function.getLoc()), own = getBlock(kernel.getLoc());
    if (!first || !own || first->number != own->number)
      return;
    for (auto [output, value] :
         llvm::zip(kernel.getOutputs(),
                   function.front().getTerminator()->getOperands())) {
      Operation *maker = value.getDefiningOp();
      auto block = maker ? getBlock(maker->getLoc()) : std::nullopt;
      if (block && block->number == own->number)
        blockOf.try_emplace(
            cast<plan::ViewAttr>(output).getBuffer().getAttr(),
            KeptBlock{own->number, block->index + own->index - first->index});
    }
  });
}

/// The blocks that buffers are of. Of states the states say it.
static llvm::DenseMap<Operation *, KeptBlock>
findBlocks(plan::ProgramOp program, const SymbolTable &symbols) {
  llvm::DenseMap<StringAttr, KeptBlock> ofResults;
  findBlocksOfResults(program, symbols, ofResults);
  llvm::DenseMap<Operation *, KeptBlock> blockOf;
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    Operation *said = buffer;
    if (FlatSymbolRefAttr source = buffer.getSourceAttr())
      if (Operation *state = symbols.lookup(source.getAttr()))
        said = state;
    auto result = ofResults.find(buffer.getSymNameAttr());
    if (said == buffer && result != ofResults.end())
      blockOf[buffer] = result->second;
    else if (auto block = getBlock(said->getLoc()))
      blockOf[buffer] = *block;
  }
  return blockOf;
}

/// The layers of which ops are left; there are `count` in all.
static llvm::BitVector findLayers(ModuleOp module, size_t count) {
  llvm::BitVector found(count);
  func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
  if (step && count)
    for (Operation &op : step.front())
      if (auto layer = RecomputeChoices::getLayer(op.getLoc()))
        found.set(*layer);
  return found;
}

/// What each layer's clones take. Locations of clones are those of the forward.
static std::map<unsigned, double> addWork(func::FuncOp step,
                                          const llvm::BitVector &layers) {
  std::map<unsigned, double> work;
  for (unsigned layer : layers.set_bits())
    work[layer] = 0;
  for (Operation &op : step.front())
    if (op.hasAttr(dist::kRecomputedAttr))
      if (auto layer = RecomputeChoices::getLayer(op.getLoc()))
        work[*layer] += cost::getWork(&op);
  return work;
}

/// What a rank has of each layer that `isThere` at a moment.
static std::map<unsigned, int64_t> addLayers(plan::ProgramOp program,
                                             plan::ArenaOp arena,
                                             const plan::Liveness &liveness,
                                             const llvm::BitVector &isThere,
                                             size_t moment) {
  std::map<unsigned, int64_t> bytes;
  auto profiles = liveness.getProfiles(
      arena.getSpace(), arena.getAlignment(), isThere.size(),
      [&](plan::BufferOp buffer) -> std::optional<unsigned> {
        if (buffer.getRole() != plan::Role::activation)
          return std::nullopt;
        return RecomputeChoices::getLayer(buffer.getLoc());
      });
  for (unsigned layer : isThere.set_bits())
    bytes[layer] = profiles[layer][moment];
  return bytes;
}

/// Of the step; of a program with a single arena none.
static double addSecondsOfCopies(plan::ProgramOp program) {
  if (llvm::hasSingleElement(program.getOps<plan::ArenaOp>()))
    return 0;
  plan::BufferTable buffers(program);
  SymbolTableCollection symbols;
  double seconds = 0;
  for (auto entry : program.getOps<plan::EntryOp>())
    if (entry.getKind() == nn::stringifyEntryKind(nn::EntryKind::step))
      seconds += plan::getExposedCopySeconds(entry, buffers, symbols);
  return seconds;
}

namespace {
/// A copy that is tried.
struct TrialCopy {
  OwningOpRef<ModuleOp> module;
  std::vector<BlockClass> classes; ///< of blocks that were taken out
  llvm::BitVector layers;          ///< those that are left
};
} // namespace

/// A copy with the policies, without repeated blocks if they can be taken out.
static TrialCopy makeCopy(ModuleOp module, ArrayRef<unsigned> policyOfLayer,
                          Extent extent) {
  auto clone = [&] {
    OwningOpRef<ModuleOp> copy(module.clone());
    if (func::FuncOp step = nn::findEntry(*copy, nn::EntryKind::step);
        step && !policyOfLayer.empty()) {
      RecomputeChoices::clearMarks(step);
      RecomputeChoices choices(step);
      choices.mark(policyOfLayer);
      choices.markLocations();
    }
    return copy;
  };
  OwningOpRef<ModuleOp> copy = clone();
  std::vector<BlockClass> classes;
  if (extent == Extent::Shortened) {
    auto removed = removeRepeatedBlocks(*copy);
    if (succeeded(removed) && succeeded(verify(*copy)))
      classes = std::move(*removed);
    else
      copy = clone();
  }
  llvm::BitVector layers = findLayers(*copy, policyOfLayer.size());
  return {std::move(copy), std::move(classes), std::move(layers)};
}

/// What other stages compute nobody asks for.
static void emptyOthers(ModuleOp module, ArrayRef<int64_t> stages) {
  for (auto function : module.getOps<func::FuncOp>())
    if (auto task = function->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr))
      if (!function.isExternal() &&
          !llvm::is_contained(stages, task.getStage()))
        function.eraseBody();
}

FailureOr<Trial> search::tryPlan(ModuleOp module, const Trier &trier,
                                 ArrayRef<unsigned> policyOfLayer,
                                 Extent extent, ArrayRef<int64_t> stages) {
  // What is said of the copy is said of the program itself, later.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  TrialCopy copy = makeCopy(module, policyOfLayer, extent);
  // Nobody reads what the copy tells, and nobody runs it.
  cost::setDecision(*copy.module, cost::kConsideredKey, {});
  cost::setDecision(*copy.module, cost::kPredictedKey, {});
  cost::setDecision(*copy.module, cost::kFrontierKey, {});
  auto run = [&](auto build) {
    PassManager pm(module.getContext());
    pm.enableVerifier(false);
    build(pm);
    return pm.run(*copy.module);
  };
  if (failed(run(trier.buildSplit)))
    return failure();
  Trial trial;
  trial.isShortened = !copy.classes.empty();
  if (func::FuncOp step = nn::findEntry(*copy.module, nn::EntryKind::step))
    trial.workOfLayer = addWork(step, copy.layers);
  if (failed(run(trier.buildTasks)))
    return failure();
  if (!stages.empty())
    emptyOthers(*copy.module, stages);
  if (failed(
          run([&](OpPassManager &pm) { return trier.buildPlan(pm, stages); })))
    return failure();
  SymbolTable symbols(*copy.module);
  auto decisions = module->getAttrOfType<DictionaryAttr>(kDecisionsAttr);
  for (auto program : copy.module->getOps<plan::ProgramOp>()) {
    auto liveness = plan::Liveness::compute(program);
    auto blockOf = findBlocks(program, symbols);
    Trial::Stage &stage = trial.stages.emplace_back();
    stage.stage = program.getStage();
    if (!trial.isShortened) {
      stage.secondsOfCopies = addSecondsOfCopies(program);
      stage.roles =
          plan::addRoles(program, liveness, symbols, [&](plan::Space space) {
            return getBudgetKey(plan::stringifySpace(space), decisions) ==
                   kMemoryBudgetKey;
          });
    }
    for (auto arena : program.getOps<plan::ArenaOp>()) {
      Peak peak = predictArena(arena, liveness, copy.classes, blockOf);
      StringRef space = plan::stringifySpace(arena.getSpace());
      stage.arenas.push_back({stage.stage, space.str(), peak.bytes});
      if (getBudgetKey(space, decisions) == kMemoryBudgetKey)
        stage.bytes += peak.bytes;
      if (arena.getSpace() == plan::Space::device)
        stage.bytesOfLayer =
            addLayers(program, arena, liveness, copy.layers, peak.moment);
    }
  }
  return trial;
}
