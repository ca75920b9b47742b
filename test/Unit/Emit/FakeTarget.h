// A target for tests of what the emitter itself does.

#ifndef ACCEL_TEST_UNIT_EMIT_FAKETARGET_H
#define ACCEL_TEST_UNIT_EMIT_FAKETARGET_H

#include "lib/Target/Target.h"

namespace accel {

/// A target that compiles nothing: the emitter takes names and sections as it
/// is given them.
class FakeTarget : public Target {
public:
  explicit FakeTarget(plan::Engine engine = plan::Engine::cpu)
      : engine(engine) {}
  std::string getText() const override { return "fake:thing"; }
  plan::Engine getEngine() const override { return engine; }
  FusionLimits getFusionLimits() const override { return {}; }
  bool hasEpilogue(Epilogue) const override { return false; }
  int64_t chooseGrid(mlir::func::FuncOp, int64_t, int64_t) const override {
    return 1;
  }
  bool isCapturable(mlir::Operation *) const override { return true; }
  plan::Space getSpace(plan::Role) const override {
    return plan::Space::device;
  }
  int64_t getAlignment(plan::Space) const override { return 64; }
  plan::Space getExchangeSpace() const override { return plan::Space::shared; }
  mlir::LogicalResult chooseForms(plan::ProgramOp) const override {
    return mlir::success();
  }
  std::optional<plan::Space> getFileSpace() const override { return {}; }
  int64_t getMostCaptured() const override { return 0; }
  bool copiesBesideComputation() const override { return false; }
  int64_t getExchangeQueues() const override { return 0; }
  int64_t estimateReserve(plan::ProgramOp, plan::Space) const override {
    return 0;
  }
  std::string getSymbol(mlir::Operation *op,
                        mlir::SymbolTableCollection &) const override {
    auto kernel = llvm::dyn_cast<plan::KernelOp>(op);
    std::string prefix = engine == plan::Engine::cpu ? "fake." : "other.";
    return prefix + (kernel ? kernel.getFunction().str() : "softmax");
  }
  mlir::FailureOr<Code> compile(mlir::ModuleOp) const override {
    return Code();
  }

private:
  plan::Engine engine;
};

} // namespace accel

#endif // ACCEL_TEST_UNIT_EMIT_FAKETARGET_H
