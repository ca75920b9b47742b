// A pass of the tests: has the host update the states of a finished plan, as it
// will where they are offloaded. The update's body becomes one of engine `cpu`;
// what nobody else uses moves to the host with it, all else is copied there
// before and back behind, by the engine that has the arenas, and events order
// the two engines. plan-verify and plan-verify-equivalence have the last word.

#include "dialects/Plan/ForEachProgram.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/BufferTable.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {

constexpr StringLiteral kStream = "host", kPass = "model-update-on-host";

/// What a body does with a buffer, and who else does anything.
struct Use {
  bool readsFirst = false, writes = false, isShared = false;
  ViewAttr whole; ///< A view of all of it.
};

class Mover {
public:
  Mover(ProgramOp program, BodyOp body)
      : program(program), body(body), buffers(program) {}

  LogicalResult run() {
    if (failed(findUses()))
      return failure();
    for (auto &[buffer, use] : uses) {
      if (buffer.getSpace() != Space::device)
        continue; // the host reaches it
      if (use.isShared)
        addTwin(buffer, use);
      else
        place(buffer, Space::host);
    }
    moveBody();
    fitArena(Space::device);
    return success();
  }

private:
  LogicalResult findUses() {
    for (Operation &op : body.getBody().front()) {
      auto command = dyn_cast<CommandOpInterface>(op);
      if (!command || isa<CollectiveOp, ReadOp, WriteOp>(op))
        return op.emitOpError()
               << "expected a command that needs neither files "
                  "nor other ranks in a body for the host";
      for (ViewAttr view : command.getReads()) {
        Use &use = uses[buffers.lookup(view)];
        use.readsFirst |= !use.writes;
      }
      for (ViewAttr view : command.getWrites())
        uses[buffers.lookup(view)].writes = true;
    }
    for (auto &[buffer, use] : uses)
      if (buffer.getAliasOf() || buffer.getSlots() != 1)
        return buffer.emitOpError()
               << "expected bytes of its own, and one copy, "
                  "of what the host uses";
    program.walk([&](CommandOpInterface command) {
      bool isOwn = command->getParentOp() == body;
      command.forEachView([&](ViewAttr view, Access) {
        auto used = uses.find(buffers.lookup(view));
        if (used == uses.end())
          return;
        auto &[buffer, use] = *used;
        // Files know the host's memory as well as the device's.
        use.isShared |= !isOwn && !isa<ReadOp, WriteOp>(command);
        if (view.getOffset() == 0 && view.getAxes().empty() &&
            view.isContiguous() &&
            view.getSpanBytes() == int64_t(buffer.getBytes()))
          use.whole = view;
      });
    });
    for (auto &[buffer, use] : uses)
      if (use.isShared && !use.whole)
        return buffer.emitOpError()
               << "expected a view of all of it, found none";
    return success();
  }

  /// Moves a buffer behind the end of an arena.
  void place(BufferOp buffer, Space space) {
    ArenaOp arena = getArena(space);
    int64_t offset =
        llvm::alignTo(arena.getBytes(), uint64_t(arena.getAlignment()));
    buffer.setSpace(space);
    buffer.setOffset(offset);
    arena.setBytes(offset + int64_t(buffer.getBytes()));
  }

  ArenaOp getArena(Space space) {
    ArenaOp last;
    for (auto arena : program.getOps<ArenaOp>()) {
      if (arena.getSpace() == space)
        return arena;
      last = arena;
    }
    OpBuilder builder(last->getBlock(), ++Block::iterator(last));
    auto arena = cast<ArenaOp>(builder.clone(*last));
    arena.setSpace(space);
    arena.setBytes(0);
    arena.setReserve(0);
    return arena;
  }

  /// An arena is as large as its buffers need.
  void fitArena(Space space) {
    int64_t end = 0;
    for (auto buffer : program.getOps<BufferOp>())
      if (buffer.getSpace() == space)
        end = std::max<int64_t>(end, buffer.getOffset() + buffer.getBytes() +
                                         (buffer.getSlots() - 1) *
                                             buffer.getSlotStride());
    getArena(space).setBytes(end);
  }

  void addTwin(BufferOp buffer, const Use &use) {
    OpBuilder builder(buffer);
    builder.setInsertionPointAfter(buffer);
    auto twin = cast<BufferOp>(builder.clone(*buffer));
    twin.setSymName((buffer.getSymName() + ".host").str());
    twin.setRole(Role::activation);
    twin.removeSourceAttr();
    twin.removePartAttr();
    twin.removeValueAttr();
    place(twin, Space::pinned);
    twins[buffer.getSymNameAttr()] = FlatSymbolRefAttr::get(twin);
    if (use.readsFirst)
      down.push_back(use.whole);
    if (use.writes)
      up.push_back(use.whole);
  }

