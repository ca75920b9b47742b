// Says what a rank will hold beside its arenas, from what its plan makes it
// prepare.

#include "PlanParts.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::cpu {
// Bytes, a fifth to a half above what was measured with oneDNN 2.6 and glibc
// 2.36: of the fixture's GPT-2, Llamas of 4 and 12 layers and GPT-2 124M, on 1
// and 4 ranks of 1, 2 and 4 threads, in f32 and bf16. acc-run compares.

/// The process, the pages of its libraries that are touched, and what loading
/// has given back to the allocator.
static constexpr int64_t kProcess = 9 << 20;
/// A thread's stack, and its part of the pool.
static constexpr int64_t kThread = 128 << 10;
/// A command as the file describes it and as it is prepared, its kernel's code,
/// and the buffers that it names.
static constexpr int64_t kCommand = 8 << 10;
/// A stream beyond those of computation and of collectives: a thread without a
/// part of the pool.
static constexpr int64_t kStream = 64 << 10;
/// A command where a run list names it again, for the third time or later.
static constexpr int64_t kListed = 256;
/// What oneDNN describes of one product's operands, for each thread.
static constexpr int64_t kProductOfThread = 8 << 10;
/// The code that oneDNN generates for a product; equal ones share it.
static constexpr int64_t kProductCode = 128 << 10;

/// Of a grouped product: one for each size of a piece, and two widths.
static constexpr int64_t kGroupedProducts = 12;
/// Of a convolution at most: its blocks have two sizes in each of the two to
/// four dimensions that it is cut in.
static constexpr int64_t kConvolutionProducts = 16;

namespace {
/// Products of one command: an attention has some for each block of queries,
/// which sees more keys than the one before.
struct Products {
  int64_t count = 1;

  explicit Products(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](plan::AttentionOp attention) {
          count = 2 * countBlocks(attention);
        })
        .Case([&](plan::AttentionGradOp attention) {
          count = 5 * countBlocks(attention);
        })
        .Case([&](plan::ConvOp) { count = kConvolutionProducts; })
        .Case([&](plan::GroupedGemmOp) { count = kGroupedProducts; })
        .Case([&](plan::GroupedGemmGradOp) { count = 2 * kGroupedProducts; });
  }

  template <typename Op> static int64_t countBlocks(Op op) {
    int64_t queries = op.getQuery().getShape()[2], block = 0;
    if (DictionaryAttr form = op.getFormAttr())
      if (auto asked = form.getAs<IntegerAttr>("block_queries"))
        block = asked.getInt();
    return block > 0 ? llvm::divideCeil(queries, block) : 1;
  }
};

/// The types, shapes and strides of what a command takes and gives.
Attribute getShapes(plan::CommandOpInterface command) {
  Builder builder(command.getContext());
  SmallVector<Attribute> found{command->getName().getIdentifier()};
  for (const auto &views : {command.getReads(), command.getWrites()})
    for (plan::ViewAttr view : views) {
      found.push_back(TypeAttr::get(view.getElement()));
      found.push_back(builder.getDenseI64ArrayAttr(view.getShape()));
      found.push_back(builder.getDenseI64ArrayAttr(view.getStrides()));
    }
  return builder.getArrayAttr(found);
}
} // namespace

int64_t estimateReserve(plan::ProgramOp program, int64_t threads) {
  int64_t bytes = kProcess + threads * kThread;
  llvm::DenseSet<Attribute> shapes; // what oneDNN sees of a product
  llvm::StringSet<> streams;
  llvm::StringMap<int64_t> lengths; // of bodies, in commands
  program.walk([&](plan::CommandOpInterface command) {
    bytes += kCommand;
    streams.insert(command.getStreamName());
    ++lengths[command->getParentOfType<plan::BodyOp>().getSymName()];
    if (!isa<plan::GemmOp, plan::GroupedGemmOp, plan::GroupedGemmGradOp,
             plan::ConvOp, plan::AttentionOp, plan::AttentionGradOp>(
            command.getOperation()))
      return;
    int64_t products = Products(command).count;
    bytes += products * threads * kProductOfThread;
    if (shapes.insert(getShapes(command)).second)
      bytes += products * kProductCode;
  });
  llvm::StringMap<int64_t> listed;
  program.walk([&](plan::RunOp run) {
    if (++listed[run.getTask()] > 2)
      bytes += lengths.lookup(run.getTask()) * kListed;
  });
  return bytes + std::max<int64_t>(int64_t(streams.size()) - 2, 0) * kStream;
}
} // namespace accel::cpu
