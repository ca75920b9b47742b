// The scalar functions of generated kernels, their types, targets and the
// cache.

#include "KernelHarness.h"

#include <filesystem>

using namespace accel;
using namespace accel::test;

namespace {
/// A kernel of one unary op on 203 elements.
std::string unary(const std::string &op, const std::string &type) {
  std::string t = "tensor<203x" + type + ">";
  return "func.func private @k(%x: " + t + ") -> " + t +
         " attributes {plan.kernel, plan.rows = 1 : i64} { %y = nn." + op +
         " %x : (" + t + ") -> " + t + " return %y : " + t + " }";
}

std::string binary(const std::string &op, const std::string &type) {
  std::string t = "tensor<203x" + type + ">";
  return "func.func private @k(%x: " + t + ", %y: " + t + ") -> " + t +
         " attributes {plan.kernel, plan.rows = 1 : i64} { %z = nn." + op +
         " %x, %y : (" + t + ", " + t + ") -> " + t + " return %z : " + t +
         " }";
}

/// Numbers of all magnitudes, and the special ones.
template <typename T> std::vector<T> typeSamples(double low, double high) {
  std::vector<T> x;
  for (int i = 0; i < 195; ++i)
    x.push_back(static_cast<T>(low + (high - low) * i / 194));
  const T infinity = std::numeric_limits<T>::infinity();
  for (T special :
       {T(0), T(-0.0), infinity, -infinity, std::numeric_limits<T>::quiet_NaN(),
        T(1e-7), T(-1e-7), T(1)})
    x.push_back(special);
  return x;
}

struct Function {
  const char *op;
  std::function<double(double)> exact;
  double low, high;
};

const std::vector<Function> &functions() {
  static const std::vector<Function> list = {
      {"exp", [](double x) { return std::exp(x); }, -86, 88.7},
      {"log", [](double x) { return std::log(x); }, 1e-3, 5},
      {"tanh", [](double x) { return std::tanh(x); }, -9, 9},
      {"erf", [](double x) { return std::erf(x); }, -5, 5},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80},
      {"sqrt", [](double x) { return std::sqrt(x); }, 0, 10},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 10},
      {"reciprocal", [](double x) { return 1 / x; }, 0.1, 10},
      {"neg", [](double x) { return -x; }, -3, 3},
      {"abs", [](double x) { return std::abs(x); }, -3, 3},
      {"relu", [](double x) { return x < 0 ? 0 : x; }, -3, 3},
      {"floor", [](double x) { return std::floor(x); }, -3, 3},
      {"sin", [](double x) { return std::sin(x); }, -3, 3},
      {"cos", [](double x) { return std::cos(x); }, -3, 3},
      {"atan", [](double x) { return std::atan(x); }, -9, 9},
  };
  return list;
}
} // namespace

TEST(KernelTypes, FunctionsAreExactToAFewUnitsInTheLastPlace) {
  for (const Function &function : functions()) {
    Kernel narrow(unary(function.op, "f32")), wide(unary(function.op, "f64"));
    auto x = typeSamples<float>(function.low, function.high);
    std::vector<double> xWide(x.begin(), x.end()), yWide(203);
    std::vector<float> y(203);
    narrow({x.data(), y.data()});
    wide({xWide.data(), yWide.data()});
    for (size_t i = 0; i < 203; ++i) {
      double exact = function.exact(x[i]);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y[i]) && std::isnan(yWide[i]))
            << function.op << " " << x[i];
        continue;
      }
      double ulp =
          std::nextafter(std::abs(static_cast<float>(exact)), INFINITY) -
          std::abs(static_cast<float>(exact));
      if (std::isinf(exact))
        EXPECT_EQ(y[i], exact) << function.op << " " << x[i];
      else
        EXPECT_LE(std::abs(y[i] - exact), 5 * ulp)
            << function.op << " " << x[i];
      EXPECT_TRUE(yWide[i] == exact ||
                  std::abs(yWide[i] - exact) <= 1e-15 * std::abs(exact) * 4)
          << function.op << " " << x[i];
    }
  }
}

