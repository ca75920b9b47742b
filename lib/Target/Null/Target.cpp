// The null target: a device that has every command, no limits and no memory.
// What it answers follows from shapes alone, so that its plans are the same on
// every machine. It answers otherwise than the CPU wherever it can: what else
// relied on a CPU's answer would show.

#include "Target.h"

using namespace mlir;
using namespace accel;

namespace {
class OfNull final : public Target {
public:
  std::string getText() const override { return "null"; }
  plan::Engine getEngine() const override { return plan::Engine::null; }

  FusionLimits getFusionLimits() const override {
    // Nothing compiles a kernel. But what grows without a bound is slow to
    // grow.
    constexpr size_t mostMembers = 256, mostElements = 4096;
    // Nor is anything shared, so that no number of rows is too small.
    return {mostMembers, mostElements, /*worthSharing=*/0, /*fewRows=*/0};
  }
  /// A product is a product: its epilogues are kernels that are counted.
  bool hasEpilogue(Epilogue) const override { return false; }
  int64_t chooseGrid(func::FuncOp, int64_t rows, int64_t) const override {
    return rows;
  }

  /// What accelerators ask for.
  int64_t getAlignment() const override { return 256; }
  plan::Space getExchangeSpace() const override { return plan::Space::device; }
  LogicalResult chooseForms(plan::ProgramOp) const override {
    return success();
  }
  int64_t estimateReserve(plan::ProgramOp) const override { return 0; }

  std::string getSymbol(Operation *command,
                        SymbolTableCollection &) const override {
    auto kernel = dyn_cast<plan::KernelOp>(command);
    return kernel ? kernel.getFunction().str() : std::string();
  }
  /// There is nothing to load; but what is called must be there.
  FailureOr<Code> compile(ModuleOp plans) const override {
    SymbolTableCollection symbols;
    WalkResult result = plans.walk([&](plan::KernelOp kernel) {
      if (symbols.lookupSymbolIn<func::FuncOp>(plans, kernel.getFunctionAttr()))
        return WalkResult::advance();
      kernel.emitOpError() << "expected a kernel function, found '"
                           << kernel.getFunction() << "'";
      return WalkResult::interrupt();
    });
    return result.wasInterrupted() ? FailureOr<Code>(failure())
                                   : FailureOr<Code>(Code());
  }
};

FailureOr<std::unique_ptr<Target>> create(const TargetOptions &options,
                                          TargetTable::EmitError emitError) {
  if (options.text != "null") {
    emitError() << "expected target 'null', found '" << options.text
                << "': there is one of it";
    return failure();
  }
  if (options.threads) {
    emitError() << "cannot use '--threads-per-rank' with target 'null', which "
                   "has no threads";
    return failure();
  }
  return std::unique_ptr<Target>(std::make_unique<OfNull>());
}
} // namespace

TargetTable::Row null::getTargetRow() { return {"null", "'null'", create}; }
