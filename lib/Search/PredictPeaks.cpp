// Plans a copy, and reads its arenas.

#include "PredictPeaks.h"

#include "RepeatedBlocks.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Plan/Plan.h"
#include "lib/Cost/Decision.h"
#include "lib/Plan/Liveness.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::search;

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

/// The bytes of an arena with the blocks that were taken out. A gap as large as
/// a buffer is what one left; more of them grow as what comes and goes does.
static int64_t
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
    then.add(alive + more);
  }
  int64_t gaps = int64_t(arena.getBytes()) - now.most;
  double growth = now.getSpan() > 0 ? then.getSpan() / now.getSpan() : 1;
  int64_t growing = std::max<int64_t>(gaps - getLargest(arena), 0);
  return then.most + gaps + std::llround(double(growing) * (growth - 1));
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

/// The copy without the blocks that repeat themselves; null where they cannot
/// be taken out.
static OwningOpRef<ModuleOp> shorten(ModuleOp module,
                                     std::vector<BlockClass> &classes) {
  OwningOpRef<ModuleOp> copy(module.clone());
  auto removed = removeRepeatedBlocks(*copy);
  if (failed(removed) || failed(verify(*copy)))
    return nullptr;
  classes = std::move(*removed);
  return copy;
}

std::vector<cost::PredictedArena>
search::predictPeaks(ModuleOp module, const SplitBuilder &buildSplit,
                     const PlanBuilder &buildPlan) {
  // What is said of the copy is said of the program itself, later.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  std::vector<BlockClass> classes;
  OwningOpRef<ModuleOp> copy = shorten(module, classes);
  if (!copy)
    copy = module.clone();
  // Nobody reads what the copy tells, and nobody runs it.
  cost::setDecision(*copy, cost::kConsideredKey, {});
  cost::setDecision(*copy, cost::kPredictedKey, {});
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  buildSplit(pm);
  buildPlan(pm);
  std::vector<cost::PredictedArena> arenas;
  if (failed(pm.run(*copy)))
    return arenas;
  SymbolTable symbols(*copy);
  for (auto program : copy->getOps<plan::ProgramOp>()) {
    auto liveness = plan::Liveness::compute(program);
    auto blockOf = findBlocks(program, symbols);
    for (auto arena : program.getOps<plan::ArenaOp>())
      arenas.push_back({int64_t(program.getStage()),
                        plan::stringifySpace(arena.getSpace()).str(),
                        predictArena(arena, liveness, classes, blockOf)});
  }
  return arenas;
}
