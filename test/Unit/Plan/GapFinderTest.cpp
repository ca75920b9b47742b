// Room for buffers is found where a search of all pairs finds it, in programs
// of random streams, records and waits; and what it takes does not grow with
// the square of what is alive together.

#include "lib/Plan/Memory/GapFinder.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace accel::plan;

namespace {

/// A program of fills; `line` adds what stands after fill number `i`.
class Program {
public:
  Program(unsigned fills, llvm::function_ref<std::string(unsigned)> stream,
          llvm::function_ref<std::string(unsigned)> line) {
    context.loadDialect<PlanDialect>();
    std::string text = "plan.program @p stage 0 ranks 1 {\n"
                       "plan.buffer @b : activation device 4 bytes\n"
                       "plan.body @f engine cpu {\n";
    for (unsigned i = 0; i < fills; ++i)
      text += "plan.fill @b[1xf32] with 0.0 on " + stream(i) + "\n" + line(i);
    text += "}\nplan.entry @forward { plan.segment cpu {\n"
            "plan.run @f\n} }\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    for (auto program : module->getOps<ProgramOp>())
      order.emplace(*CommandOrder::compute(program));
  }

  ArrayRef<Execution> executions() const { return order->getExecutions(); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::optional<CommandOrder> order;
};

/// What is accessed at some positions, in order.
struct Life {
  SmallVector<unsigned, 4> ends, begins;
  Stretch stretch;

  Life(const Program &program, ArrayRef<unsigned> positions)
      : ends(program.order->getNumStreams(), 0),
        begins(program.executions()[positions.front()].clock) {
    for (unsigned at : positions) {
      const Execution &execution = program.executions()[at];
      ends[execution.stream] = execution.ordinal;
      for (auto [mine, theirs] : llvm::zip_equal(begins, execution.clock))
        mine = std::min(mine, theirs);
    }
    stretch.first = positions.front();
    stretch.last = positions.back();
  }
  /// Once it lies where it will stay.
  const Stretch &get() {
    stretch.ends = ends;
    stretch.begins = begins;
    return stretch;
  }
};

struct Block {
  Life *life;
  int64_t offset, bytes;
};

constexpr int64_t kAlignment = 64;

int64_t findSlowly(ArrayRef<Block> placed, Life &life, int64_t bytes) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Block &block : placed)
    if (!life.get().endsBefore(block.life->get()) &&
        !block.life->get().endsBefore(life.get()))
      taken.push_back({block.offset, block.offset + block.bytes});
  llvm::sort(taken);
  int64_t start = 0, best = -1, bestGap = 0;
  for (auto [begin, end] : taken) {
    if (begin - start >= bytes && (best < 0 || begin - start < bestGap)) {
      best = start;
      bestGap = begin - start;
    }
    start = std::max<int64_t>(start, llvm::alignTo(end, kAlignment));
  }
  return best < 0 ? start : best;
}

TEST(GapFinder, FindsWhatASearchOfAllPairsFinds) {
  unsigned conflictsOfOtherOrders = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 draw(seed);
    unsigned fills = 60;
    std::vector<unsigned> recorded;
    const char *streams[] = {"compute", "comm", "copy"};
    Program program(
        fills, [&](unsigned) { return streams[draw() % 3]; },
        [&](unsigned i) -> std::string {
          std::string stream = streams[draw() % 3];
          if (draw() % 3 == 0) {
            recorded.push_back(i);
            return "plan.record \"e" + std::to_string(i) + "\" on " + stream +
                   "\n";
          }
          if (recorded.empty() || draw() % 3 == 0)
            return "";
          return "plan.wait \"e" +
                 std::to_string(recorded[draw() % recorded.size()]) + "\" on " +
                 stream + "\n";
        });
    unsigned count = program.executions().size();
    GapFinder finder(*program.order, kAlignment);
    std::deque<Life> lives;
    std::vector<Block> placed;
    for (unsigned buffer = 0; buffer < 80; ++buffer) {
      SmallVector<unsigned> positions{unsigned(draw() % count)};
      unsigned reach = draw() % 4 == 0 ? count : 12;
      for (unsigned more = draw() % 4; more > 0; --more)
        positions.push_back(
            std::min<unsigned>(count - 1, positions.front() + draw() % reach));
      llvm::sort(positions);
      Life &life = lives.emplace_back(program, positions);
      int64_t bytes = 1 + draw() % 500;
      int64_t expected = findSlowly(placed, life, bytes);
      ASSERT_EQ(finder.find(life.get(), bytes, 0), expected)
          << "buffer " << buffer << " of seed " << seed;
      for (const Block &block : placed) {
        const Stretch &other = block.life->get();
        conflictsOfOtherOrders +=
            (other.last < life.get().first && !other.endsBefore(life.get())) ||
            (life.get().last < other.first && !life.get().endsBefore(other));
      }
      finder.insert(life.get(), bytes, expected);
      placed.push_back({&life, expected, bytes});
    }
  }
  // Or the streams of these programs are no streams.
  EXPECT_GT(conflictsOfOtherOrders, 1000u);
}

/// Looks taken to place what a forward pass of so many layers leaves for the
/// backward, and what each layer needs for itself.
uint64_t countLooks(unsigned layers) {
  Program program(
      2 * layers, [](unsigned) { return "compute"; },
      [](unsigned) { return ""; });
  GapFinder finder(*program.order, kAlignment);
  std::deque<Life> lives;
  auto place = [&](unsigned first, unsigned last, int64_t bytes) {
    Life &life = lives.emplace_back(program, ArrayRef{first, last});
    finder.insert(life.get(), bytes, finder.find(life.get(), bytes, 0));
  };
  for (int64_t bytes : {512, 256, 128})
    for (unsigned layer = 0; layer < layers; ++layer)
      place(layer, 2 * layers - 1 - layer, bytes);
  for (unsigned at = 0; at + 1 < 2 * layers; ++at)
    place(at, at + 1, 64);
  return finder.countLooks();
}

TEST(GapFinder, LooksAtGapsAndNotAtBuffers) {
  uint64_t some = countLooks(500), twice = countLooks(1000);
  EXPECT_GT(some, 1000u);
  EXPECT_LT(twice, 3 * some);
  EXPECT_LT(twice, 250 * 1000u) << "of 5000 buffers, 12 million pairs";
}

} // namespace