TEST(KernelTypes, ExponentialsOfMaskedValuesAreZero) {
  Kernel kernel(unary("exp", "f32"));
  std::vector<float> x(203, -1e4f), y(203);
  x[5] = -std::numeric_limits<float>::infinity();
  x[6] = -87.5f;
  x[7] = 1e4f;
  kernel({x.data(), y.data()});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[5], 0);
  EXPECT_LE(y[6], 1.2e-38f);
  EXPECT_EQ(y[7], std::numeric_limits<float>::infinity());
}

TEST(KernelTypes, StoresBf16AndF16RoundedToNearest) {
  Kernel widen(R"(
    func.func private @k(%x: tensor<203xf32>) -> (tensor<203xbf16>, tensor<203xf16>)
        attributes {plan.kernel, plan.rows = 1 : i64} {
      %b = nn.cast %x : (tensor<203xf32>) -> tensor<203xbf16>
      %h = nn.cast %x : (tensor<203xf32>) -> tensor<203xf16>
      return %b, %h : tensor<203xbf16>, tensor<203xf16>
    })");
  Kernel add(binary("add", "bf16")), half(binary("add", "f16"));
  auto x = typeSamples<float>(-3, 3);
  std::vector<uint16_t> b(203), h(203), b2(203), h2(203);
  widen({x.data(), b.data(), h.data()});
  add({b.data(), b.data(), b2.data()});
  half({h.data(), h.data(), h2.data()});
  auto ofBf16 = [](uint16_t bits) {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  };
  for (size_t i = 0; i < 203; ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(ofBf16(b[i])) && std::isnan(ofBf16(b2[i])));
      continue;
    }
    if (std::isinf(x[i]))
      EXPECT_EQ(ofBf16(b[i]), x[i]);
    else
      EXPECT_LE(std::abs(ofBf16(b[i]) - x[i]), std::abs(x[i]) / 256) << x[i];
    EXPECT_EQ(ofBf16(b2[i]), 2 * ofBf16(b[i]));
    if (std::abs(x[i]) > 1e-3 && std::isfinite(x[i])) {
      EXPECT_EQ(h2[i], h[i] + 0x400) << x[i]; // the exponent, one more
    }
  }
  // Ties go to even: 1 + 2^-8 lies between 1 and 1 + 2^-7.
  x.assign(203, 1.00390625f);
  x[1] = 1.01171875f;
  widen({x.data(), b.data(), h.data()});
  EXPECT_EQ(b[0], 0x3f80);
  EXPECT_EQ(b[1], 0x3f82);
}

TEST(KernelTypes, IntegersDivideAndCompareAsDeclared) {
  Kernel div(binary("div", "i64")), mod(binary("mod", "i32")),
      bytes(binary("max", "ui8")), pow(binary("pow", "i64"));
  std::vector<int64_t> x(203), y(203), z(203);
  std::vector<int32_t> x32(203), y32(203), z32(203);
  std::vector<uint8_t> x8(203), y8(203), z8(203);
  for (int i = 0; i < 203; ++i) {
    x[i] = x32[i] = i - 100;
    y[i] = y32[i] = i % 7 - 3 ? i % 7 - 3 : 4;
    x8[i] = i;
    y8[i] = 255 - i;
  }
  div({x.data(), y.data(), z.data()});
  mod({x32.data(), y32.data(), z32.data()});
  bytes({x8.data(), y8.data(), z8.data()});
  for (int i = 0; i < 203; ++i) {
    EXPECT_EQ(z[i], x[i] / y[i]);
    EXPECT_EQ(z32[i], ((x32[i] % y32[i]) + y32[i]) % y32[i]);
    EXPECT_EQ(z8[i], std::max(x8[i], y8[i]));
  }
  y[3] = 0; // not a crash
  EXPECT_EQ(div({x.data(), y.data(), z.data()}), 0);
  std::fill(y.begin(), y.end(), 3);
  pow({x.data(), y.data(), z.data()});
  for (int i = 0; i < 203; ++i)
    EXPECT_EQ(z[i], x[i] * x[i] * x[i]);
}

