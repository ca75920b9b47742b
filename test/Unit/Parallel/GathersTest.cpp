// What a step will gather, by unit: who reads it, and its bytes, of a mesh of
// two axes, with a weight that is read rounded, and nothing changed.

#include "lib/Parallel/Gathers.h"
#include "dialects/NN/Entry.h"
#include "lib/Driver/InitAll.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace accel;

// Two blocks and a head; the backward begins in the head, and needs the weight
// of the second block, not of the first.
static constexpr StringLiteral kStep = R"(
!x = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!h = tensor<8x4xbf16, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!w = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}]>>
!v = tensor<4x4xf32, #dist.sharding<@mesh, [{dp_shard}, {tp}]>>
!v_whole = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {tp}]>>
!whole = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}]>>
!half = tensor<4x4xbf16, #dist.sharding<@mesh, [{}, {}]>>
!y = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {tp}]>>
!y_terms = tensor<8x4xf32, #dist.sharding<@mesh, [{dp_shard}, {}], partial = {tp}>>
!w_terms = tensor<4x4xf32, #dist.sharding<@mesh, [{}, {}], partial = {dp_shard}>>
module {
dist.mesh @mesh ["dp_shard" = 2, "tp" = 2]
nn.state @h.0.w : !w = dense<0.0>
nn.state @h.1.w : !w = dense<0.0>
nn.state @head.v : !v = dense<0.0>
func.func @step(%x: !h {nn.input = "x"}, %w0: !w {nn.state = @h.0.w}, %w1: !w {nn.state = @h.1.w}, %v: !v {nn.state = @head.v})
    -> (!y {nn.output = "y"}, !w {nn.state = @h.0.w}) attributes {nn.entry = #nn<entry step>} {
  %g0 = dist.reshard %w0 : !w -> !whole
  %c0 = nn.cast %g0 : (!whole) -> !half
  %y0 = nn.matmul %x, %c0 : (!h, !half) -> !h
  %g1 = dist.reshard %w1 : !w -> !whole
  %c1 = nn.cast %g1 : (!whole) -> !half
  %y1 = nn.matmul %y0, %c1 : (!h, !half) -> !h
  %z = nn.cast %y1 : (!h) -> !x
  %gv = dist.reshard %v : !v -> !v_whole
  %y = nn.matmul %z, %gv : (!x, !v_whole) -> !y
  %t = nn.matmul %y, %gv {transpose_rhs} : (!y, !v_whole) -> !y_terms
  %d = dist.reshard %t : !y_terms -> !x
  %dh = nn.cast %d : (!x) -> !h
  %e = nn.matmul %dh, %c1 {transpose_rhs} : (!h, !half) -> !h
  %ef = nn.cast %e : (!h) -> !x
  %xf = nn.cast %x : (!h) -> !x
  %dw = nn.matmul %xf, %ef {transpose_lhs} : (!x, !x) -> !w_terms
  %s = dist.reshard %dw : !w_terms -> !w
  %g = nn.gradient %s of @h.0.w : !w
  %new = nn.sub %w0, %g : !w
  return %y, %new : !y, !w
}
})";

namespace {
TEST(GathersTest, AreFoundBeforeTheyArePlaced) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kStep, &context);
  ASSERT_TRUE(module);
  OwningOpRef<ModuleOp> before = module->clone();
  auto step = *module->getOps<func::FuncOp>().begin();
  SmallVector<std::string> found;
  for (const parallel::Gathering &one : parallel::findGatherings(step))
    found.push_back(one.unit + (one.inForward ? " forward" : "") +
                    (one.inBackward ? " backward " : " ") +
                    std::to_string(one.bytes));
  // Of 16 bf16 a rank has 8 of its own; of what tp splits 8 f32, 4 its own.
  EXPECT_EQ(found, (SmallVector<std::string>{"h.0 forward 16", "h.1 forward 16",
                                             "head forward backward 16",
                                             "h.1 backward 16"}));
  EXPECT_TRUE(OperationEquivalence::isEquivalentTo(
      *module, *before, OperationEquivalence::IgnoreLocations));
}
} // namespace
