// Holds every row of AccuracyCases.h: the functions and their gradients, as the
// rules differentiate and the kernels compute them, on a million points over
// all of f32 (every exponent of both signs, denormals, infinities and NaN among
// them) and on all of bf16.

#include "AccuracyCases.h"
#include "KernelHarness.h"
#include "dialects/Interfaces/Differentiable.h"
#include "lib/Autodiff/Differentiate.h"
#include "lib/Driver/InitAll.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace accel;
using namespace accel::test;
using namespace mlir;

namespace {
constexpr size_t kPoints = 1 << 20;

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Spread evenly over the bit patterns, then the special ones. `keep` says
/// which bits of a pattern count.
std::vector<float> makePoints(uint32_t seed, uint32_t keep = UINT32_MAX) {
  std::mt19937 random(seed);
  std::vector<float> points;
  for (uint32_t i = 0; i < kPoints; ++i)
    points.push_back(fromBits(((i << 12) | (random() & 0xfff)) & keep));
  float infinity = std::numeric_limits<float>::infinity();
  size_t at = 17;
  for (float special : {0.f, 1.f, 0x1p-126f, 0x1p-149f, 0x1.fffffep127f,
                        infinity, std::numeric_limits<float>::quiet_NaN()})
    for (float signedOne : {special, -special}) {
      uint32_t bits;
      std::memcpy(&bits, &signedOne, 4);
      points[at += 101] = fromBits(bits & keep);
    }
  return points;
}

/// Second arguments: in another order than the first, between 2^-16 and 2^16
/// where `narrow`.
std::vector<float> shuffled(std::vector<float> points) {
  std::shuffle(points.begin(), points.end(), std::mt19937(5));
  return points;
}
std::vector<float> narrowed(std::vector<float> points) {
  for (float &point : points) {
    uint32_t bits;
    std::memcpy(&bits, &point, 4);
    uint32_t exponent = 111 + (bits >> 23 & 0xff) % 32;
    point = fromBits((bits & 0x807fffff) | exponent << 23);
  }
  return points;
}

/// The kernels of all rows in one library.
class Functions {
public:
  explicit Functions(const std::string &element) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    std::string type =
        "tensor<" + std::to_string(kPoints) + "x" + element + ">";
    std::string text;
    for (const AccuracyCase &row : accuracyCases())
      text += value(row) + slopes(row);
    std::string typed;
    for (char c : text)
      typed += c == 'T' ? type : std::string(1, c);
    module = parseSourceString<ModuleOp>(typed, &context);
    EXPECT_TRUE(module);
    SmallVector<cpu::KernelInstance> instances;
    for (auto function : module->getOps<func::FuncOp>()) {
      if (function.getName().ends_with("_slope"))
        differentiate(function);
      cpu::KernelInstance instance;
      instance.function = function;
      instance.symbol = function.getName().str();
      unsigned arguments =
          function.getNumArguments() + function.getNumResults();
      instance.strides.assign(arguments, {1});
      instance.inPlace.assign(function.getNumArguments(), -1);
      instances.push_back(std::move(instance));
    }
    auto bytes = cpu::compileInstances(instances, {}, Context::target(),
                                       module->getLoc());
    EXPECT_TRUE(succeeded(bytes));
    library = std::make_unique<Library>(*bytes);
  }

  KernelFunction get(const std::string &name) const {
    return library->get(name);
  }

private:
  static std::string value(const AccuracyCase &row) {
    return "func.func private @" + std::string(row.name) +
           "(%x: T, %y: T) -> T attributes {plan.kernel, plan.rows = 1 : i64} "
           "{ " +
           row.body + " return %r : T }\n";
  }
  static std::string slopes(const AccuracyCase &row) {
    return "func.func private @" + std::string(row.name) +
           "_slope(%x: T, %y: T) -> T attributes {plan.kernel, plan.rows = 1 : "
           "i64} { " +
           row.body + " return %r : T }\n";
  }

