// Generated kernels against plain loops in double.

#include "KernelHarness.h"

using namespace accel;
using namespace accel::test;

TEST(Kernels, AddsABroadcastBiasAndAppliesGelu) {
  for (const char *kind : {"tanh", "erf"}) {
    Kernel kernel(std::string(R"(
      func.func private @k(%x: tensor<5x37xf32>, %b: tensor<37xf32>) -> tensor<5x37xf32>
          attributes {plan.kernel, plan.rows = 5 : i64} {
        %r = nn.broadcast %b : (tensor<37xf32>) -> tensor<5x37xf32>
        %s = nn.add %x, %r : tensor<5x37xf32>
        %y = nn.gelu )") +
                  kind + R"( %s : tensor<5x37xf32>
        return %y : tensor<5x37xf32>
      })");
    auto x = randoms<float>(5 * 37, 6), b = randoms<float>(37);
    std::vector<float> y(5 * 37);
    EXPECT_EQ(kernel({x.data(), b.data(), y.data()}), 0);
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); ++i) {
      double s = static_cast<double>(x[i]) + b[i % 37];
      double inner =
          kind[0] == 't'
              ? std::tanh(std::sqrt(2 / M_PI) * (s + 0.044715 * s * s * s))
              : std::erf(s / std::sqrt(2.0));
      expected.push_back(s / 2 * (1 + inner));
    }
    expectNear(y, expected, 5e-7);
  }
}

TEST(Kernels, NormalisesRowsAndKeepsTheirSum) {
  Kernel kernel(R"(
    func.func private @k(%x: tensor<2x3x70xf32>, %r: tensor<2x3x70xf32>, %s: tensor<70xf32>, %b: tensor<70xf32>)
        -> (tensor<2x3x70xf32>, tensor<2x3x70xf32>) attributes {plan.kernel, plan.rows = 6 : i64} {
      %h = nn.add %x, %r : tensor<2x3x70xf32>
      %y = nn.layer_norm %h, %s, %b dim 2 epsilon 1.0e-05 : (tensor<2x3x70xf32>, tensor<70xf32>, tensor<70xf32>) -> tensor<2x3x70xf32>
      return %h, %y : tensor<2x3x70xf32>, tensor<2x3x70xf32>
    })");
  auto x = randoms<float>(420), r = randoms<float>(420), s = randoms<float>(70),
       b = randoms<float>(70);
  std::vector<float> h(420), y(420);
  EXPECT_EQ(
      kernel({x.data(), r.data(), s.data(), b.data(), h.data(), y.data()}), 0);
  std::vector<double> sums, expected;
  for (size_t row = 0; row < 6; ++row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < 70; ++i) {
      sums.push_back(static_cast<double>(x[row * 70 + i]) + r[row * 70 + i]);
      mean += sums.back() / 70;
    }
    for (size_t i = 0; i < 70; ++i)
      variance += std::pow(sums[row * 70 + i] - mean, 2) / 70;
    for (size_t i = 0; i < 70; ++i)
      expected.push_back((sums[row * 70 + i] - mean) /
                             std::sqrt(variance + 1e-5) * s[i] +
                         b[i]);
  }
  expectNear(h, sums, 1e-6);
  expectNear(y, expected, 1e-5);
}

