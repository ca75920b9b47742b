// The attribute `plan.storage`: a dictionary of path, block_size and
// queue_depth.

#include "dialects/Plan/Storage.h"

using namespace mlir;
using namespace accel::plan;

/// So that what is staged stays far from what a number holds.
static constexpr int64_t kMostBlock = int64_t(1) << 30, kMostDepth = 4096;

void Storage::attach(ArenaOp arena) const {
  Builder builder(arena.getContext());
  arena->setAttr(
      kStorageAttr,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("path", builder.getStringAttr(path)),
           builder.getNamedAttr("block_size",
                                builder.getI64IntegerAttr(blockSize)),
           builder.getNamedAttr("queue_depth",
                                builder.getI64IntegerAttr(queueDepth))}));
}

FailureOr<Storage> Storage::read(ArenaOp arena) {
  auto said = arena->getAttrOfType<DictionaryAttr>(kStorageAttr);
  auto path = said ? said.getAs<StringAttr>("path") : StringAttr();
  auto block = said ? said.getAs<IntegerAttr>("block_size") : IntegerAttr();
  auto depth = said ? said.getAs<IntegerAttr>("queue_depth") : IntegerAttr();
  if (!path || !block || !depth || path.empty())
    return arena.emitOpError()
           << "expected '" << kStorageAttr
           << "' with path, block_size and queue_depth: the folder of the "
              "file that space 'nvme' is (--set offload.nvme_path=DIR), and "
              "how it is moved";
  Storage storage{path.getValue(), block.getInt(), depth.getInt()};
  if (storage.blockSize < kStorageSector || storage.blockSize > kMostBlock ||
      storage.blockSize % kStorageSector)
    return arena.emitOpError()
           << "expected blocks (aio.block_size) of a multiple of "
           << kStorageSector << " bytes, at most " << kMostBlock << ", found "
           << storage.blockSize;
  if (storage.queueDepth < 1 || storage.queueDepth > kMostDepth)
    return arena.emitOpError()
           << "expected from 1 to " << kMostDepth
           << " blocks under way at once (aio.queue_depth), found "
           << storage.queueDepth;
  return storage;
}
