// Looks up commands in the table of the target, and plays bodies.

#include "CommandSeconds.h"

#include "Summary.h"
#include "lib/Cost/Machine.h"
#include "lib/Target/TargetTable.h"

#include "llvm/ADT/StringMap.h"
#include <optional>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static int64_t getBytes(ViewAttr view) {
  return view.getNumElements() * view.getElementBytes();
}

double plan::getCopySeconds(int64_t bytes, Space space) {
  if (space == Space::nvme)
    return cost::kMachine.storage.getSeconds(double(bytes));
  // Read on one side, written on the other.
  return cost::kMachine.rank.getSeconds(0, 2 * double(bytes));
}

/// The space that a copy fetches from, or puts into; none of one within an
/// arena.
static std::optional<Space> getOtherSpace(CopyOp copy,
                                          const BufferTable &buffers) {
  Space source = buffers.lookup(copy.getSource()).getSpace(),
        target = buffers.lookup(copy.getTarget()).getSpace();
  if (source == target)
    return std::nullopt;
  return source == Space::device ? target : source;
}

double plan::getCommandSeconds(CommandOpInterface command,
                               const BufferTable &buffers,
                               SymbolTableCollection &symbols) {
  Operation *op = command.getOperation();
  if (isa<RecordOp, WaitOp>(op))
    return 0;
  if (auto copy = dyn_cast<CopyOp>(op))
    if (auto other = getOtherSpace(copy, buffers))
      return getCopySeconds(getBytes(copy.getTarget()), *other);
  double bytes = 0;
  command.forEachView([&](ViewAttr view, Access how) {
    if (how != Access::None && buffers.lookup(view).getRole() != Role::scratch)
      bytes += double(getBytes(view)) * (how == Access::Both ? 2 : 1);
  });
  if (isa<CollectiveOp>(op))
    return cost::kMachine.collective.getSeconds(bytes);
  return cost::kMachine.rank.getSeconds(double(countFlops(command, symbols)),
                                        bytes);
}

namespace {
/// The streams of a body, beside each other.
class Player {
public:
  void add(CommandOpInterface command, double seconds) {
    double &now = streams[command.getStreamName()];
    // What another body has recorded was before this one.
    if (auto wait = dyn_cast<WaitOp>(command.getOperation());
        wait && !wait.getBody())
      now = std::max(now, events.lookup(wait.getEvent()));
    now += seconds;
    if (auto record = dyn_cast<RecordOp>(command.getOperation()))
      events[record.getEvent()] = now;
    end = std::max(end, now);
  }
  double getEnd() const { return end; }

private:
  llvm::StringMap<double> streams, events;
  double end = 0;
};
} // namespace

/// Whether copies from memory to memory take the time of those who compute, on
/// whatever stream they are. A disk never does.
static bool copyByCores(BodyOp body) {
  auto target = findTarget(body->getParentOfType<ModuleOp>(),
                           stringifyEngine(body.getEngine()));
  return succeeded(target) && !(*target)->copiesBesideComputation();
}

static double getExposed(BodyOp body, const BufferTable &buffers,
                         SymbolTableCollection &symbols) {
  llvm::SmallDenseMap<Operation *, Space> others;
  body.walk([&](CopyOp copy) {
    if (auto other = getOtherSpace(copy, buffers))
      others.try_emplace(copy, *other);
  });
  if (others.empty())
    return 0;
  Player played, withoutCopies;
  bool isByCores = copyByCores(body);
  double ofCores = 0;
  body.walk([&](CommandOpInterface command) {
    double seconds = getCommandSeconds(command, buffers, symbols);
    auto copied = others.find(command);
    bool isCopy = copied != others.end();
    withoutCopies.add(command, isCopy ? 0 : seconds);
    if (isCopy && isByCores && copied->second != Space::nvme) {
      ofCores += seconds;
      seconds = 0;
    }
    played.add(command, seconds);
  });
  return ofCores + played.getEnd() - withoutCopies.getEnd();
}

double plan::getExposedCopySeconds(EntryOp entry, const BufferTable &buffers,
                                   SymbolTableCollection &symbols) {
  llvm::DenseMap<Operation *, double> ofBody;
  double seconds = 0;
  entry.walk([&](RunOp run) {
    BodyOp body = buffers.getBody(run);
    auto [known, isNew] = ofBody.try_emplace(body);
    if (isNew)
      known->second = getExposed(body, buffers, symbols);
    seconds += double(run.getTrips()) * known->second;
  });
  return seconds;
}