TEST(Kernels, SoftmaxKeepsMaskedAndInvalidRows) {
  for (bool log : {false, true}) {
    Kernel kernel(std::string(R"(
      func.func private @k(%x: tensor<4x33xf32>) -> tensor<4x33xf32>
          attributes {plan.kernel, plan.rows = 4 : i64} {
        %y = nn.softmax %x dim 1 )") +
                  (log ? "{log} " : "") +
                  R"(: tensor<4x33xf32>
        return %y : tensor<4x33xf32>
      })");
    auto x = randoms<float>(4 * 33, 10);
    float infinity = std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < 33; ++i)
      x[33 + i] = -infinity; // nothing left
    for (size_t i = 5; i < 33; ++i)
      x[66 + i] = -infinity; // partly masked
    x[99 + 7] = std::nanf("");
    std::vector<float> y(4 * 33);
    EXPECT_EQ(kernel({x.data(), y.data()}), 0);
    std::vector<double> expected;
    for (size_t row = 0; row < 4; ++row) {
      double sum = 0, maximum = -infinity;
      for (size_t i = 0; i < 33; ++i)
        maximum = std::max<double>(maximum, x[row * 33 + i]);
      for (size_t i = 0; i < 33; ++i)
        sum += std::exp(x[row * 33 + i] - maximum);
      for (size_t i = 0; i < 33; ++i)
        expected.push_back(log ? x[row * 33 + i] - maximum - std::log(sum)
                               : std::exp(x[row * 33 + i] - maximum) / sum);
    }
    expectNear(y, expected, 1e-6);
  }
}

