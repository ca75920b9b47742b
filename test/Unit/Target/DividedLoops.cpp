// Loops divided at the seams of concatenations and where reshapes split a
// dimension: the same numbers as without, and no decision left in them.

#include "KernelHarness.h"
#include "lib/Target/CPU/EmitKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace accel;
using namespace accel::test;
using namespace mlir;

namespace {

std::string withRows(const char *body, int64_t rows) {
  std::string text = body;
  text.replace(text.find("ROWS"), 4, std::to_string(rows));
  return text;
}

/// What of the emitted code decides or divides in a loop, and how many loops
/// there are.
struct Emitted {
  int selects = 0, clamps = 0, divisions = 0, loops = 0;
};

Emitted emit(const char *body, int64_t rows) {
  Kernel kernel(withRows(body, rows));
  auto function = *kernel.module->getOps<func::FuncOp>().begin();
  cpu::KernelInstance instance{function, {}, {}, "k"};
  SmallVector<Type> types(function.getArgumentTypes());
  llvm::append_range(types, function.getResultTypes());
  for (Type type : types)
    instance.strides.push_back(
        StridedView::contiguous(cast<RankedTensorType>(type).getShape())
            .strides);
  instance.inPlace.assign(function.getNumArguments(), -1);
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                      scf::SCFDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  cpu::emitKernel(*module, instance);
  Emitted emitted;
  module->walk([&](Operation *op) {
    emitted.loops += isa<scf::ForOp>(op);
    if (!op->getParentOfType<scf::ForOp>() ||
        !op->getParentOfType<scf::ForOp>()->getParentOfType<scf::ForOp>())
      return; // once per row
    emitted.selects += isa<arith::SelectOp>(op);
    emitted.clamps += isa<arith::MaxSIOp, arith::MinSIOp>(op);
    emitted.divisions += isa<arith::DivUIOp, arith::RemUIOp>(op);
  });
  return emitted;
}

/// Runs a kernel of inputs x of `sizes` elements with its rows, and with a row
/// for each element, which leaves no loop to divide.
void expectSame(const char *body, int64_t rows, std::vector<int64_t> sizes,
                int64_t elements) {
  std::vector<std::vector<float>> inputs;
  for (int64_t size : sizes)
    inputs.push_back(randoms<float>(size));
  std::vector<float> divided(elements, -7), plain(elements, 7);
  auto run = [&](int64_t cut, std::vector<float> &result) {
    Kernel kernel(withRows(body, cut));
    std::vector<void *> arguments;
    for (auto &input : inputs)
      arguments.push_back(input.data());
    arguments.push_back(result.data());
    EXPECT_EQ(kernel(arguments), 0);
  };
  run(rows, divided);
  run(elements, plain);
  // Products may be fused with sums where nothing stands between them.
  expectNear(divided, std::vector<double>(plain.begin(), plain.end()), 1e-6);
}

} // namespace

TEST(DividedLoops, TurnHeadsThatAreMergedIntoRows) {
  // The gradient of a rotary embedding.
  const char *body = R"(
    func.func private @k(%x: tensor<2x3x5x16xf32>, %sin: tensor<5x16xf32>) -> tensor<2x5x48xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %s = nn.broadcast %sin : (tensor<5x16xf32>) -> tensor<2x3x5x16xf32>
      %m = nn.mul %x, %s : tensor<2x3x5x16xf32>
      %l = nn.slice %m starts [0, 0, 0, 0] sizes [2, 3, 5, 8] steps [1, 1, 1, 1] : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
      %n = nn.neg %l : tensor<2x3x5x8xf32>
      %h = nn.slice %m starts [0, 0, 0, 8] sizes [2, 3, 5, 8] steps [1, 1, 1, 1] : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
      %c = nn.concat %h, %n dim 3 : (tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x16xf32>
      %a = nn.add %x, %c : tensor<2x3x5x16xf32>
      %t = nn.transpose %a [0, 2, 1, 3] : (tensor<2x3x5x16xf32>) -> tensor<2x5x3x16xf32>
      %r = nn.reshape %t : (tensor<2x5x3x16xf32>) -> tensor<2x5x48xf32>
      return %r : tensor<2x5x48xf32>
    })";
  expectSame(body, 10, {480, 80}, 480);
  Emitted emitted = emit(body, 10);
  EXPECT_EQ(emitted.selects + emitted.clamps + emitted.divisions, 0);
  EXPECT_EQ(emitted.loops, 4); // rows, heads, two halves
}

