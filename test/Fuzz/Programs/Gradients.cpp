// One rank's gradients against finite differences of its loss.

#include "Check.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

/// Ops whose gradient is not that of their value, or that no forward program
/// can compute.
static bool hasOtherGradient(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        if (auto gather = dyn_cast<nn::GatherOp>(op);
            gather && gather.getPaddingIndex())
          return WalkResult::interrupt();
        return isa<nn::StopGradientOp, nn::DropoutOp, nn::RngOp,
                   nn::BatchNormOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::string Checker::checkGradients() {
  // Of what is rounded finite differences say nothing.
  if (hasOtherGradient(*program.module) ||
      !program.update.mixedPrecision.empty())
    return "";
  ModuleOp forward = *program.module;
  evaluate::TensorsByName start = inputs, direction;
  Random random(inputSeed, 1);
  double slope = 0, scale = 0;
  for (auto state : forward.getOps<nn::StateOp>()) {
    auto elements = dyn_cast<ElementsAttr>(state.getInit());
    std::string name = state.getSymName().str();
    auto gradient = expected.find(name + ".grad");
    if (!elements || gradient == expected.end())
      continue;
    Tensor value = *Tensor::fromElements(elements), along(value.getType());
    for (int64_t at = 0; at < value.getNumElements(); ++at) {
      double d = double(random.between(-100, 100)) / 100;
      along.mutableFloats()[at] = d;
      slope += d * gradient->second.asDouble(at);
      scale += std::abs(d * gradient->second.asDouble(at));
    }
    start["@" + name] = value;
    direction["@" + name] = along;
  }
  auto lossAt = [&](double by) -> double {
    evaluate::TensorsByName moved = start, results;
    for (auto &entry : direction) {
      Tensor &tensor = moved[entry.getKey()];
      for (int64_t at = 0; at < tensor.getNumElements(); ++at)
        tensor.mutableFloats()[at] += by * entry.second.asDouble(at);
    }
    ScopedDiagnosticHandler quiet(forward.getContext(),
                                  [](Diagnostic &) { return success(); });
    evaluate::InterpreterOptions options;
    options.entry = nn::EntryKind::forward;
    if (failed(evaluate::evaluateModule(forward, moved, options, results)))
      return NAN;
    return results["loss"].asDouble(0);
  };
  // Of the fourth order; where two widths differ there is a kink between.
  auto differenceAt = [&](double h) {
    return (8 * (lossAt(h) - lossAt(-h)) - (lossAt(2 * h) - lossAt(-2 * h))) /
           (12 * h);
  };
  double wide = differenceAt(1e-4), narrow = differenceAt(3e-5);
  // At a kink slopes differ to either side, however near: of their difference,
  // what curvature makes shrinks with the width, and the kink's part does not.
  auto bendAt = [&](double h) {
    return (lossAt(h) + lossAt(-h) - 2 * lossAt(0)) / h;
  };
  double close = 1e-6 * std::max(1.0, scale),
         kink = std::abs(bendAt(3e-5) - 0.3 * bendAt(1e-4));
  if (!std::isfinite(wide) || !(std::abs(wide - narrow) <= close) ||
      std::abs(narrow - slope) <= 2 * close || kink > close)
    return "";
  return llvm::formatv("expected a slope of {0:e9}, by finite differences, "
                       "found {1:e9} of the gradients",
                       narrow, slope)
      .str();
}
