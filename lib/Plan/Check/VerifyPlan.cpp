// The last word on a plan: places, sizes and order, checked from the plan's
// text alone.

#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"
#include "lib/Target/TargetTable.h"

#include "Rendezvous.h"
#include "Replay.h"
#include "StoredBytes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/ForEachProgram.h"
#include <map>

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_VERIFYPLANPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct VerifyPlanPass : impl::VerifyPlanPassBase<VerifyPlanPass> {
  using Base::Base;

  void runOnOperation() override {
    LogicalResult found = success();
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto body : program.getOps<BodyOp>())
        if (succeeded(found))
          found = findTargetOf(body.getEngine());
    if (failed(found))
      return signalPassFailure();
    LogicalResult each = forEachProgram(getOperation(), [&](ProgramOp program) {
      BufferTable buffers(program);
      return failure(failed(checkPlaces(program)) ||
                     failed(checkSegments(program, buffers)) ||
                     failed(checkRuns(program, buffers)) ||
                     failed(checkViews(program, buffers)) ||
                     failed(checkExchange(program, buffers)) ||
                     failed(checkStoredBytes(program, buffers)) ||
                     failed(Replay(program, buffers).run()));
    });
    if (failed(each))
      return signalPassFailure();
    if (failed(checkRendezvous(getOperation(), [&](BodyOp body) {
          return targetOf(body).getExchangeQueues();
        })))
      signalPassFailure();
  }

  /// Finds what bodies of an engine are for: the target of the option, or,
  /// since a text does not say what --target was, the one that is called as the
  /// engine is.
  LogicalResult findTargetOf(Engine engine) {
    const Target *&known = targets[engine];
    if (known)
      return success();
    FailureOr<const Target *> chosen = findTarget(getOperation(), target);
    if (failed(chosen))
      return failure();
    if (target.empty() || (*chosen)->getEngine() != engine)
      chosen = findTarget(getOperation(), stringifyEngine(engine));
    if (failed(chosen))
      return failure();
    known = *chosen;
    return success();
  }
  const Target &targetOf(BodyOp body) {
    return *targets.find(body.getEngine())->second;
  }

  /// A segment runs bodies of its engine, and commands that the engine's target
  /// can capture if it is to be captured; a stream is of one engine.
  LogicalResult checkSegments(ProgramOp program, const BufferTable &buffers) {
    WalkResult segments = program.walk([&](RunOp run) {
      auto segment = cast<SegmentOp>(run->getParentOp());
      BodyOp body = buffers.getBody(run);
      if (segment.getEngine() != body.getEngine())
        return run.emitOpError() << "expected a body of engine '"
                                 << stringifyEngine(segment.getEngine())
                                 << "', as its segment is, found '"
                                 << stringifyEngine(body.getEngine()) << "'",
               WalkResult::interrupt();
      for (Operation &op : body.getBody().front())
        if (segment.getCapturable() && !targetOf(body).isCapturable(&op)) {
          InFlightDiagnostic error =
              run.emitOpError() << "expected a body that target '"
                                << targetOf(body).getText() << "' can capture";
          error.attachNote(op.getLoc()) << "found what it cannot";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (segments.wasInterrupted())
      return failure();
    llvm::StringMap<BodyOp> streams;
    WalkResult one = program.walk([&](CommandOpInterface command) {
      auto body = command->getParentOfType<BodyOp>();
      BodyOp first =
          streams.try_emplace(command.getStreamName(), body).first->second;
      if (first.getEngine() == body.getEngine())
        return WalkResult::advance();
      command.emitOpError() << "expected a stream of one engine, found '"
                            << command.getStreamName() << "' in bodies of '"
                            << stringifyEngine(first.getEngine()) << "' and '"
                            << stringifyEngine(body.getEngine()) << "'";
      return WalkResult::interrupt();
    });
    return failure(one.wasInterrupted());
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

  /// In each entry a body runs once, or once for each micro-batch, as one must
  /// that reads or writes a part of what is split over them.
  LogicalResult checkRuns(ProgramOp program, const BufferTable &buffers) {
    int64_t count = 1;
    if (auto name = program.getMeshAttr())
      if (dist::MeshOp mesh =
              dist::MeshOp::lookup(program->getParentOp(), name))
        count = mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
    if (failed(checkEach(program, count)))
      return failure();
    for (auto entry : program.getOps<EntryOp>()) {
      // Of each body the micro-batches [first, end) of its runs, and one run.
      llvm::MapVector<Operation *, SmallVector<std::pair<int64_t, int64_t>>>
          spans;
      llvm::DenseMap<Operation *, RunOp> lastRuns;
      WalkResult inRange = entry.walk([&](RunOp run) {
        int64_t first = run.getOffset(), trips = run.getTrips();
        if (first < 0 || first >= count || trips > count - first) {
          run.emitOpError() << "expected one of " << count
                            << " micro-batches in every turn, found " << first
                            << " in the first of " << trips;
          return WalkResult::interrupt();
        }
        BodyOp body = buffers.getBody(run);
        spans[body].push_back({first, first + trips});
        lastRuns[body] = run;
        return WalkResult::advance();
      });
      if (inRange.wasInterrupted())
        return failure();
      for (auto &[body, list] : spans) {
        llvm::sort(list);
        int64_t end = 0, runs = 0;
        bool distinct = true;
        for (auto [first, next] : list) {
          distinct &= first >= end;
          runs += next - first;
          end = next;
        }
        bool all = distinct && runs == count;
        if (!all && (runs > 1 || movesMicroBatch(cast<BodyOp>(body))))
          return lastRuns[body].emitOpError()
                 << "expected @" << cast<BodyOp>(body).getSymName()
                 << " to run once for each of " << count
                 << " micro-batches, found some twice or never";
      }
    }
    return success();
  }

  /// Whether a command reads or writes of what is split over micro-batches what
  /// the run's has.
  static bool movesMicroBatch(BodyOp body) {
    auto isSplit = [](PartAttr part) {
      return llvm::any_of(part.getAxes().getAsRange<ArrayAttr>(), [](auto dim) {
        return llvm::any_of(
            dim.template getAsRange<StringAttr>(), [](auto axis) {
              return axis.getValue() == dist::MeshOp::kMicroBatchAxis;
            });
      });
    };
    auto moves = [&](auto op) {
      return !op.getEachMicroBatch() && isSplit(op.getPart());
    };
    return llvm::any_of(body.getOps<ReadOp>(), moves) ||
           llvm::any_of(body.getOps<WriteOp>(), moves);
  }

  /// What has the parts of each micro-batch has as many as there are.
  static LogicalResult checkEach(ProgramOp program, int64_t count) {
    auto check = [&](auto op, ViewAttr view) -> LogicalResult {
      if (!op.getEachMicroBatch() || view.getShape().front() == count)
        return success();
      return op.emitOpError()
             << "expected a view of the parts of " << count
             << " micro-batches, found one of " << view.getShape().front();
    };
    WalkResult walked = program.walk([&](Operation *op) {
      LogicalResult found = success();
      if (auto read = dyn_cast<ReadOp>(op))
        found = check(read, read.getTarget());
      if (auto write = dyn_cast<WriteOp>(op))
        found = check(write, write.getView());
      return failed(found) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  /// Every view lies in its buffer for every coordinate.
  LogicalResult checkViews(ProgramOp program, const BufferTable &buffers) {
    llvm::StringMap<int64_t> sizes;
    if (auto name = program.getMeshAttr())
      if (dist::MeshOp mesh =
              dist::MeshOp::lookup(program->getParentOp(), name))
        for (auto axis : mesh.getAxes().getAsRange<dist::AxisAttr>())
          sizes[axis.getName()] = axis.getSize();
    program.walk([&](RunOp run) {
      sizes["mb"] = std::max<int64_t>(
          sizes.lookup("mb"), int64_t(run.getOffset()) + run.getTrips());
    });
    WalkResult views = program.walk([&](CommandOpInterface command) {
      SmallVector<ViewAttr> all = command.getReads();
      llvm::append_range(all, command.getWrites());
      for (StringRef name : {"row_steps", "column_steps"})
        if (auto steps = command->getAttrOfType<DictionaryAttr>(name))
          for (NamedAttribute step : steps)
            if (step.getName() == dist::MeshOp::kMicroBatchAxis ||
                !sizes.contains(step.getName()))
              return command.emitOpError()
                         << "expected an axis of ranks in '" << name
                         << "', found '" << step.getName().getValue() << "'",
                     WalkResult::interrupt();
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

  /// What other ranks read lies where they can.
  LogicalResult checkExchange(ProgramOp program, const BufferTable &buffers) {
    auto check = [&](Operation *op, ViewAttr view) -> LogicalResult {
      BufferOp buffer = buffers.lookup(view);
      Space exchange =
          targetOf(op->getParentOfType<BodyOp>()).getExchangeSpace();
      if (buffer.getSpace() == exchange)
        return success();
      return op->emitOpError() << "expected " << view.getBuffer()
                               << ", which other ranks access, in space '"
                               << stringifySpace(exchange) << "', found '"
                               << stringifySpace(buffer.getSpace()) << "'";
    };
    WalkResult result = program.walk([&](Operation *op) {
      SmallVector<ViewAttr> views;
      if (auto send = dyn_cast<SendOp>(op))
        views.push_back(send.getView());
      if (auto collective = dyn_cast<CollectiveOp>(op)) {
        llvm::append_range(views,
                           collective.getInputs().getAsRange<ViewAttr>());
        if (collective.getCollective() == Collective::all_reduce)
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

  /// By engine, of the bodies that there are.
  std::map<Engine, const Target *> targets;
};
} // namespace
} // namespace accel::plan
