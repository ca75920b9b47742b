// Rows that the stack has no room for: how much scratch a kernel asks for, that
// it keeps to it, and that its results are those of computing all of it again.

#include "KernelHarness.h"

#include "mlir/IR/Diagnostics.h"

#include <gmock/gmock.h>

using namespace accel;
using namespace accel::test;
using ::testing::HasSubstr;

namespace {

std::string onRows(const char *op, int64_t columns) {
  std::string type = "tensor<2x" + std::to_string(columns) + "xf32>";
  return "func.func private @k(%x: " + type + ") -> " + type +
         " attributes {plan.kernel, plan.rows = 2 : i64} {\n  %y = " + op +
         " : " + type + "\n  return %y : " + type + "\n}";
}
constexpr const char *kSoftmax = "nn.softmax %x dim 1",
                     *kSum = "nn.cumsum %x dim 1";

std::string scatter(int64_t indices) {
  std::string count = std::to_string(indices);
  return "func.func private @k(%t: tensor<7x2xf32>, %i: tensor<" + count +
         "xi64>, %u: tensor<" + count +
         "x2xf32>) -> tensor<7x2xf32> attributes {plan.kernel, plan.rows = 7 "
         ": i64} {\n  %y = nn.scatter_add %t, %i, %u dim 0 : "
         "(tensor<7x2xf32>, tensor<" +
         count + "xi64>, tensor<" + count +
         "x2xf32>) -> tensor<7x2xf32>\n  return %y : tensor<7x2xf32>\n}";
}

int64_t measure(const std::string &text) {
  return cpu::measureScratch(Kernel(text).instance);
}

TEST(KernelScratch, IsWhatTheStackHasNoRoomFor) {
  EXPECT_EQ(measure(onRows(kSoftmax, 32768)), 0);
  EXPECT_EQ(measure(onRows(kSoftmax, 32769)), 131136); // 4 · 32769, aligned
  EXPECT_EQ(measure(onRows(kSum, 50000)), 200000);
  EXPECT_EQ(measure(onRows(kSoftmax, 1 << 18)), 1 << 20);
  // So long that keeping it is no faster.
  EXPECT_EQ(measure(onRows(kSoftmax, (1 << 18) + 1)), 0);
  // Found once for all rows and once for each, if the table is added to in
  // place; once for each if not.
  EXPECT_EQ(measure(scatter(8000)), 0);
  EXPECT_EQ(measure(scatter(9000)), 72000);
  EXPECT_EQ(measure(scatter(20000)), 320000);
}

/// Its elements, with `scratch` bytes beside the stack, of which `used` are.
std::vector<float> compute(const std::string &text, std::vector<float> x,
                           int64_t scratch, int64_t used) {
  Kernel kernel(text, {}, {}, "cpu", scratch);
  std::vector<float> y(x.size());
  constexpr float kUntouched = 77;
  std::vector<float> kept(static_cast<size_t>(scratch) / 4 + 16, kUntouched);
  std::vector<void *> arguments{x.data(), y.data()};
  if (scratch)
    arguments.push_back(kept.data());
  EXPECT_EQ(kernel(arguments), 0);
  for (size_t i = 0; i < kept.size(); ++i)
    if ((kept[i] != kUntouched) != (i < static_cast<size_t>(used) / 4)) {
      ADD_FAILURE() << i << " of " << used / 4 << " of scratch: " << kept[i];
      break;
    }
  return y;
}

TEST(KernelScratch, ChangesNoBits) {
  constexpr int64_t columns = 32800, bytes = 4 * columns;
  auto x = randoms<float>(2 * columns);
  for (const char *op : {kSoftmax, kSum}) {
    std::string text = onRows(op, columns);
    std::vector<float> without = compute(text, x, 0, 0);
    EXPECT_EQ(compute(text, x, bytes, bytes), without) << op;
    // Less than a row is of no use.
    if (op == kSoftmax)
      EXPECT_EQ(compute(text, x, bytes - 64, 0), without);
  }
}

TEST(KernelScratch, AddsToATableInPlaceAsWithoutIt) {
  size_t count = 9000;
  auto t = randoms<float>(14), u = randoms<float>(2 * count);
  std::vector<int64_t> indices(count);
  std::vector<double> expected(t.begin(), t.end());
  for (size_t i = 0; i < count; ++i) {
    indices[i] = static_cast<int64_t>(i * i % 6);
    for (size_t c = 0; c < 2; ++c)
      expected[i * i % 6 * 2 + c] += u[2 * i + c];
  }
  Kernel with(scatter(9000), {}, {0}, "cpu", 72000),
      without(scatter(9000), {}, {0});
  std::vector<char> kept(72000);
  std::vector<float> y = t, z = t;
  EXPECT_EQ(with({y.data(), indices.data(), u.data(), y.data(), kept.data()}),
            0);
  EXPECT_EQ(without({z.data(), indices.data(), u.data(), z.data()}), 0);
  EXPECT_EQ(y, z);
  expectNear(y, expected, 1e-4);
}

/// The error of compiling a plan whose kernel is followed by `what`.
std::string compileWith(const std::string &what) {
  Context context;
  auto module = context.parse(onRows("nn.exp %x", 4) + R"(
    plan.program @p stage 0 ranks 1 {
      plan.buffer @a : activation device at 0, 64 bytes
      plan.buffer @s : scratch device at 64, 128 bytes
      plan.body @body engine cpu {
        plan.kernel @k(@a[2x4xf32]) -> @a[2x4xf32] rows 2 )" +
                              what + "\n}}");
  EXPECT_TRUE(module);
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context.context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          message += diagnostic.str();
                                          return mlir::success();
                                        });
  bool failed = mlir::failed(cpu::compileKernels(*module, Context::target()));
  EXPECT_EQ(failed, !message.empty());
  return message;
}

TEST(KernelScratch, IsAsTheFormSays) {
  EXPECT_EQ(compileWith(""), "");
  EXPECT_EQ(compileWith("scratch @s[128xi8] form {thread_scratch = 64}"), "");
  EXPECT_THAT(compileWith("scratch @s[128xi8] form {thread_scratch = 192}"),
              HasSubstr("expected 192 bytes of scratch, one thread's, found "
                        "128"));
  EXPECT_THAT(compileWith("form {thread_scratch = 64}"),
              HasSubstr("expected 64 bytes of scratch, one thread's, found 0"));
  EXPECT_THAT(compileWith("scratch @s[128xi8]"),
              HasSubstr("expected scratch only where the form gives threads "
                        "any"));
  EXPECT_THAT(compileWith("scratch @s[128xi8] form {thread_scratch = 63}"),
              HasSubstr("expected a positive multiple of 64 as "
                        "'thread_scratch', found 63"));
  EXPECT_THAT(compileWith("scratch @s[128xi8] form {thread_scratch = -64}"),
              HasSubstr("expected a positive multiple of 64"));
  EXPECT_THAT(compileWith("scratch @s[128xi8] form {thread_scratch}"),
              HasSubstr("expected a positive multiple of 64"));
  EXPECT_THAT(compileWith("form {stages = 2}"),
              HasSubstr("expected nothing but 'thread_scratch' in the form of "
                        "a kernel of the target 'cpu', found \"stages\""));
}

} // namespace
