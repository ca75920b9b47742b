// Gives every buffer its offset. Buffers share bytes where all accesses of one
// happen before all accesses of the other; the order is taken as it is, no edge
// is added to it.

#include "GapFinder.h"
#include "lib/Plan/Order/CommandOrder.h"

#include "dialects/Plan/ForEachProgram.h"
#include "dialects/Plan/Storage.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"
#include "lib/Target/TargetTable.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_ALLOCATEBUFFERSPASS
#include "lib/Plan/Passes.h.inc"

namespace {
/// A stretch in which a buffer holds something: of each stream the last
/// execution that accesses it, and what surely comes before every access.
struct Interval {
  SmallVector<unsigned, 4> last, before;
  unsigned firstPosition = 0, lastPosition = 0;
  int64_t microBatch = 0;

  void add(const Execution &execution, unsigned position) {
    lastPosition = position;
    if (last.empty()) {
      firstPosition = position;
      last.assign(execution.clock.size(), 0);
      before.assign(execution.clock.begin(), execution.clock.end());
    }
    last[execution.stream] =
        std::max(last[execution.stream], execution.ordinal);
    for (auto [mine, theirs] : llvm::zip_equal(before, execution.clock))
      mine = std::min(mine, theirs);
  }

  /// Whether all other accesses happen before `execution`.
  bool endsWith(const Execution &execution) const {
    for (auto [stream, end] : llvm::enumerate(last))
      if (end > (stream == execution.stream ? execution.ordinal
                                            : execution.clock[stream]))
        return false;
    return true;
  }
};

/// When a buffer is used. What a micro-batch writes before it reads it owes
/// nothing to the one before, and has an interval of its own; of a buffer that
/// keeps several micro-batches the copies are one.
struct Lifetime {
  BufferOp buffer;
  bool persistent = false;
  /// Micro-batches have their own pieces of it, which all of them must outlive.
  bool hasPieces = false;
  SmallVector<Interval, 1> intervals;
  std::optional<unsigned> entry;
  int64_t bytes = 0;

  void add(const Execution &execution, unsigned position, bool writesOnly) {
    // What one call leaves to another must outlive both.
    persistent |= entry && *entry != execution.entry;
    entry = execution.entry;
    int64_t batch = execution.run.getMicroBatch();
    if (intervals.empty() ||
        (buffer.getSlots() == 1 && !hasPieces &&
         intervals.back().microBatch != batch && writesOnly &&
         intervals.back().endsWith(execution)))
      intervals.emplace_back();
    intervals.back().microBatch = batch;
    intervals.back().add(execution, position);
  }