TEST(DividedLoops, TurnPairsWithinOneLoop) {
  // Neighbours change places, as GPT-J's rotary embedding has it.
  const char *body = R"(
    func.func private @k(%x: tensor<3x32xf32>) -> tensor<3x32xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %e = nn.slice %x starts [0, 0] sizes [3, 16] steps [1, 2] : (tensor<3x32xf32>) -> tensor<3x16xf32>
      %o = nn.slice %x starts [0, 1] sizes [3, 16] steps [1, 2] : (tensor<3x32xf32>) -> tensor<3x16xf32>
      %n = nn.neg %o : tensor<3x16xf32>
      %0 = nn.reshape %n : (tensor<3x16xf32>) -> tensor<3x16x1xf32>
      %1 = nn.reshape %e : (tensor<3x16xf32>) -> tensor<3x16x1xf32>
      %c = nn.concat %0, %1 dim 2 : (tensor<3x16x1xf32>, tensor<3x16x1xf32>) -> tensor<3x16x2xf32>
      %r = nn.reshape %c : (tensor<3x16x2xf32>) -> tensor<3x32xf32>
      return %r : tensor<3x32xf32>
    })";
  expectSame(body, 3, {96}, 96);
  Emitted emitted = emit(body, 3);
  EXPECT_EQ(emitted.selects + emitted.clamps + emitted.divisions, 0);
  EXPECT_EQ(emitted.loops, 2); // rows, pairs
}

TEST(DividedLoops, SplitWhatFollowsASeam) {
  // Gradients of query, key and value side by side, heads merged in each.
  const char *body = R"(
    func.func private @k(%q: tensor<4x3x8xf32>, %k: tensor<2x3x8xf32>) -> tensor<3x48xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %0 = nn.transpose %q [1, 0, 2] : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
      %1 = nn.reshape %0 : (tensor<3x4x8xf32>) -> tensor<3x32xf32>
      %2 = nn.transpose %k [1, 0, 2] : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
      %3 = nn.reshape %2 : (tensor<3x2x8xf32>) -> tensor<3x16xf32>
      %c = nn.concat %1, %3 dim 1 : (tensor<3x32xf32>, tensor<3x16xf32>) -> tensor<3x48xf32>
      return %c : tensor<3x48xf32>
    })";
  expectSame(body, 3, {96, 48}, 144);
  Emitted emitted = emit(body, 3);
  EXPECT_EQ(emitted.selects + emitted.clamps + emitted.divisions, 0);
  EXPECT_EQ(emitted.loops, 5); // rows, and heads and their elements of each
}

TEST(DividedLoops, DivideWhereASeamIsInTheWay) {
  // Heads of 8 from the fourth element on.
  const char *body = R"(
    func.func private @k(%x: tensor<2x3xf32>, %y: tensor<2x2x8xf32>) -> tensor<2x19xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %t = nn.transpose %y [1, 0, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8xf32>
      %r = nn.reshape %t : (tensor<2x2x8xf32>) -> tensor<2x16xf32>
      %c = nn.concat %x, %r dim 1 : (tensor<2x3xf32>, tensor<2x16xf32>) -> tensor<2x19xf32>
      return %c : tensor<2x19xf32>
    })";
  expectSame(body, 2, {6, 32}, 38);
  Emitted emitted = emit(body, 2);
  EXPECT_EQ(emitted.selects + emitted.clamps, 0);
  EXPECT_EQ(emitted.divisions, 2);
}

TEST(DividedLoops, StayWholeWhereHeadsBeginElsewhere) {
  // A seam of the one operand lies within a head of the other.
  const char *seam = R"(
    func.func private @k(%x: tensor<2x3xf32>, %y: tensor<2x13xf32>, %z: tensor<2x2x8xf32>) -> tensor<2x16xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %c = nn.concat %x, %y dim 1 : (tensor<2x3xf32>, tensor<2x13xf32>) -> tensor<2x16xf32>
      %t = nn.transpose %z [1, 0, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8xf32>
      %r = nn.reshape %t : (tensor<2x2x8xf32>) -> tensor<2x16xf32>
      %a = nn.add %c, %r : tensor<2x16xf32>
      return %a : tensor<2x16xf32>
    })";
  expectSame(seam, 2, {6, 26, 32}, 32);
  EXPECT_EQ(emit(seam, 2).selects, 0);
  // A slice begins within a head.
  const char *slice = R"(
    func.func private @k(%x: tensor<3x2x8xf32>) -> tensor<2x16xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %t = nn.transpose %x [1, 0, 2] : (tensor<3x2x8xf32>) -> tensor<2x3x8xf32>
      %r = nn.reshape %t : (tensor<2x3x8xf32>) -> tensor<2x24xf32>
      %s = nn.slice %r starts [0, 3] sizes [2, 16] steps [1, 1] : (tensor<2x24xf32>) -> tensor<2x16xf32>
      return %s : tensor<2x16xf32>
    })";
  expectSame(slice, 2, {48}, 32);
  EXPECT_EQ(emit(slice, 2).loops, 2);
}