TEST(KernelTypes, ComparesSelectsAndCountsThroughBooleans) {
  Kernel kernel(R"(
    func.func private @k(%x: tensor<6x9xf32>, %m: tensor<6x9xi1>) -> (tensor<6x9xf32>, tensor<6x9xi1>, tensor<6x9xi64>)
        attributes {plan.kernel, plan.rows = 6 : i64} {
      %n = nn.is_nan %x : tensor<6x9xf32>
      %not = nn.not %n : tensor<6x9xi1>
      %and = nn.and %not, %m : tensor<6x9xi1>
      %c = nn.constant dense<0xFF800000> : tensor<6x9xf32>
      %s = nn.select %and, %x, %c : tensor<6x9xf32>
      %i = nn.cast %m : (tensor<6x9xi1>) -> tensor<6x9xi64>
      %t = nn.iota {dim = 1 : i64} : tensor<6x9xi64>
      %u = nn.cumsum %i dim 1 {exclusive} : tensor<6x9xi64>
      %v = nn.add %t, %u : tensor<6x9xi64>
      return %s, %and, %v : tensor<6x9xf32>, tensor<6x9xi1>, tensor<6x9xi64>
    })");
  auto x = randoms<float>(54);
  std::vector<uint8_t> m(54), b(54);
  for (size_t i = 0; i < 54; ++i) {
    m[i] = x[i] > 0;
    if (i % 5 == 0)
      x[i] = std::nanf("");
  }
  std::vector<float> s(54);
  std::vector<int64_t> v(54);
  EXPECT_EQ(kernel({x.data(), m.data(), s.data(), b.data(), v.data()}), 0);
  for (size_t i = 0; i < 54; ++i) {
    bool keep = i % 5 != 0 && m[i];
    EXPECT_EQ(b[i], keep);
    EXPECT_EQ(s[i], keep ? x[i] : -std::numeric_limits<float>::infinity());
    int64_t before = 0;
    for (size_t j = i / 9 * 9; j < i; ++j)
      before += m[j];
    EXPECT_EQ(v[i], static_cast<int64_t>(i % 9) + before);
  }
}

TEST(KernelTypes, ChoosesTheGreatestAsTheyStand) {
  Kernel kernel(R"(
    func.func private @k(%x: tensor<6x9xf32>, %i: tensor<6x9xi32>) -> (tensor<6x4xi64>, tensor<6x9xi64>, tensor<6x3xi64>)
        attributes {plan.kernel, plan.rows = 6 : i64} {
      %t = nn.top_k %x k 4 : (tensor<6x9xf32>) -> tensor<6x4xi64>
      %u = nn.top_k %x k 9 {smallest} : (tensor<6x9xf32>) -> tensor<6x9xi64>
      %v = nn.top_k %i k 3 : (tensor<6x9xi32>) -> tensor<6x3xi64>
      return %t, %u, %v : tensor<6x4xi64>, tensor<6x9xi64>, tensor<6x3xi64>
    })");
  auto x = randoms<float>(54);
  float infinity = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < 54; i += 3)
    x[i] = std::round(x[i]); // some are equal
  x[3] = x[7] = -infinity, x[12] = infinity, x[13] = std::nanf("");
  x[20] = -std::nanf(""), x[27] = 0.0f, x[28] = -0.0f;
  std::vector<int32_t> integers(54);
  for (size_t i = 0; i < 54; ++i)
    integers[i] = static_cast<int32_t>(i * 7 % 5) - 2;
  std::vector<int64_t> greatest(24), least(54), ofIntegers(18);
  EXPECT_EQ(kernel({x.data(), integers.data(), greatest.data(), least.data(),
                    ofIntegers.data()}),
            0);
  auto isGreater = [](auto a, auto b) { return a > b || (a != a && b == b); };
  auto expect = [&](const auto *row, const int64_t *found, size_t count,
                    bool smallest) {
    std::vector<int64_t> places(9);
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) {
      return smallest ? isGreater(row[j], row[i]) : isGreater(row[i], row[j]);
    });
    for (size_t at = 0; at < count; ++at)
      EXPECT_EQ(found[at], places[at]) << at;
  };
  for (size_t row = 0; row < 6; ++row) {
    expect(&x[row * 9], &greatest[row * 4], 4, false);
    expect(&x[row * 9], &least[row * 9], 9, true);
    expect(&integers[row * 9], &ofIntegers[row * 3], 3, false);
  }
}

