// Walks the run list of a plan once and notes when buffers are used.

#include "Liveness.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using namespace accel::report;

int64_t Liveness::getBytes(BufferOp buffer) {
  return (buffer.getSlots() - 1) * buffer.getSlotStride() + buffer.getBytes();
}

namespace {
/// The life of a buffer that is being followed.
struct Current {
  int64_t microBatch = -1;
  bool always = false;
};
} // namespace

FailureOr<Liveness> Liveness::compute(ProgramOp program) {
  Liveness result;
  llvm::DenseMap<Operation *, Current> current;
  auto ownerOf = [&](ViewAttr view) {
    auto buffer = program.lookupSymbol<BufferOp>(view.getBuffer().getAttr());
    return buffer.getAliasOf()
               ? program.lookupSymbol<BufferOp>(*buffer.getAliasOf())
               : buffer;
  };
  for (auto buffer : program.getOps<BufferOp>())
    if (!buffer.getAliasOf()) {
      bool always = buffer.getRole() == Role::state ||
                    buffer.getRole() == Role::constant ||
                    buffer.getRole() == Role::packed;
      current[buffer].always = always;
      result.lives[buffer];
    }
  auto note = [&](CommandOpInterface command, RunOp run) {
    llvm::SmallSetVector<Operation *, 8> read, written;
    for (ViewAttr view : command.getReads())
      read.insert(ownerOf(view));
    for (ViewAttr view : command.getWrites())
      written.insert(ownerOf(view));
    if (auto gather = dyn_cast<CollectiveOp>(command.getOperation()))
      if (auto unit = gather->getAttrOfType<StringAttr>(kUnitAttr))
        for (Operation *buffer : written)
          result.units[buffer] = unit;
    int64_t batch = run.getMicroBatch();
    auto use = [&](Operation *buffer, bool writesOnly) {
      // Nothing is left in scratch for anybody.
      writesOnly |= cast<BufferOp>(buffer).getRole() == Role::scratch;
      Current &now = current[buffer];
      auto &list = result.lives[buffer];
      if (list.empty() && !writesOnly)
        now.always = true; // of the call before
      if (list.empty() || (now.microBatch != batch && writesOnly))
        list.push_back({result.moments, result.moments});
      list.back().last = result.moments;
      now.microBatch = batch;
    };
    for (Operation *buffer : read)
      use(buffer, /*writesOnly=*/false);
    for (Operation *buffer : written)
      if (!read.contains(buffer))
        use(buffer, /*writesOnly=*/true);
    ++result.moments;
  };
  for (auto entry : program.getOps<EntryOp>()) {
    if (entry.getSymName() == "load")
      continue;
    entry.walk([&](RunOp run) {
      program.lookupSymbol<BodyOp>(run.getTask())
          .walk([&](CommandOpInterface command) { note(command, run); });
    });
  }
  for (auto &[buffer, list] : result.lives)
    if (current[buffer].always)
      list.assign(1, {0, std::max<int64_t>(result.moments - 1, 0)});
  return result;
}

SmallVector<BufferOp> Liveness::getPeak(Space space) const {
  // Differences of what is alive, moment by moment.
  std::vector<int64_t> changes(moments + 1, 0);
  for (auto &[op, list] : lives) {
    auto buffer = cast<BufferOp>(op);
    if (buffer.getSpace() != space)
      continue;
    for (const Life &life : list) {
      changes[life.first] += getBytes(buffer);
      changes[life.last + 1] -= getBytes(buffer);
    }
  }
  int64_t alive = 0, most = -1, when = 0;
  for (int64_t moment = 0; moment < moments; ++moment) {
    alive += changes[moment];
    if (alive > most) {
      most = alive;
      when = moment;
    }
  }
  SmallVector<BufferOp> buffers;
  for (auto &[op, list] : lives)
    if (cast<BufferOp>(op).getSpace() == space &&
        llvm::any_of(list, [&](const Life &life) {
          return life.first <= when && when <= life.last;
        }))
      buffers.push_back(cast<BufferOp>(op));
  return buffers;
}

int64_t Liveness::getUnitsInFlight() const {
  // By unit: a moment counts once however many of its weights are alive.
  llvm::MapVector<StringAttr, SmallVector<Life>> byUnit;
  for (auto &[op, list] : lives)
    if (StringAttr unit = units.lookup(op))
      byUnit[unit].append(list.begin(), list.end());
  int64_t most = 0;
  for (int64_t moment = 0; moment < moments; ++moment) {
    int64_t count = llvm::count_if(byUnit, [&](auto &entry) {
      return llvm::any_of(entry.second, [&](const Life &life) {
        return life.first <= moment && moment <= life.last;
      });
    });
    most = std::max(most, count);
  }
  return most;
}

static void collectNames(Location location,
                         llvm::SmallSetVector<StringRef, 4> &names) {
  location->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner))
      names.insert(name.getName().getValue());
    return WalkResult::advance();
  });
}

std::string report::describeNode(Operation *op) {
  llvm::SmallSetVector<StringRef, 4> names;
  collectNames(op->getLoc(), names);
  return llvm::join(names, ", ");
}