  /// The same view of a buffer's twin, if it has one.
  ViewAttr onHost(ViewAttr view) {
    FlatSymbolRefAttr twin = twins.lookup(view.getBuffer().getAttr());
    return twin ? ViewAttr::get(view.getContext(), twin, view.getOffset(),
                                view.getAxes(), view.getElement(),
                                view.getShape(), view.getStrides())
                : view;
  }

  void moveBody() {
    OpBuilder builder(body);
    Location loc = body.getLoc();
    auto create = [&](StringRef suffix) {
      auto made = BodyOp::create(
          builder, loc, (body.getSymName() + suffix).str(), body.getEngine());
      made.getBody().emplaceBlock();
      return made;
    };
    BodyOp before = create("_to_host");
    builder.setInsertionPointAfter(body);
    BodyOp behind = create("_from_host");
    auto copy = [&](OpBuilder &at, ViewAttr source, ViewAttr target) {
      auto made = CopyOp::create(at, loc, source, target, "compute");
      made->setAttr(kInsertedByAttr, at.getStringAttr(kPass));
    };
    OpBuilder first = OpBuilder::atBlockEnd(&before.getBody().front()),
              last = OpBuilder::atBlockEnd(&behind.getBody().front());
    for (ViewAttr view : down)
      copy(first, view, onHost(view));
    RecordOp::create(first, loc, "to_host", "compute");
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](ViewAttr view) { return onHost(view); });
    for (Operation &op : body.getBody().front()) {
      // Copies read what was released later than the body does.
      op.removeAttr(kReleasesAttr);
      replacer.replaceElementsIn(&op);
      cast<CommandOpInterface>(op)->setAttr("stream",
                                            builder.getStringAttr(kStream));
    }
    OpBuilder own = OpBuilder::atBlockBegin(&body.getBody().front());
    WaitOp::create(own, loc, "to_host", FlatSymbolRefAttr::get(before),
                   kStream);
    own.setInsertionPointToEnd(&body.getBody().front());
    RecordOp::create(own, loc, "from_host", kStream);
    WaitOp::create(last, loc, "from_host", FlatSymbolRefAttr::get(body),
                   "compute");
    for (ViewAttr view : up)
      copy(last, onHost(view), view);
    body.setEngine(Engine::cpu);
    moveRuns(before, behind);
  }

  /// Each run stands in segments of its own, of three bodies.
  void moveRuns(BodyOp before, BodyOp behind) {
    SmallVector<RunOp> runs;
    program.walk([&](RunOp run) {
      if (buffers.getBody(run) == body)
        runs.push_back(run);
    });
    for (RunOp run : runs) {
      auto segment = cast<SegmentOp>(run->getParentOp());
      OpBuilder builder(segment);
      builder.setInsertionPointAfter(segment);
      auto add = [&](BodyOp one) {
        auto made = SegmentOp::create(builder, run.getLoc(), one.getEngine(),
                                      segment.getCapturable());
        made.getBody().emplaceBlock();
        return made;
      };
      auto addRun = [&](BodyOp one) {
        OpBuilder inner = OpBuilder::atBlockEnd(&add(one).getBody().front());
        auto moved = cast<RunOp>(inner.clone(*run));
        moved.setTask(one.getSymName());
      };
      addRun(before);
      addRun(body);
      addRun(behind);
      if (Operation *next = run->getNextNode()) {
        SegmentOp rest = add(before);
        while (next) {
          Operation *after = next->getNextNode();
          next->moveBefore(&rest.getBody().front(),
                           rest.getBody().front().end());
          next = after;
        }
      }
      run.erase();
      if (segment.getBody().front().empty())
        segment.erase();
    }
  }

  ProgramOp program;
  BodyOp body;
  BufferTable buffers;
  llvm::MapVector<BufferOp, Use> uses;
  llvm::DenseMap<StringAttr, FlatSymbolRefAttr> twins;
  SmallVector<ViewAttr> down, up;
};

struct UpdateOnHost : PassWrapper<UpdateOnHost, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UpdateOnHost)
  StringRef getArgument() const override { return kPass; }
  StringRef getDescription() const override {
    return "Has the host update the states of a finished plan";
  }

  void runOnOperation() override {
    LogicalResult moved =
        forEachProgram(getOperation(), [](ProgramOp program) -> LogicalResult {
          auto update = program.lookupSymbol<BodyOp>("update");
          if (!update)
            return program.emitOpError() << "expected a body @update";
          return Mover(program, update).run();
        });
    if (failed(moved))
      signalPassFailure();
  }
};

PassRegistration<UpdateOnHost> registration;

} // namespace