  /// Buffers may share bytes if each stretch of one surely ends before each of
  /// the other begins, or the other way around.
  SmallVector<Stretch, 1> getStretches() const {
    return llvm::map_to_vector<1>(intervals, [](const Interval &interval) {
      return Stretch{interval.firstPosition, interval.lastPosition,
                     interval.last, interval.before};
    });
  }
};

/// The lifetimes that a command's views are part of, each as often as there are
/// views.
struct Use {
  Lifetime *lifetime;
  /// Whether it reads nothing that was there before.
  bool writesOnly;
};
using Uses = llvm::DenseMap<Operation *, SmallVector<Use, 4>>;

/// In the order of the arenas.
constexpr Space kSpaces[] = {Space::device, Space::pinned, Space::host,
                             Space::shared, Space::nvme};

struct AllocateBuffersPass
    : impl::AllocateBuffersPassBase<AllocateBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<const Target *> chosen = findTarget(getOperation(), target);
    if (failed(chosen))
      return signalPassFailure();
    for (Space space : kSpaces) {
      int64_t &own = alignments[space] =
          alignment == 0 ? (*chosen)->getAlignment(space) : alignment;
      // Whatever the target wants: no two buffers have bytes of one sector, so
      // that none is read again for the other's sake.
      if (space == Space::nvme)
        own = std::max(own, kStorageSector);
      if (own >= 1 && llvm::isPowerOf2_64(own))
        continue;
      getOperation().emitError()
          << "expected a power of two as alignment, found " << own;
      return signalPassFailure();
    }
    if (failed(forEachProgram(getOperation(), [&](ProgramOp program) {
          return runOnProgram(program);
        })))
      signalPassFailure();
  }

  LogicalResult runOnProgram(ProgramOp program) {
    FailureOr<CommandOrder> order = CommandOrder::compute(program);
    if (failed(order))
      return failure();
    for (auto arena : llvm::make_early_inc_range(program.getOps<ArenaOp>()))
      arena.erase();
    BufferTable buffers(program);
    llvm::MapVector<StringAttr, Lifetime> lifetimes = list(program);
    Uses uses = listUses(program, buffers, lifetimes);
    for (auto [position, execution] : llvm::enumerate(order->getExecutions()))
      for (auto [lifetime, writesOnly] : uses.find(execution.command)->second)
        lifetime->add(execution, position, writesOnly);
    OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
    for (Space space : kSpaces) {
      SmallVector<Lifetime *> placed;
      int64_t bytes = place(lifetimes, *order, space, placed);
      if (placed.empty())
        continue;
      auto arena = ArenaOp::create(builder, program.getLoc(), space, bytes,
                                   alignments[space], /*reserve=*/0);
      if (space != Space::nvme)
        continue;
      Storage{storagePath, blockSize, queueDepth}.attach(arena);
      if (failed(Storage::read(arena)))
        return failure();
    }
    for (auto buffer : program.getOps<BufferOp>())
      if (buffer.getAliasOf())
        buffer.setOffset(buffers.lookup(buffer.getAliasOfAttr()).getOffset());
    markReleases(*order, uses);
    return success();
  }

  /// The name of the buffer whose bytes a view is of.
  static StringAttr getOwner(const BufferTable &buffers, ViewAttr view) {
    BufferOp buffer = buffers.lookup(view);
    return buffer.getAliasOf() ? buffer.getAliasOfAttr().getAttr()
                               : buffer.getSymNameAttr();
  }

  llvm::MapVector<StringAttr, Lifetime> list(ProgramOp program) {
    llvm::MapVector<StringAttr, Lifetime> lifetimes;
    for (auto buffer : program.getOps<BufferOp>()) {
      if (buffer.getAliasOf())
        continue;
      Lifetime &lifetime = lifetimes[buffer.getSymNameAttr()];
      lifetime.buffer = buffer;
      if (buffer.getSlots() > 1)
        buffer.setSlotStride(llvm::alignTo(buffer.getSlotStride(),
                                           alignments[buffer.getSpace()]));
      lifetime.bytes = static_cast<int64_t>(
          (buffer.getSlots() - 1) * buffer.getSlotStride() + buffer.getBytes());
      // Filled before anything runs, or kept from call to call.
      lifetime.persistent = llvm::is_contained(
          {Role::state, Role::packed, Role::constant}, buffer.getRole());
    }
    return lifetimes;
  }

  /// Of each space, what its buffers' offsets are multiples of.
  std::map<Space, int64_t> alignments;

  static Uses listUses(ProgramOp program, const BufferTable &buffers,
                       llvm::MapVector<StringAttr, Lifetime> &lifetimes) {
    Uses uses;
    program.walk([&](CommandOpInterface command) {
      llvm::SmallDenseSet<StringAttr> read;
      for (ViewAttr view : command.getReads())
        read.insert(getOwner(buffers, view));
      SmallVector<Use, 4> &own = uses[command];
      for (ViewAttr view : getViews(command)) {
        StringAttr owner = getOwner(buffers, view);
        Lifetime &lifetime = lifetimes[owner];
        lifetime.hasPieces |=
            llvm::any_of(view.getAxes(), [](AxisStrideAttr axis) {
              return axis.getAxis() == dist::MeshOp::kMicroBatchAxis;
            });
        // Scratch is read as it is written, and never from before.
        own.push_back(
            {&lifetime, !read.contains(owner) ||
                            lifetime.buffer.getRole() == Role::scratch});
      }
    });
    return uses;
  }

  /// Places the buffers of a space and returns the bytes it needs. Persistent
  /// ones first, side by side; of the others the largest first, each into the
  /// smallest gap that holds it between those whose lifetimes meet its own
  /// (greedy by size: Pisarchyk and Lee, arXiv:2001.03288).
  int64_t place(llvm::MapVector<StringAttr, Lifetime> &lifetimes,
                const CommandOrder &executions, Space space,
                SmallVectorImpl<Lifetime *> &placed) {
    int64_t alignment = alignments[space];
    SmallVector<Lifetime *> order;
    for (auto &[name, lifetime] : lifetimes)
      if (lifetime.buffer.getSpace() == space)
        order.push_back(&lifetime);
    llvm::stable_sort(order, [](Lifetime *lhs, Lifetime *rhs) {
      if (lhs->persistent != rhs->persistent)
        return lhs->persistent;
      return !lhs->persistent && lhs->bytes > rhs->bytes;
    });
    int64_t end = 0, persistentEnd = 0;
    GapFinder gaps(executions, alignment);
    for (Lifetime *lifetime : order) {
      int64_t offset = llvm::alignTo(persistentEnd, alignment);
      if (!lifetime->persistent) {
        SmallVector<Stretch, 1> stretches = lifetime->getStretches();
        offset = gaps.find(stretches, lifetime->bytes, offset);
        gaps.insert(stretches, lifetime->bytes, offset);
      }
      lifetime->buffer.setOffset(offset);
      placed.push_back(lifetime);
      end = std::max(end, offset + lifetime->bytes);
      if (lifetime->persistent)
        persistentEnd = end;
    }
    return end;
  }

  /// Lists, on the last access of each buffer that others may take the bytes
  /// of, its bytes. One text serves all runs of a body: what not all of them
  /// release cannot be said in it.
  void markReleases(const CommandOrder &order, const Uses &uses) {
    Builder builder(&getContext());
    llvm::MapVector<Operation *, llvm::SetVector<Attribute>> releases;
    for (const Execution &execution : order.getExecutions()) {
      llvm::SetVector<Attribute> released;
      for (auto [used, _] : uses.find(execution.command)->second) {
        const Lifetime &lifetime = *used;
        BufferOp buffer = lifetime.buffer;
        if (lifetime.persistent || buffer.getSlots() != 1)
          continue;
        bool ends = llvm::any_of(lifetime.intervals, [&](auto &interval) {
          return interval.last[execution.stream] == execution.ordinal &&
                 interval.endsWith(execution);
        });
        if (ends)
          released.insert(ViewAttr::get(
              &getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0,
              {}, builder.getI8Type(),
              {static_cast<int64_t>(buffer.getBytes())}, {1}));
      }
      auto [known, isNew] = releases.insert({execution.command, released});
      if (!isNew)
        known->second.remove_if(
            [&](Attribute view) { return !released.contains(view); });
    }
    for (auto &[command, released] : releases) {
      if (released.empty())
        command->removeAttr(kReleasesAttr);
      else
        command->setAttr(kReleasesAttr,
                         builder.getArrayAttr(released.getArrayRef()));
    }
  }
};
} // namespace
} // namespace accel::plan