TEST(KernelTypes, CrossEntropyIgnoresAndRefusesLabels) {
  Kernel kernel(R"(
    func.func private @k(%x: tensor<4x50xf32>, %l: tensor<4xi64>) -> tensor<4xf32>
        attributes {plan.kernel, plan.rows = 4 : i64} {
      %y = nn.cross_entropy %x, %l : (tensor<4x50xf32>, tensor<4xi64>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    })");
  auto x = randoms<float>(200, 5);
  std::vector<int64_t> labels{3, -100, 49, 0};
  std::vector<float> y(4);
  EXPECT_EQ(kernel({x.data(), labels.data(), y.data()}), 0);
  std::vector<double> expected;
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 50; ++i)
      sum += std::exp(static_cast<double>(x[row * 50 + i]));
    expected.push_back(
        labels[row] < 0 ? 0 : std::log(sum) - x[row * 50 + labels[row]]);
  }
  expectNear(y, expected, 1e-6);
  labels[2] = 50;
  EXPECT_EQ(kernel({x.data(), labels.data(), y.data()}), 3);
  EXPECT_EQ(kernel.refusal.value, 50);
  EXPECT_EQ(kernel.refusal.end, 50);
  EXPECT_EQ(kernel.refusal.isLabel, 1);
}

TEST(KernelTypes, WritesInPlace) {
  Kernel kernel(unary("exp", "f32"), {}, {0});
  auto x = randoms<float>(203);
  std::vector<double> expected;
  for (float value : x)
    expected.push_back(std::exp(static_cast<double>(value)));
  kernel({x.data(), x.data()});
  expectNear(x, expected, 1e-6);
}

TEST(KernelTypes, WritesNothingOfEmptyResults) {
  Kernel kernel(R"(
    func.func private @k(%x: tensor<2x0xf32>, %y: tensor<2x3xf32>) -> (tensor<0x2xf32>, tensor<2x3xf32>, tensor<2xf32>)
        attributes {plan.kernel, plan.rows = 1 : i64} {
      %r = nn.reshape %x : (tensor<2x0xf32>) -> tensor<0x2xf32>
      %c = nn.concat %x, %y dim 1 : (tensor<2x0xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      %s = nn.reduce sum %x dims [1] : (tensor<2x0xf32>) -> tensor<2xf32>
      return %r, %c, %s : tensor<0x2xf32>, tensor<2x3xf32>, tensor<2xf32>
    })");
  auto y = randoms<float>(6);
  std::vector<float> c(6), s(2, 7);
  EXPECT_EQ(kernel({nullptr, y.data(), nullptr, c.data(), s.data()}), 0);
  EXPECT_EQ(c, y);
  EXPECT_EQ(s, (std::vector<float>{0, 0}));
}

TEST(KernelTypes, EveryOpOfAKernelSaysWhatItsElementsAre) {
  Context context;
  auto *dialect = context.context.getLoadedDialect<nn::NNDialect>();
  int count = 0;
  for (mlir::RegisteredOperationName name :
       context.context.getRegisteredOperations()) {
    if (&name.getDialect() != dialect)
      continue;
    EXPECT_EQ(name.hasInterface<KernelSourceOpInterface>(),
              name.hasInterface<ElementSourceOpInterface>())
        << name.getStringRef().str();
    count += name.hasInterface<ElementSourceOpInterface>();
  }
  EXPECT_GT(count, 40);
}

TEST(KernelTypes, GeneratesCodeForOtherMachines) {
  Kernel kernel(unary("exp", "f32"), {}, {}, "cpu:x86-64-v3");
  std::vector<float> x(203, 1.0f), y(203);
  kernel({x.data(), y.data()});
  EXPECT_NEAR(y[202], 2.718281828, 1e-6);
  EXPECT_EQ(Context::target("cpu:x86-64-v3").vectorBits, 256u);
  EXPECT_EQ(Context::target("cpu:sapphirerapids").level, "x86-64-v4");
  auto v3 = Context::target("cpu:haswell");
  EXPECT_EQ(v3.level, "x86-64-v3");
  EXPECT_EQ(v3.features,
            (std::vector<std::string>{"abm", "avx", "avx2", "bmi1", "bmi2",
                                      "f16c", "fma", "movbe"}));
}

TEST(KernelTypes, RefusesUnknownTargets) {
  Context context;
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context.context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          message = diagnostic.str();
                                          return mlir::success();
                                        });
  auto emit = [&] {
    return mlir::emitError(mlir::UnknownLoc::get(&context.context));
  };
  EXPECT_TRUE(failed(cpu::parseTarget("gpu", emit)));
  EXPECT_EQ(message, "expected target 'cpu' or 'cpu:NAME', found 'gpu'");
  EXPECT_TRUE(failed(cpu::parseTarget("cpu:", emit)));
  EXPECT_EQ(message, "expected target 'cpu' or 'cpu:NAME', found 'cpu:'");
  EXPECT_TRUE(failed(cpu::parseTarget("cpu:abacus", emit)));
  EXPECT_EQ(message, "expected a CPU that LLVM knows, such as 'x86-64-v3', "
                     "found 'abacus'");
  EXPECT_TRUE(failed(cpu::parseTarget("cpu:nehalem", emit)));
  EXPECT_EQ(message,
            "expected a CPU with the features of x86-64-v3 (AVX2, FMA), "
            "found 'nehalem'");
}