  /// The gradients of the sum of the results, by both arguments.
  void differentiate(func::FuncOp function) {
    auto exit = cast<func::ReturnOp>(function.front().getTerminator());
    OpBuilder builder(exit);
    Value loss =
        nn::ReduceOp::create(builder, exit.getLoc(), nn::ReductionKind::sum,
                             exit.getOperand(0), ArrayRef<int64_t>{0},
                             /*first=*/false);
    SmallVector<Value> wrt;
    for (BlockArgument argument : function.getArguments())
      if (!argument.use_empty())
        wrt.push_back(argument);
    auto gradients = autodiff::differentiate(builder, loss, wrt);
    ASSERT_TRUE(succeeded(gradients));
    exit.getOperandsMutable().assign(*gradients);
    function.setFunctionType(builder.getFunctionType(
        function.getArgumentTypes(), exit.getOperandTypes()));
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(function.front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<Library> library;
};

/// What tells formats apart: how a number is stored, and its precision.
struct Format {
  const char *element;
  int digits;      ///< of the significand, the hidden one included
  double rounding; ///< of the result, in units of its last place
};

/// The distance between neighbouring numbers at `exact`.
double unit(double exact, int digits) {
  int exponent;
  std::frexp(std::fabs(exact), &exponent);
  return std::ldexp(1, std::max(exponent, -125) - digits);
}

/// By how much `found` misses the bound, in units; 0 if it holds.
double excess(double found, double exact, const Bound &bound, int digits,
              double rounding) {
  if (std::isnan(found) || std::isnan(exact))
    return std::isnan(found) == std::isnan(exact) ? 0 : kInfinity;
  // What overflows is as far as the next power of two.
  exact = std::clamp(exact, -0x1p128, 0x1p128);
  found = std::clamp(found, -0x1p128, 0x1p128);
  double last = std::min(unit(exact, digits), std::ldexp(1, 128 - digits));
  double allowed = (rounding + 1e-4) * last + bound.absolute +
                   bound.ulps * std::min(unit(exact, 24), 0x1p104);
  return std::max(0.0, (std::fabs(found - exact) - allowed) / last);
}

class Points {
public:
  Points(std::vector<float> x, std::vector<float> y, bool half)
      : x(std::move(x)), y(std::move(y)), half(half) {
    narrow(this->x, xHalf);
    narrow(this->y, yHalf);
  }

  /// The results of a kernel, two if it has two.
  std::array<std::vector<float>, 2> run(KernelFunction kernel) const {
    std::array<std::vector<float>, 2> results;
    std::array<std::vector<uint16_t>, 2> halves;
    for (auto [wide, bits] : llvm::zip(results, halves)) {
      wide.resize(kPoints);
      bits.resize(kPoints);
    }
    auto address = [&](auto &wide, auto &bits) -> void * {
      return half ? (void *)bits.data() : (void *)wide.data();
    };
    void *arguments[] = {address(x, xHalf), address(y, yHalf),
                         address(results[0], halves[0]),
                         address(results[1], halves[1]), nullptr};
    EXPECT_EQ(kernel(arguments, 0, 1), 0);
    for (auto [wide, bits] : llvm::zip(results, halves))
      for (size_t i = 0; half && i < kPoints; ++i)
        wide[i] = fromBits(uint32_t(bits[i]) << 16);
    return results;
  }

  mutable std::vector<float> x, y;

private:
  static void narrow(const std::vector<float> &wide,
                     std::vector<uint16_t> &bits) {
    for (float value : wide) {
      uint32_t all;
      std::memcpy(&all, &value, 4);
      bits.push_back(all >> 16);
    }
  }
  bool half;
  mutable std::vector<uint16_t> xHalf, yHalf;
};

/// Holds `found` to `exact` wherever `defined` is a number: where a function is
/// none, its gradient is not promised.
void expectWithin(const std::string &name, const Points &points,
                  const std::vector<float> &found, Exact exact,
                  const Bound &bound, const Format &format, Exact defined) {
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < kPoints; ++i) {
    double x = points.x[i], y = points.y[i];
    if (exact != defined && std::isnan(defined(x, y)))
      continue;
    double miss =
        excess(found[i], exact(x, y), bound, format.digits, format.rounding);
    if (miss > worst)
      worst = miss, at = i;
  }
  EXPECT_EQ(worst, 0) << name << " in " << format.element << ": " << found[at]
                      << " instead of " << exact(points.x[at], points.y[at])
                      << " at " << points.x[at] << ", " << points.y[at] << ", "
                      << worst << " units beyond its bound";
}

void checkAll(const Format &format, uint32_t keep) {
  Functions functions(format.element);
  bool half = format.digits < 24;
  std::vector<float> x = makePoints(1, keep), y = shuffled(x);
  Points all(x, y, half), near(narrowed(x), narrowed(y), half);
  for (const AccuracyCase &row : accuracyCases()) {
    std::string name = row.name;
    expectWithin(name, all, all.run(functions.get(name))[0], row.value,
                 row.bound, format, row.value);
    const Points &points = row.binary ? near : all;
    auto [byX, byY] = points.run(functions.get(name + "_slope"));
    expectWithin(name + "'s slope", points, byX, row.slope, row.slopeBound,
                 format, row.value);
    if (row.binary)
      expectWithin(name + "'s second slope", points, byY, row.slopeY,
                   row.slopeBoundY, format, row.value);
  }
}
} // namespace