TEST(Kernels, GathersAndRefusesIndicesOutsideTheTable) {
  Kernel kernel(R"(
    func.func private @k(%t: tensor<7x20xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x20xf32>
        attributes {plan.kernel, plan.rows = 6 : i64} {
      %y = nn.gather %t, %i dim 0 : (tensor<7x20xf32>, tensor<2x3xi64>) -> tensor<2x3x20xf32>
      return %y : tensor<2x3x20xf32>
    })");
  auto table = randoms<float>(140);
  std::vector<int64_t> indices{0, 6, -1, -7, 3, 2};
  std::vector<float> y(120);
  EXPECT_EQ(kernel({table.data(), indices.data(), y.data()}), 0);
  for (size_t i = 0; i < 120; ++i)
    EXPECT_EQ(y[i], table[(indices[i / 20] + 7) % 7 * 20 + i % 20]);
  indices[4] = 7;
  EXPECT_EQ(kernel({table.data(), indices.data(), y.data()}), 5);
  indices[1] = -8;
  EXPECT_EQ(kernel({table.data(), indices.data(), y.data()}), 2);
  EXPECT_EQ(kernel.refusal.value, -8);
  EXPECT_EQ(kernel.refusal.least, -7);
  EXPECT_EQ(kernel.refusal.end, 7);
  EXPECT_EQ(kernel.refusal.isLabel, 0);
}

TEST(Kernels, RefusesTheFirstNegativeIndexOfAnEmbedding) {
  Kernel kernel(R"(
    func.func private @k(%t: tensor<7x20xf32>, %i: tensor<6xi64>) -> tensor<6x20xf32>
        attributes {plan.kernel, plan.rows = 1 : i64} {
      %y = nn.gather %t, %i dim 0 {non_negative} : (tensor<7x20xf32>, tensor<6xi64>) -> tensor<6x20xf32>
      return %y : tensor<6x20xf32>
    })");
  auto table = randoms<float>(140);
  std::vector<int64_t> indices{0, 6, 5, 1, 3, 2};
  std::vector<float> y(120);
  EXPECT_EQ(kernel({table.data(), indices.data(), y.data()}), 0);
  indices[2] = -1;
  indices[4] = -2;
  EXPECT_EQ(kernel({table.data(), indices.data(), y.data()}), 3);
  EXPECT_EQ(kernel.refusal.value, -1);
  EXPECT_EQ(kernel.refusal.least, 0);
}

TEST(Kernels, FollowsStridesTransposesSlicesAndReshapes) {
  // x is a view of columns 10… of rows of 60, the result one of rows of 31.
  Kernel kernel(R"(
    func.func private @k(%x: tensor<4x6x5xf32>) -> tensor<8x15xf32>
        attributes {plan.kernel, plan.rows = 8 : i64} {
      %t = nn.transpose %x [1, 0, 2] : (tensor<4x6x5xf32>) -> tensor<6x4x5xf32>
      %s = nn.slice %t starts [5, 0, 0] sizes [6, 4, 5] steps [-1, 1, 1] : (tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
      %r = nn.reshape %s : (tensor<6x4x5xf32>) -> tensor<8x15xf32>
      return %r : tensor<8x15xf32>
    })",
                {{60, 10, 1}, {31, 2}});
  auto x = randoms<float>(4 * 60);
  std::vector<float> y(8 * 31, -1);
  EXPECT_EQ(kernel({x.data(), y.data()}), 0);
  for (size_t i = 0; i < 120; ++i) {
    size_t a = i / 20, b = i / 5 % 4, c = i % 5;
    EXPECT_EQ(y[i / 15 * 31 + i % 15 * 2], x[b * 60 + (5 - a) * 10 + c]) << i;
  }
  EXPECT_EQ(y[1], -1);
}

TEST(Kernels, JoinsAndPads) {
  Kernel kernel(R"(
    func.func private @k(%x: tensor<2x3xi64>, %y: tensor<2x2xi64>) -> tensor<4x7xi64>
        attributes {plan.kernel, plan.rows = 4 : i64} {
      %c = nn.concat %x, %y dim 1 : (tensor<2x3xi64>, tensor<2x2xi64>) -> tensor<2x5xi64>
      %v = nn.constant dense<9> : tensor<i64>
      %p = nn.pad %c, %v low [1, 2] high [1, 0] : (tensor<2x5xi64>, tensor<i64>) -> tensor<4x7xi64>
      return %p : tensor<4x7xi64>
    })");
  std::vector<int64_t> x{1, 2, 3, 4, 5, 6}, y{10, 20, 30, 40}, z(28);
  EXPECT_EQ(kernel({x.data(), y.data(), z.data()}), 0);
  EXPECT_EQ(
      z, (std::vector<int64_t>{9, 9, 9, 9, 9, 9,  9,  9, 9, 1, 2, 3, 10, 20,
                               9, 9, 4, 5, 6, 30, 40, 9, 9, 9, 9, 9, 9,  9}));
}

TEST(Kernels, ReducesLeadingAndTrailingDimensions) {
  for (const char *kind : {"sum", "max", "min", "prod"}) {
    Kernel rows(std::string(R"(
      func.func private @k(%x: tensor<3x4x19xf32>) -> tensor<3xf32>
          attributes {plan.kernel, plan.rows = 3 : i64} {
        %y = nn.reduce )") +
                kind +
                R"( %x dims [1, 2] : (tensor<3x4x19xf32>) -> tensor<3xf32>
        return %y : tensor<3xf32>
      })");
    Kernel columns(std::string(R"(
      func.func private @k(%x: tensor<3x4x19xf32>) -> tensor<4x19xf32>
          attributes {plan.kernel, plan.rows = 1 : i64} {
        %y = nn.reduce )") +
                   kind +
                   R"( %x dims [0] : (tensor<3x4x19xf32>) -> tensor<4x19xf32>
        return %y : tensor<4x19xf32>
      })");
    auto x = randoms<float>(228, 1.2);
    std::vector<float> y(3), z(76);
    EXPECT_EQ(rows({x.data(), y.data()}), 0);
    EXPECT_EQ(columns({x.data(), z.data()}), 0);
    auto combine = [&](double a, double b) {
      return kind[0] == 's'   ? a + b
             : kind[0] == 'p' ? a * b
             : kind[1] == 'a' ? std::max(a, b)
                              : std::min(a, b);
    };
    double first = kind[0] == 's'   ? 0
                   : kind[0] == 'p' ? 1
                   : kind[1] == 'a' ? -9
                                    : 9;
    std::vector<double> byRow(3, first), byColumn(76, first);
    for (size_t i = 0; i < 228; ++i) {
      byRow[i / 76] = combine(byRow[i / 76], x[i]);
      byColumn[i % 76] = combine(byColumn[i % 76], x[i]);
    }
    expectNear(y, byRow, 1e-5);
    expectNear(z, byColumn, 1e-6);
  }
}

TEST(Kernels, AreNamedByTheStridesOfTheirViews) {
  Context context;
  auto module = context.parse(R"(
    func.func private @k(%x: tensor<2x8xf32>) -> tensor<16xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
      %r = nn.reshape %x : (tensor<2x8xf32>) -> tensor<16xf32>
      %y = nn.exp %r : tensor<16xf32>
      return %y : tensor<16xf32>
    }
    plan.program @p stage 0 ranks 1 {
      plan.buffer @a : activation device at 0, 256 bytes
      plan.buffer @b : activation device at 256, 256 bytes
      plan.buffer @c : activation device at 0, 256 bytes alias @a
      plan.body @body engine cpu {
        plan.kernel @k(@a[2x8xf32]) -> @b[16xf32] rows 1
        plan.kernel @k(@a[2x8xf32 at 64]) -> @b[16xf32 at 128] rows 1
        plan.kernel @k(@a[2x8xf32 strides [16, 1]]) -> @b[16xf32] rows 1
        plan.kernel @k(@a[2x8xf32]) -> @c[16xf32] rows 1
      }
    })");
  ASSERT_TRUE(module);
  std::vector<plan::KernelOp> kernels;
  module->walk([&](plan::KernelOp op) { kernels.push_back(op); });
  ASSERT_EQ(kernels.size(), 4u);
  mlir::SymbolTableCollection symbols;
  auto getSymbol = [&](plan::KernelOp kernel) {
    return cpu::getKernelSymbol(kernel, symbols);
  };
  EXPECT_EQ(getSymbol(kernels[0]), "k");
  EXPECT_EQ(getSymbol(kernels[1]), "k"); // addresses do not matter
  EXPECT_NE(getSymbol(kernels[2]), "k");
  EXPECT_EQ(cpu::getInstance(kernels[2], symbols).inPlace[0], -1);
  // Another name and another shape of the same bytes: in place.
  EXPECT_EQ(cpu::getInstance(kernels[3], symbols).inPlace[0], 0);
  EXPECT_NE(getSymbol(kernels[3]), "k");
  EXPECT_NE(getSymbol(kernels[3]), getSymbol(kernels[2]));

  auto bytes = cpu::compileKernels(*module, Context::target());
  ASSERT_TRUE(succeeded(bytes));
  Library library(*bytes);
  auto x = randoms<float>(32);
  std::vector<float> y(16);
  void *strided[] = {x.data(), y.data(), nullptr};
  library.get(getSymbol(kernels[2]))(strided, 0, 1);
  std::vector<double> expected;
  for (size_t i = 0; i < 16; ++i)
    expected.push_back(std::exp(static_cast<double>(x[i / 8 * 16 + i % 8])));
  expectNear(y, expected, 1e-6);
  expected.clear();
  for (size_t i = 0; i < 16; ++i)
    expected.push_back(std::exp(static_cast<double>(x[i])));
  x.resize(16);
  void *same[] = {x.data(), x.data(), nullptr};
  library.get(getSymbol(kernels[3]))(same, 0, 1);
  expectNear(x, expected, 1e-6);
}