TEST(KernelTypes, RefusesWhatItCannotEmit) {
  Context context;
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context.context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          message = diagnostic.str();
                                          return mlir::success();
                                        });
  auto verify = [&](const std::string &text) {
    auto module = context.parse(text);
    EXPECT_TRUE(module);
    return cpu::verifyKernel(*module->getOps<mlir::func::FuncOp>().begin());
  };
  EXPECT_TRUE(failed(verify(R"(
    func.func private @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {plan.rows = 4 : i64} {
      %y = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      return %y : tensor<4x4xf32>
    })")));
  EXPECT_EQ(message,
            "'nn.matmul' op expected an op that a kernel of the target "
            "'cpu' may contain, found 'nn.matmul'");
  EXPECT_TRUE(failed(verify(R"(
    func.func private @k() -> tensor<2xf32> attributes {plan.rows = 1 : i64} {
      %y = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
      return %y : tensor<2xf32>
    })")));
  EXPECT_EQ(message, "'nn.constant' op expected a constant with equal elements "
                     "within a kernel");
  EXPECT_TRUE(failed(verify(R"(
    func.func private @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {plan.rows = 3 : i64} {
      return %x : tensor<4x4xf32>
    })")));
  EXPECT_EQ(message,
            "'func.func' op expected results of 3 rows, found a result "
            "of type 'tensor<4x4xf32>'");
}

TEST(KernelTypes, KeepsLibrariesByCodeAndTarget) {
  namespace fs = std::filesystem;
  fs::path home =
      fs::temp_directory_path() / ("accel-cache-" + std::to_string(getpid()));
  const char *old = std::getenv("XDG_CACHE_HOME");
  std::string before = old ? old : "";
  setenv("XDG_CACHE_HOME", home.c_str(), 1);
  auto count = [&] {
    return std::distance(fs::directory_iterator(home / "acc"),
                         fs::directory_iterator());
  };
  auto run = [&](const char *op, const char *target) {
    Kernel kernel(unary(op, "f32"), {}, {}, target);
    std::vector<float> x(203, 2.0f), y(203);
    kernel({x.data(), y.data()});
    return y[17];
  };
  EXPECT_NEAR(run("sqrt", "cpu:x86-64-v3"), 1.41421356, 1e-6);
  EXPECT_EQ(count(), 2); // the library, and its kernel
  EXPECT_NEAR(run("sqrt", "cpu:x86-64-v3"), 1.41421356, 1e-6);
  EXPECT_EQ(count(), 2);
  EXPECT_NEAR(run("sqrt", "cpu:haswell"), 1.41421356, 1e-6);
  EXPECT_EQ(count(), 4);
  EXPECT_NEAR(run("rsqrt", "cpu:x86-64-v3"), 0.70710678, 1e-6);
  EXPECT_EQ(count(), 6);
  // What is in the cache is used; what is not a library is made again.
  for (const auto &entry : fs::directory_iterator(home / "acc"))
    fs::resize_file(entry.path(), 0);
  EXPECT_NEAR(run("rsqrt", "cpu:x86-64-v3"), 0.70710678, 1e-6);
  fs::remove_all(home);
  if (old)
    setenv("XDG_CACHE_HOME", before.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
}