TEST(DividedLoops, CutAtUnevenSeamsAndPads) {
  const char *body = R"(
    func.func private @k(%x: tensor<2x3x5xf32>, %y: tensor<2x3x7xf32>) -> tensor<2x45xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %c = nn.concat %x, %y dim 2 : (tensor<2x3x5xf32>, tensor<2x3x7xf32>) -> tensor<2x3x12xf32>
      %v = nn.constant dense<9.0> : tensor<f32>
      %p = nn.pad %c, %v low [0, 0, 1] high [0, 0, 2] : (tensor<2x3x12xf32>, tensor<f32>) -> tensor<2x3x15xf32>
      %r = nn.reshape %p : (tensor<2x3x15xf32>) -> tensor<2x45xf32>
      return %r : tensor<2x45xf32>
    })";
  expectSame(body, 2, {30, 42}, 90);
  Emitted emitted = emit(body, 2);
  EXPECT_EQ(emitted.selects + emitted.clamps + emitted.divisions, 0);
  // Rows, groups of 15; of these 5 and 7 elements, and 2 of 9 (one alone is
  // no loop).
  EXPECT_EQ(emitted.loops, 5);
}

TEST(DividedLoops, AreAsManyAsAKernelMayHave) {
  // Twenty seams: some are decided by the elements.
  std::string body = "func.func private @k(%x: tensor<2x20xf32>) -> "
                     "tensor<2x60xf32> attributes {plan.kernel, plan.rows = "
                     "ROWS : i64} {\n";
  std::string names, types;
  for (int i = 0; i < 20; ++i) {
    std::string name = "%s" + std::to_string(i);
    body += name + " = nn.slice %x starts [0, " + std::to_string(19 - i) +
            "] sizes [2, 1] steps [1, 1] : (tensor<2x20xf32>) -> "
            "tensor<2x1xf32>\n";
    body += name + "w = nn.broadcast " + name +
            " : (tensor<2x1xf32>) -> tensor<2x3xf32>\n";
    names += (i ? ", " : "") + name + "w";
    types += (i ? ", " : "") + std::string("tensor<2x3xf32>");
  }
  body += "%c = nn.concat " + names + " dim 1 : (" + types +
          ") -> tensor<2x60xf32>\nreturn %c : tensor<2x60xf32>\n}";
  expectSame(body.c_str(), 2, {40}, 120);
  Emitted emitted = emit(body.c_str(), 2);
  EXPECT_GT(emitted.selects, 0);
  EXPECT_LE(emitted.loops, 17); // rows, and 16
}

TEST(DividedLoops, StayWholeWhereAReshapeCostsNothing) {
  // What is split is contiguous, and what is split finer than a vector is
  // divided by each element.
  const char *body = R"(
    func.func private @k(%x: tensor<2x3x16xf32>) -> tensor<2x48xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %r = nn.reshape %x : (tensor<2x3x16xf32>) -> tensor<2x48xf32>
      return %r : tensor<2x48xf32>
    })";
  expectSame(body, 2, {96}, 96);
  EXPECT_EQ(emit(body, 2).loops, 2);
  const char *fine = R"(
    func.func private @k(%x: tensor<2x5x6xf32>) -> tensor<2x30xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %t = nn.transpose %x [0, 2, 1] : (tensor<2x5x6xf32>) -> tensor<2x6x5xf32>
      %r = nn.reshape %t : (tensor<2x6x5xf32>) -> tensor<2x30xf32>
      return %r : tensor<2x30xf32>
    })";
  expectSame(fine, 2, {60}, 60);
  EXPECT_EQ(emit(fine, 2).loops, 2);
  EXPECT_EQ(emit(fine, 2).divisions, 2);
}

TEST(DividedLoops, ReductionsOfFewThatLieApartAreNone) {
  // Gradients of three query heads that share a key head.
  const char *body = R"(
    func.func private @k(%x: tensor<2x3x5x16xf32>) -> tensor<2x5x16xf32>
        attributes {plan.kernel, plan.rows = ROWS : i64} {
      %s = nn.reduce sum %x dims [1] : (tensor<2x3x5x16xf32>) -> tensor<2x5x16xf32>
      return %s : tensor<2x5x16xf32>
    })";
  Kernel kernel(withRows(body, 2));
  auto x = randoms<float>(480);
  std::vector<float> y(160);
  std::vector<double> expected(160);
  for (int i = 0; i < 480; ++i)
    expected[i / 240 * 80 + i % 80] += x[i];
  EXPECT_EQ(kernel({x.data(), y.data()}), 0);
  expectNear(y, expected, 1e-6);
  EXPECT_EQ(emit(body, 2).loops, 3); // rows and the two dimensions that stay
}
