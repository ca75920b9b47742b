// The null target: a device that has every command, no limits and no memory.
// What it answers follows from shapes alone, so that its plans are the same on
// every machine. It answers otherwise than the CPU wherever it can: what else
// relied on a CPU's answer would show.

#include "Target.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;

namespace {
/// What a text asks for: "null:queues=1,staged".
struct Options {
  std::string text;
  int64_t queues = 0;    ///< Target::getExchangeQueues
  bool isStaged = false; ///< Target::getFileSpace is `pinned`
};

class OfNull final : public Target {
public:
  explicit OfNull(Options options) : options(std::move(options)) {}
  std::string getText() const override { return options.text; }
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

  bool isCapturable(Operation *command) const override {
    return !isa<plan::ReadOp, plan::WriteOp>(command);
  }

  /// What accelerators ask for.
  int64_t getAlignment(plan::Space) const override { return 256; }
  plan::Space getSpace(plan::Role) const override {
    return plan::Space::device;
  }
  plan::Space getExchangeSpace() const override { return plan::Space::device; }
  std::optional<plan::Space> getFileSpace() const override {
    return options.isStaged ? std::optional(plan::Space::pinned) : std::nullopt;
  }
  /// As accelerators have it: graphs of more nodes take long to make.
  int64_t getMostCaptured() const override { return 1 << 14; }
  bool copiesBesideComputation() const override { return true; }
  int64_t getExchangeQueues() const override { return options.queues; }
  LogicalResult chooseForms(plan::ProgramOp) const override {
    return success();
  }
  int64_t estimateReserve(plan::ProgramOp, plan::Space) const override {
    return 0;
  }

  std::string getSymbol(Operation *command,
                        SymbolTableCollection &) const override {
    auto kernel = dyn_cast<plan::KernelOp>(command);
    return kernel ? kernel.getFunction().str() : std::string();
  }
  /// There is nothing to load; but what is called must be there.
  FailureOr<Code> compile(ModuleOp plans) const override {
    SymbolTableCollection symbols;
    WalkResult result = plans.walk([&](plan::KernelOp kernel) {
      auto body = kernel->getParentOfType<plan::BodyOp>();
      if (body && body.getEngine() != getEngine())
        return WalkResult::advance();
      if (symbols.lookupSymbolIn<func::FuncOp>(plans, kernel.getFunctionAttr()))
        return WalkResult::advance();
      kernel.emitOpError() << "expected a kernel function, found '"
                           << kernel.getFunction() << "'";
      return WalkResult::interrupt();
    });
    return result.wasInterrupted() ? FailureOr<Code>(failure())
                                   : FailureOr<Code>(Code());
  }

private:
  Options options;
};

FailureOr<std::unique_ptr<Target>> create(const TargetOptions &options,
                                          TargetTable::EmitError emitError) {
  Options read{options.text};
  auto [name, list] = StringRef(options.text).split(':');
  bool isKnown = !StringRef(options.text).ends_with(":");
  for (StringRef each : llvm::split(list, ',')) {
    if (each == "staged")
      read.isStaged = true;
    else if (each.consume_front("queues="))
      isKnown &= !each.getAsInteger(10, read.queues) && read.queues > 0;
    else
      isKnown &= list.empty();
  }
  if (!isKnown) {
    emitError() << "expected target 'null', or 'null:' with queues=N, staged "
                   "or both, found '"
                << options.text << "'";
    return failure();
  }
  if (options.threads) {
    emitError() << "cannot use '--threads-per-rank' with target 'null', which "
                   "has no threads";
    return failure();
  }
  return std::unique_ptr<Target>(std::make_unique<OfNull>(std::move(read)));
}
} // namespace

TargetTable::Row null::getTargetRow() {
  return {"null", "'null' or 'null:queues=N'", create};
}
