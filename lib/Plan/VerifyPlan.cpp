// The last word on a plan: places, sizes and order, checked from the plan's
// text alone.

#include "accel/Plan/BufferTable.h"
#include "accel/Plan/Passes.h"

#include "Replay.h"
#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_VERIFYPLANPASS
#include "accel/Plan/Passes.h.inc"

namespace {
struct VerifyPlanPass : impl::VerifyPlanPassBase<VerifyPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      BufferTable buffers(program);
      if (failed(checkPlaces(program)) ||
          failed(checkViews(program, buffers)) ||
          failed(checkShared(program, buffers)) ||
          failed(Replay(program, buffers).run()))
        return signalPassFailure();
    }
    if (failed(checkMessages()))
      signalPassFailure();
  }

  /// Every buffer lies in its arena, and the arena is as large as they need.
  LogicalResult checkPlaces(ProgramOp program) {
    llvm::MapVector<Space, std::pair<ArenaOp, int64_t>> ends;
    for (auto arena : program.getOps<ArenaOp>())
      if (!ends.insert({arena.getSpace(), {arena, 0}}).second)
        return arena.emitOpError() << "expected one arena of space '"
                                   << stringifySpace(arena.getSpace()) << "'";
    for (auto buffer : program.getOps<BufferOp>()) {
      auto found = ends.find(buffer.getSpace());
      if (found == ends.end())
        return buffer.emitOpError()
               << "expected an arena of space '"
               << stringifySpace(buffer.getSpace()) << "', found none";
      auto &[arena, highest] = found->second;
      int64_t offset = buffer.getOffset(), alignment = arena.getAlignment();
      if (offset < 0 || offset % alignment)
        return buffer.emitOpError()
               << "expected an offset that is a multiple of " << alignment
               << ", found " << offset;
      int64_t end =
          offset +
          int64_t(buffer.getSlots() - 1) * int64_t(buffer.getSlotStride()) +
          int64_t(buffer.getBytes());
      if (end > int64_t(arena.getBytes()))
        return buffer.emitOpError()
               << "expected a place within the " << arena.getBytes()
               << " bytes of its arena, found an end at " << end;
      highest = std::max(highest, end);
    }
    for (auto &[space, entry] : ends)
      if (entry.second != int64_t(entry.first.getBytes()))
        return entry.first.emitOpError()
               << "expected the " << entry.second
               << " bytes that its buffers need, found "
               << entry.first.getBytes();
    return success();
  }

  /// Every view lies in its buffer for every slot and every coordinate.
  LogicalResult checkViews(ProgramOp program, const BufferTable &buffers) {
    llvm::StringMap<int64_t> sizes;
    if (auto name = program.getMeshAttr())
      if (dist::MeshOp mesh =
              dist::MeshOp::lookup(program->getParentOp(), name))
        for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
          sizes[axis.getName()] = axis.getSize();
    WalkResult runs = program.walk([&](RunOp run) {
      sizes["mb"] = std::max<int64_t>(
          sizes.lookup("mb"), int64_t(run.getOffset()) + run.getTrips());
      BodyOp body = buffers.getBody(run);
      WalkResult result = body.walk([&](CommandOpInterface command) {
        SmallVector<ViewAttr> views = command.getReads();
        llvm::append_range(views, command.getWrites());
        for (ViewAttr view : views)
          if (failed(checkSlot(buffers, view, run)))
            return WalkResult::interrupt();
        return WalkResult::advance();
      });
      return result;
    });
    if (runs.wasInterrupted())
      return failure();
    WalkResult views = program.walk([&](CommandOpInterface command) {
      SmallVector<ViewAttr> all = command.getReads();
      llvm::append_range(all, command.getWrites());
      for (ViewAttr view : all) {
        int64_t end = view.getOffset() + view.getSpanBytes();
        for (AxisStrideAttr axis : view.getAxes()) {
          auto size = sizes.find(axis.getAxis());
          if (size == sizes.end())
            return command.emitOpError()
                       << "expected an axis of the mesh, found '"
                       << axis.getAxis() << "'",
                   WalkResult::interrupt();
          end += (size->second - 1) * axis.getBytes();
        }
        BufferOp buffer = buffers.lookup(view);
        if (end > int64_t(buffer.getBytes()))
          return command.emitOpError()
                     << "expected a view within the " << buffer.getBytes()
                     << " bytes of " << view.getBuffer()
                     << " for every rank, found one that ends at byte " << end,
                 WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(views.wasInterrupted());
  }

  LogicalResult checkSlot(const BufferTable &buffers, ViewAttr view,
                          RunOp run) {
    if (view.getSlot() < 0)
      return success();
    BufferOp buffer = buffers.lookup(view);
    int64_t slot = run.getSlots()[view.getSlot()];
    if (slot >= 0 && slot < int64_t(buffer.getSlots()))
      return success();
    return run.emitOpError()
           << "expected a slot below " << buffer.getSlots() << " of "
           << view.getBuffer() << ", found " << slot;
  }

  /// What other ranks read lies where they can.
  LogicalResult checkShared(ProgramOp program, const BufferTable &buffers) {
    auto check = [&](Operation *op, ViewAttr view) -> LogicalResult {
      BufferOp buffer = buffers.lookup(view);
      if (buffer.getSpace() == Space::shared)
        return success();
      return op->emitOpError()
             << "expected " << view.getBuffer()
             << ", which other ranks access, in space 'shared', found '"
             << stringifySpace(buffer.getSpace()) << "'";
    };
    WalkResult result = program.walk([&](Operation *op) {
      SmallVector<ViewAttr> views;
      if (auto send = dyn_cast<SendOp>(op))
        views.push_back(send.getView());
      if (auto collective = dyn_cast<CollectiveOp>(op)) {
        llvm::append_range(views,
                           collective.getInputs().getAsRange<ViewAttr>());
        if (collective.getKind() == Collective::all_reduce)
          llvm::append_range(views,
                             collective.getOutputs().getAsRange<ViewAttr>());
      }
      for (ViewAttr view : views)
        if (failed(check(op, view)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Every message that is sent is received: stages are programs of their own.
  LogicalResult checkMessages() {
    std::map<std::tuple<std::string, int64_t, int64_t>,
             std::pair<int64_t, Operation *>>
        open;
    getOperation().walk([&](RunOp run) {
      auto program = run->getParentOfType<ProgramOp>();
      program.lookupSymbol<BodyOp>(run.getTask()).walk([&](Operation *op) {
        if (auto send = dyn_cast<SendOp>(op)) {
          auto &entry = open[{send.getAxis().str(), int64_t(send.getDelta()),
                              int64_t(send.getTag())}];
          entry.first += run.getTrips();
          entry.second = op;
        } else if (auto recv = dyn_cast<RecvOp>(op)) {
          auto &entry = open[{recv.getAxis().str(), -int64_t(recv.getDelta()),
                              int64_t(recv.getTag())}];
          entry.first -= run.getTrips();
          entry.second = op;
        }
      });
    });
    for (auto &[key, entry] : open)
      if (entry.first != 0)
        return entry.second->emitOpError()
               << (entry.first > 0 ? "sends what no rank receives"
                                   : "receives what no rank sends");
    return success();
  }
};
} // namespace
} // namespace accel::plan
