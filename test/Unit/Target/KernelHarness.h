// Compiles a kernel given as text and calls it, for the tests of the row
// emitter.

#ifndef ACCEL_TEST_UNIT_TARGET_KERNELHARNESS_H
#define ACCEL_TEST_UNIT_TARGET_KERNELHARNESS_H

#include "Device/CPU/Kernel.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/Models.h"
#include "lib/Target/CPU/Kernels.h"
#include "lib/Target/Element/Models.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

namespace accel::test {

using KernelFunction = int64_t (*)(void *const *, int64_t, int64_t);

/// A loaded library of kernels.
class Library {
public:
  explicit Library(const std::string &bytes) {
    char path[] = "/tmp/accel-kernel-test-XXXXXX";
    int file = mkstemp(path);
    EXPECT_EQ(write(file, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    close(file);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    unlink(path);
  }
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  KernelFunction get(const std::string &symbol) const {
    auto function =
        reinterpret_cast<KernelFunction>(dlsym(handle, symbol.c_str()));
    EXPECT_NE(function, nullptr) << symbol;
    return function;
  }

private:
  void *handle;
};

/// A context with everything that kernels need.
class Context {
public:
  Context() {
    mlir::DialectRegistry registry;
    registry
        .insert<mlir::func::FuncDialect, nn::NNDialect, plan::PlanDialect>();
    plan::registerKernelSourceModels(registry);
    element::registerElementSourceModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  static cpu::CpuTarget target(llvm::StringRef name = "cpu") {
    auto parsed = cpu::parseTarget(
        name, []() -> mlir::InFlightDiagnostic { std::abort(); });
    return *parsed;
  }

  mlir::MLIRContext context;
};

/// The first function of a text, compiled for given strides (row-major ones by
/// default) and bytes of scratch.
class Kernel {
public:
  explicit Kernel(const std::string &text,
                  std::vector<std::vector<int64_t>> strides = {},
                  std::vector<int> inPlace = {},
                  llvm::StringRef targetName = "cpu", int64_t scratch = 0) {
    module = context.parse(text);
    EXPECT_TRUE(module);
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    instance.function = function;
    instance.symbol = function.getName().str();
    llvm::SmallVector<mlir::Type> types(function.getArgumentTypes());
    llvm::append_range(types, function.getResultTypes());
    for (auto [index, type] : llvm::enumerate(types)) {
      StridedView view = StridedView::contiguous(
          mlir::cast<mlir::RankedTensorType>(type).getShape());
      if (index < strides.size() && !strides[index].empty())
        view.strides.assign(strides[index].begin(), strides[index].end());
      instance.strides.push_back(view.strides);
    }
    instance.inPlace.assign(function.getNumArguments(), -1);
    for (auto [index, same] : llvm::enumerate(inPlace))
      instance.inPlace[index] = same;
    instance.threadScratch = scratch;
    rows = function->getAttrOfType<mlir::IntegerAttr>("plan.rows").getInt();
    auto bytes = cpu::compileInstances(
        {instance}, {}, Context::target(targetName), function.getLoc());
    EXPECT_TRUE(succeeded(bytes));
    library = std::make_unique<Library>(*bytes);
    kernel = library->get(instance.symbol);
  }

  /// Runs all rows in two calls (the second half first); what a call refuses is
  /// in `refusal`.
  int64_t operator()(std::vector<void *> arguments) const {
    arguments.push_back(&refusal);
    int64_t half = rows / 2;
    int64_t second = kernel(arguments.data(), half, rows);
    if (half == 0)
      return second;
    int64_t first = kernel(arguments.data(), 0, half);
    return first ? first : second;
  }

  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  cpu::KernelInstance instance;
  std::unique_ptr<Library> library;
  KernelFunction kernel;
  int64_t rows;
  mutable rt::cpu::Refusal refusal{};
};

/// Numbers between -`limit` and `limit`.
template <typename T> std::vector<T> randoms(size_t count, double limit = 2) {
  static std::mt19937 engine(7);
  std::uniform_real_distribution<double> distribution(-limit, limit);
  std::vector<T> values(count);
  for (T &value : values)
    value = static_cast<T>(distribution(engine));
  return values;
}

/// |x - y| / (1 + |y|) at most `tolerance`, or both NaN, or equal.
template <typename T>
void expectNear(const std::vector<T> &found,
                const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    double x = found[i], y = expected[i];
    if ((std::isnan(x) && std::isnan(y)) || x == y)
      continue;
    ASSERT_LE(std::abs(x - y) / (1 + std::abs(y)), tolerance)
        << "element " << i << ": " << x << " instead of " << y;
  }
}

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_TARGET_KERNELHARNESS_H