TEST(Accuracy, HoldsOverAllOfF32) { checkAll({"f32", 24, 0}, UINT32_MAX); }

// Computed in f32 and rounded once.
TEST(Accuracy, HoldsOverAllOfBf16) { checkAll({"bf16", 8, 0.5}, 0xffff0000); }

TEST(Accuracy, IsExactAtTheLimits) {
  Functions functions("f32");
  for (const AccuracyCase &row : accuracyCases()) {
    std::vector<float> x(kPoints), y(kPoints);
    for (auto [i, limit] : llvm::enumerate(row.limits))
      x[i] = static_cast<float>(limit.x);
    Points points(x, y, false);
    auto values = points.run(functions.get(row.name))[0];
    auto slopes =
        points.run(functions.get(row.name + std::string("_slope")))[0];
    for (auto [i, limit] : llvm::enumerate(row.limits)) {
      EXPECT_EQ(values[i], static_cast<float>(limit.value))
          << row.name << "(" << limit.x << ")";
      EXPECT_EQ(slopes[i], static_cast<float>(limit.slope))
          << "the slope of " << row.name << " at " << limit.x;
    }
  }
}

TEST(Accuracy, EveryBoundBeyondFourUnitsSaysWhy) {
  for (const AccuracyCase &row : accuracyCases())
    for (const Bound &bound : {row.bound, row.slopeBound, row.slopeBoundY})
      EXPECT_EQ((bound.ulps > 4 || bound.absolute != 0), bound.why != nullptr)
          << row.name;
}

/// An op that takes floats and has a kernel but no row is not promised
/// anything.
TEST(Accuracy, EveryElementwiseFunctionHasARow) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto *dialect = context.getLoadedDialect<nn::NNDialect>();
  int count = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (&name.getDialect() != dialect || !name.hasTrait<nn::Elementwise>() ||
        !name.hasInterface<DifferentiableOpInterface>())
      continue;
    // Selection and conversion compute nothing.
    StringRef op = name.getStringRef();
    if (op == nn::SelectOp::getOperationName() ||
        op == nn::CastOp::getOperationName())
      continue;
    bool found = false;
    for (const AccuracyCase &row : accuracyCases())
      found |= StringRef(row.body).contains(op.str() + " ");
    EXPECT_TRUE(found) << op.str();
    ++count;
  }
  EXPECT_GE(count, 22);
}
