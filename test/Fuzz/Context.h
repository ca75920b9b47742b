// An MLIR context for many inputs, and what became of each: a context keeps
// every attribute for ever, so a new one is made now and then.

#ifndef ACCEL_TEST_FUZZ_CONTEXT_H
#define ACCEL_TEST_FUZZ_CONTEXT_H

#include "Target.h"
#include "dialects/NN/NN.h"
#include "lib/Evaluate/Models.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <vector>

/// MLIR's own library is built without sanitizers, so its containers do not
/// unpoison what ours have poisoned. A target includes this file once.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_container_overflow=0";
}

namespace accel::fuzz {

class Context {
public:
  /// A context in which no error was counted yet.
  mlir::MLIRContext *get() {
    if (uses++ % kUses == 0) {
      handler.reset();
      mlir::DialectRegistry registry;
      registry.insert<nn::NNDialect, mlir::func::FuncDialect>();
      evaluate::registerEvaluateModels(registry);
      context = std::make_unique<mlir::MLIRContext>(
          registry, mlir::MLIRContext::Threading::DISABLED);
      context->loadAllAvailableDialects();
      handler = std::make_unique<mlir::ScopedDiagnosticHandler>(
          context.get(), [this](mlir::Diagnostic &diagnostic) {
            if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
              told(diagnostic.str());
            return mlir::success();
          });
    }
    errors.clear();
    return context.get();
  }
  /// Holds a step to ending well, without an error, or with one.
  void check(bool succeeded, const char *promise) {
    if (succeeded != errors.empty())
      for (const std::string &error : errors)
        std::fprintf(stderr, "error: %s\n", error.c_str());
    require(succeeded == errors.empty(), promise);
  }

private:
  void told(std::string message) {
    require(!message.empty(), "an error says something");
    errors.push_back(std::move(message));
  }

  static constexpr unsigned kUses = 1000;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
  unsigned uses = 0;
  std::vector<std::string> errors; ///< Of the input at hand.
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_CONTEXT_H
