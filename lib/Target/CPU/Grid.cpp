// How the rows of a kernel are handed out to threads.

#include "PlanParts.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;

/// Rows of a kernel are handed out in chunks that move at least this many
/// bytes, so that taking a chunk costs nothing, and at most so many, which
/// still share a tensor between threads and stay in the second level of cache:
/// the longer a chunk, the more memory is read ahead of it. An AdamW update of
/// 2304 elements at a time moves 44 GB/s, of 36864 54 GB/s (two threads of an
/// Intel Xeon).
static constexpr int64_t kFewestBytes = 64 << 10, kMostBytes = 1 << 20;
/// Chunks of a tensor, between these.
static constexpr int64_t kRowChunks = 64;
/// Sums of columns are handed out in ranges of columns: wide enough that lines
/// of them lie side by side in memory, in enough chunks for a few threads.
static constexpr int64_t kFewestColumns = 64, kMostColumns = 512;
static constexpr int64_t kColumnChunks = 8;

static bool sumsColumns(func::FuncOp kernel, int64_t rows) {
  return llvm::any_of(kernel.getOps<nn::ReduceOp>(), [&](nn::ReduceOp reduce) {
    auto source = cast<KernelSourceOpInterface>(reduce.getOperation());
    return !source.isRowLocal(0, rows) && source.reducesColumns(rows);
  });
}

int64_t cpu::chooseGrid(func::FuncOp kernel, int64_t rows, int64_t bytes) {
  if (sumsColumns(kernel, rows))
    return std::clamp<int64_t>(
        llvm::alignTo(llvm::divideCeil(rows, kColumnChunks), kFewestColumns), 1,
        std::min(rows, kMostColumns));
  int64_t chunk = std::clamp(bytes / kRowChunks, kFewestBytes, kMostBytes);
  return std::clamp<int64_t>(chunk / std::max<int64_t>(bytes / rows, 1), 1,
                             rows);
}
