// One walk over arenas and commands.

#include "StoredBytes.h"

#include "dialects/Plan/Storage.h"

using namespace mlir;
using namespace accel::plan;

LogicalResult accel::plan::checkStoredBytes(ProgramOp program,
                                            const BufferTable &buffers) {
  for (auto arena : program.getOps<ArenaOp>())
    if (arena.getSpace() == Space::nvme && failed(Storage::read(arena)))
      return failure();
  auto isStored = [&](ViewAttr view) {
    return buffers.lookup(view).getSpace() == Space::nvme;
  };
  WalkResult walked = program.walk([&](CommandOpInterface command) {
    ViewAttr stored;
    command.forEachView([&](ViewAttr view, Access access) {
      if (access != Access::None && isStored(view))
        stored = view;
    });
    if (!stored || isa<ReadOp>(command.getOperation()))
      return WalkResult::advance();
    auto copy = dyn_cast<CopyOp>(command.getOperation());
    if (copy && isStored(copy.getSource()) != isStored(copy.getTarget()) &&
        copy.getSource().isContiguous() && copy.getTarget().isContiguous())
      return WalkResult::advance();
    command.emitOpError()
        << "expected " << stored.getBuffer()
        << ", which lies in a file (space 'nvme'), to be read as a state's "
           "first value, or copied from there or to it in bytes that follow "
           "each other";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}