TEST(Kernels, SumsColumnsInPanels) {
  // More columns than a panel, and a range of rows that starts within one.
  const size_t lines = 6, columns = 1100;
  Kernel kernel(R"(
    func.func private @k(%x: tensor<2x3x1100xf32>, %g: tensor<2x3x1100xf32>)
        -> (tensor<1100xf32>, tensor<1100xf32>) attributes {plan.kernel, plan.rows = 1100 : i64} {
      %p = nn.mul %x, %g : tensor<2x3x1100xf32>
      %s = nn.reduce sum %p dims [0, 1] : (tensor<2x3x1100xf32>) -> tensor<1100xf32>
      %t = nn.reduce sum %g dims [0, 1] : (tensor<2x3x1100xf32>) -> tensor<1100xf32>
      %n = nn.neg %t : tensor<1100xf32>
      return %s, %n : tensor<1100xf32>, tensor<1100xf32>
    })");
  auto x = randoms<float>(lines * columns), g = randoms<float>(lines * columns);
  std::vector<float> s(columns), n(columns);
  EXPECT_EQ(kernel({x.data(), g.data(), s.data(), n.data()}), 0);
  std::vector<double> expectedS(columns), expectedN(columns);
  for (size_t line = 0; line < lines; ++line)
    for (size_t c = 0; c < columns; ++c) {
      expectedS[c] +=
          static_cast<double>(x[line * columns + c]) * g[line * columns + c];
      expectedN[c] -= g[line * columns + c];
    }
  expectNear(s, expectedS, 1e-6);
  expectNear(n, expectedN, 1e-6);
}

