// The CPU target: threads of one machine, oneDNN for products, a shared library
// of generated kernels.

#include "Target.h"

#include "Device/CPU/Kernel.h"
#include "Kernels.h"
#include "PlanParts.h"
#include "llvm/ADT/TypeSwitch.h"
#include <thread>

using namespace mlir;
using namespace accel;

namespace {
class OfCpu final : public Target {
public:
  explicit OfCpu(const TargetOptions &options) : options(options) {}

  std::string getText() const override { return options.text; }
  plan::Engine getEngine() const override { return plan::Engine::cpu; }

  FusionLimits getFusionLimits() const override {
    // What LLVM takes for a function grows faster than the function: the global
    // norm of 148 gradients, fused, took it a minute.
    constexpr size_t mostMembers = 64, mostElements = 1024;
    // Fewer rows than this leave threads without work.
    constexpr int64_t fewRows = 16;
    return {mostMembers, mostElements, /*worthSharing=*/1 << 16, fewRows};
  }
  bool hasEpilogue(Epilogue) const override { return true; }
  int64_t chooseGrid(func::FuncOp kernel, int64_t rows,
                     int64_t bytes) const override {
    return cpu::chooseGrid(kernel, rows, bytes);
  }

  /// A replay is the list of what threads do. Files are another one's in every
  /// call.
  bool isCapturable(Operation *command) const override {
    return !isa<plan::ReadOp, plan::WriteOp>(command);
  }

  plan::Space getSpace(plan::Role) const override {
    return plan::Space::device;
  }
  /// A cache line.
  int64_t getAlignment(plan::Space) const override { return 64; }
  /// Ranks are processes: they see nothing of each other's but what is mapped
  /// by all.
  plan::Space getExchangeSpace() const override { return plan::Space::shared; }
  /// What is read lies where it is used: a copy would be one too many.
  std::optional<plan::Space> getFileSpace() const override { return {}; }
  /// A thread's list saves as much of each turn as of all.
  int64_t getMostCaptured() const override { return 0; }
  bool copiesBesideComputation() const override { return false; }
  /// Threads wait for peers, each stream's for its own.
  int64_t getExchangeQueues() const override { return 0; }
  LogicalResult chooseForms(plan::ProgramOp program) const override {
    FailureOr<cpu::CpuTarget> machine = parse(program);
    return failed(machine) ? failure()
                           : cpu::chooseForms(program, *machine,
                                              countThreads(program), *prepared);
  }
  /// The host's memory is the device's.
  int64_t estimateReserve(plan::ProgramOp program,
                          plan::Space space) const override {
    return space == plan::Space::device
               ? cpu::estimateReserve(program, countThreads(program))
               : 0;
  }

  std::string getSymbol(Operation *command,
                        SymbolTableCollection &symbols) const override {
    return llvm::TypeSwitch<Operation *, std::string>(command)
        .Case([&](plan::KernelOp kernel) {
          return cpu::getKernelSymbol(kernel, symbols);
        })
        .Case<plan::AttentionOp, plan::AttentionGradOp>(
            [](auto attention) { return cpu::getKernelSymbol(attention); })
        .Default([](Operation *) { return std::string(); });
  }
  FailureOr<Code> compile(ModuleOp plans) const override {
    FailureOr<cpu::CpuTarget> machine = parse(plans);
    if (failed(machine))
      return failure();
    FailureOr<std::string> library = cpu::compileKernels(plans, *machine);
    if (failed(library))
      return failure();
    cpu::addFormFeatures(plans, *machine);
    return Code{{{rt::cpu::kLibrarySection, std::move(*library)}},
                machine->features};
  }

private:
  /// What the machine is matters to forms and code alone: a plan can be looked
  /// at on any.
  FailureOr<cpu::CpuTarget> parse(Operation *op) const {
    return cpu::parseTarget(options.text, [&] { return op->emitError(); });
  }
  /// As many as asked for; otherwise what acc-run takes on this machine: its
  /// cores, shared by the ranks.
  int64_t countThreads(plan::ProgramOp program) const {
    int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    return options.threads > 0
               ? options.threads
               : std::max<int64_t>(1, cores / int64_t(program.getRanks()));
  }

  TargetOptions options;
  std::shared_ptr<cpu::PreparedForms> prepared = cpu::createPreparedForms();
};

FailureOr<std::unique_ptr<Target>> create(const TargetOptions &options,
                                          TargetTable::EmitError) {
  return std::unique_ptr<Target>(std::make_unique<OfCpu>(options));
}
} // namespace

TargetTable::Row cpu::getTargetRow() {
  return {"cpu", "'cpu' or 'cpu:NAME'", create};
}
