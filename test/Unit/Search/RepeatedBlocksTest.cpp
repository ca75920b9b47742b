// Blocks that a program repeats are taken out of it.

#include "lib/Search/RepeatedBlocks.h"

#include "dialects/Accel/Accel.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;
using namespace accel::search;

/// y = exp(x * w) for each of so many weights, half a layer where something is
/// left over, and that plus the product of layer `outside`, if that is one.
static std::string write(int layers, int outside = -1, bool leftOver = false) {
  std::string states, arguments, ops, last = "%x", type = "tensor<4x4xf32>";
  for (int i = 0; i < layers; ++i) {
    std::string n = std::to_string(i);
    states += "nn.state @w" + n + " : " + type + " = dense<0.0>\n";
    arguments += ", %w" + n + ": " + type + " {nn.state = @w" + n + "}";
    ops += "%m" + n + " = nn.mul " + last + ", %w" + n + " : " + type + "\n";
    ops += "%e" + n + " = nn.exp %m" + n + " : " + type + "\n";
    last = "%e" + n;
  }
  if (leftOver) {
    ops += "%z = nn.mul " + last + ", %w0 : " + type + "\n";
    last = "%z";
  }
  std::string other = outside < 0 ? last : "%m" + std::to_string(outside);
  ops += "%y = nn.add " + last + ", " + other + " : " + type + "\n";
  return "module {\n" + states + "func.func @main(%x: " + type +
         " {nn.input = \"x\"}" + arguments + ") -> (" + type +
         " {nn.output = \"y\"}) attributes {nn.entry} {\n" + ops +
         "return %y : " + type + "\n}\n}\n";
}

namespace {
class RepeatedBlocks : public testing::Test {
protected:
  RepeatedBlocks() {
    context.loadDialect<func::FuncDialect, nn::NNDialect, dist::DistDialect,
                        AccelDialect>();
  }

  /// The blocks that go of each class; none at all where that fails.
  std::vector<int64_t> remove(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    if (!module)
      return {-1};
    auto classes = removeRepeatedBlocks(*module);
    EXPECT_TRUE(succeeded(classes));
    EXPECT_TRUE(succeeded(verify(*module)));
    std::vector<int64_t> removed;
    for (const BlockClass &each : *classes)
      removed.push_back(each.removed);
    return removed;
  }

  template <typename Op> std::vector<int64_t> getBlocks() {
    std::vector<int64_t> blocks;
    module->walk([&](Op op) {
      auto block = getBlock(op.getLoc());
      blocks.push_back(block ? block->index : -1);
    });
    return blocks;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(RepeatedBlocks, LeavesFour) {
  EXPECT_THAT(remove(write(9)), ElementsAre(5));
  EXPECT_THAT(getBlocks<nn::ExpOp>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(getBlocks<nn::StateOp>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(getBlocks<nn::AddOp>(), ElementsAre(-1));
  auto main = *module->getOps<func::FuncOp>().begin();
  EXPECT_EQ(main.getNumArguments(), 5u);
}

TEST_F(RepeatedBlocks, LeavesFewAlone) {
  EXPECT_THAT(remove(write(4)), IsEmpty());
  EXPECT_THAT(getBlocks<nn::ExpOp>(), ElementsAre(-1, -1, -1, -1));
}

// What would go is read behind the blocks: there is nothing in its place.
TEST_F(RepeatedBlocks, LeavesWhatIsReadOutside) {
  EXPECT_THAT(remove(write(9, /*outside=*/4)), IsEmpty());
  EXPECT_THAT(remove(write(9, /*outside=*/8)), ElementsAre(5));
}

// Half a block more, as alike as it is: it says behind which it lies.
TEST_F(RepeatedBlocks, TellsWhatIsLeftOver) {
  EXPECT_THAT(remove(write(9, /*outside=*/-1, /*leftOver=*/true)),
              ElementsAre(5));
  EXPECT_THAT(getBlocks<nn::MulOp>(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(getBlocks<nn::ExpOp>(), ElementsAre(0, 1, 2, 3));
}

// Sums of what is made elsewhere are no blocks: without them nothing would need
// what they add up.
TEST_F(RepeatedBlocks, LeavesWhatAloneReadsSomething) {
  std::string type = "tensor<4x4xf32>", ops, last = "%x";
  for (const char *name : {"exp", "tanh", "exp", "exp", "tanh", "tanh", "exp",
                           "tanh", "exp", "exp", "exp"})
    ops += "%c" + std::to_string(ops.size()) + " = nn." + name +
           " %x : " + type + "\n";
  std::string made = ops;
  for (size_t at = 0; at < made.size(); at = made.find('\n', at) + 1) {
    std::string sum = "%s" + std::to_string(at);
    ops += sum + " = nn.add " + last + ", %c" + std::to_string(at) + " : " +
           type + "\n";
    last = sum;
  }
  EXPECT_THAT(remove("module {\nfunc.func @main(%x: " + type +
                     " {nn.input = \"x\"}) -> (" + type +
                     " {nn.output = \"y\"}) attributes {nn.entry} {\n" + ops +
                     "return " + last + " : " + type + "\n}\n}\n"),
              IsEmpty());
}