TEST(Kernels, ScattersAndAdds) {
  Kernel kernel(R"(
    func.func private @k(%t: tensor<7x33xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3x33xf32>) -> tensor<7x33xf32>
        attributes {plan.kernel, plan.rows = 7 : i64} {
      %y = nn.scatter_add %t, %i, %u dim 0 : (tensor<7x33xf32>, tensor<2x3xi64>, tensor<2x3x33xf32>) -> tensor<7x33xf32>
      return %y : tensor<7x33xf32>
    })");
  auto t = randoms<float>(7 * 33), u = randoms<float>(6 * 33);
  std::vector<int64_t> i{4, 0, 4, -1, 4, 2};
  std::vector<float> y(7 * 33);
  EXPECT_EQ(kernel({t.data(), i.data(), u.data(), y.data()}), 0);
  std::vector<double> expected(t.begin(), t.end());
  for (size_t place = 0; place < i.size(); ++place)
    for (size_t c = 0; c < 33; ++c)
      expected[(i[place] < 0 ? i[place] + 7 : i[place]) * 33 + c] +=
          u[place * 33 + c];
  expectNear(y, expected, 1e-6);
  i[3] = 7; // names no row
  EXPECT_EQ(kernel({t.data(), i.data(), u.data(), y.data()}), 1 + 3);
}

/// Each batch has indices of its own; what a row of the result reads is found
/// once.
TEST(Kernels, ScattersAndAddsPerBatch) {
  Kernel kernel(R"(
    func.func private @k(%t: tensor<2x7x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3x5xf32>) -> tensor<2x7x5xf32>
        attributes {plan.kernel, plan.rows = 14 : i64} {
      %y = nn.scatter_add %t, %i, %u dim 1 {batch_dims = 1 : i64} : (tensor<2x7x5xf32>, tensor<2x3xi64>, tensor<2x3x5xf32>) -> tensor<2x7x5xf32>
      return %y : tensor<2x7x5xf32>
    })");
  auto t = randoms<float>(2 * 7 * 5), u = randoms<float>(2 * 3 * 5);
  std::vector<int64_t> i{4, 0, 4, -1, 4, 2};
  std::vector<float> y(2 * 7 * 5);
  EXPECT_EQ(kernel({t.data(), i.data(), u.data(), y.data()}), 0);
  std::vector<double> expected(t.begin(), t.end());
  for (size_t place = 0; place < i.size(); ++place)
    for (size_t c = 0; c < 5; ++c)
      expected[(place / 3 * 7 + (i[place] < 0 ? i[place] + 7 : i[place])) * 5 +
               c] += u[place * 5 + c];
  expectNear(y, expected, 1e-6);
  i[3] = 7; // names no row of its batch
  EXPECT_EQ(kernel({t.data(), i.data(), u.data(), y.data()}), 1 + 3);
}

TEST(Kernels, DrawsPhilox) {
  Kernel kernel(R"(
    func.func private @k(%c: tensor<4xi64>, %k: tensor<4xi64>) -> tensor<4xf32>
        attributes {plan.kernel, plan.rows = 4 : i64} {
      %y = nn.random_uniform %c, %k : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    })");
  // Random123's known answers for counters of the two lower words only: the
  // first is its vector of zeros; the others are numpy's philox4x32-10.
  std::vector<int64_t> c{0, 1, 0, -1}, k{0, 0, 1, -1};
  std::vector<float> y(4);
  EXPECT_EQ(kernel({c.data(), k.data(), y.data()}), 0);
  EXPECT_EQ(y[0], (0x6627e8d5u >> 8) * 0x1p-24f);
  for (float value : y) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
  }
}
