// Counts what is kept from one task to another of the same micro-batch.

#include "KeptInFlight.h"
#include "lib/Plan/BufferTable.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using namespace accel::report;

static constexpr StringLiteral kUpdate = "update";

/// Bodies that run on every micro-batch.
static llvm::DenseSet<StringAttr> findRepeated(ProgramOp program) {
  llvm::DenseMap<StringAttr, int64_t> runs;
  int64_t most = 0;
  for (auto entry : program.getOps<EntryOp>())
    if (entry.getKind() != kLoadEntry)
      entry.walk([&](RunOp run) {
        int64_t &count = runs[run.getTaskAttr().getAttr()];
        most = std::max(most, count += run.getTrips());
      });
  llvm::DenseSet<StringAttr> repeated;
  for (auto [body, count] : runs)
    if (count == most && body.getValue() != kUpdate)
      repeated.insert(body);
  return repeated;
}

/// Whether what a message brings is kept elsewhere, where it is counted, and
/// read here by the forward alone.
static bool isKeptElsewhere(BufferOp buffer, const BufferTable &buffers,
                            const llvm::SmallPtrSet<Operation *, 2> &bodies) {
  auto isMessage = [](Operation *body) {
    WalkResult found = body->walk([](Operation *op) {
      return isa<SendOp, RecvOp>(op) ? WalkResult::interrupt()
                                     : WalkResult::advance();
    });
    return found.wasInterrupted();
  };
  auto isCopiedAway = [&](Operation *body) {
    return llvm::any_of(cast<BodyOp>(body).getOps<CopyOp>(), [&](CopyOp copy) {
      BufferOp target = buffers.lookup(copy.getTarget());
      return buffers.lookup(copy.getSource()) == buffer &&
             llvm::is_contained({Space::host, Space::nvme},
                                target.getSpace()) &&
             target.getRole() == Role::activation;
    });
  };
  return llvm::count_if(bodies, isMessage) + 1 == int64_t(bodies.size()) &&
         llvm::any_of(bodies, isCopiedAway);
}

KeptInFlight report::countKept(ProgramOp program) {
  llvm::DenseSet<StringAttr> repeated = findRepeated(program);
  BufferTable buffers(program);
  llvm::MapVector<BufferOp, llvm::SmallPtrSet<Operation *, 2>> users;
  for (auto body : program.getOps<BodyOp>()) {
    if (!repeated.contains(body.getSymNameAttr()))
      continue;
    body.walk([&](CommandOpInterface command) {
      for (const auto &views : {command.getReads(), command.getWrites()})
        for (ViewAttr view : views)
          users[buffers.lookup(view)].insert(body);
    });
  }
  KeptInFlight kept;
  for (auto &[buffer, bodies] : users) {
    if (buffer.getRole() != Role::activation || bodies.size() < 2 ||
        isKeptElsewhere(buffer, buffers, bodies))
      continue;
    kept.bytesEach += buffer.getBytes();
    kept.microBatches = std::max<int64_t>(kept.microBatches, buffer.getSlots());
  }
  return kept;
}
