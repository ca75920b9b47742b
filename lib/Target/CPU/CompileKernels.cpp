// Compiles kernels, on all cores, and links them into a shared library: those
// that the cache does not have.

#include "Cache.h"
#include "CompileUnit.h"
#include "Library.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;

using Units = std::vector<std::unique_ptr<CompileUnit>>;

static void initializeX86() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

/// Each symbol once, in the order in which the program names them.
static Units divide(ArrayRef<KernelInstance> instances,
                    ArrayRef<Operation *> attentions, const CpuTarget &target) {
  Units units;
  llvm::StringSet<> known;
  auto add = [&](KernelCode code) {
    if (!known.insert(code.symbol).second)
      return;
    if (units.empty() || units.back()->codes.size() == CompileUnit::kKernels)
      units.push_back(std::make_unique<CompileUnit>(target));
    units.back()->codes.push_back(std::move(code));
  };
  for (const KernelInstance &instance : instances)
    add(KernelCode(instance.symbol, &instance));
  for (Operation *attention : attentions) {
    SoftmaxDesc softmax = getSoftmax(attention);
    add(KernelCode(softmax.symbol, softmax));
  }
  if (units.empty())
    add(KernelCode());
  return units;
}

/// Runs a step of every unit, on all cores.
static LogicalResult runAll(Units &units, void (CompileUnit::*step)(),
                            Location loc) {
  parallelForEach(loc.getContext(), units,
                  [&](auto &unit) { (*unit.*step)(); });
  for (auto &unit : units)
    if (!unit->problem.empty())
      return emitError(loc) << unit->problem;
  return success();
}

/// Those that are not the same code as an earlier one: with their objects, or
/// missing.
static SmallVector<KernelCode *> findObjects(Units &units, Cache &cache,
                                             bool mayRead) {
  SmallVector<KernelCode *> distinct;
  llvm::StringSet<> known;
  for (auto &unit : units)
    for (KernelCode &code : unit->codes) {
      if (!known.insert(code.name).second)
        continue;
      distinct.push_back(&code);
      std::optional<std::string> object =
          mayRead ? cache.find(code.text) : std::nullopt;
      code.isMissing = !object;
      if (object)
        code.object = std::move(*object);
    }
  return distinct;
}

FailureOr<std::string> cpu::compileInstances(ArrayRef<KernelInstance> instances,
                                             ArrayRef<Operation *> attentions,
                                             const CpuTarget &target,
                                             Location loc) {
  for (const KernelInstance &instance : instances)
    if (failed(verifyKernel(instance.function)))
      return failure();
  initializeX86();
  Units units = divide(instances, attentions, target);
  if (failed(runAll(units, &CompileUnit::emit, loc)))
    return failure();

  // The library is made of the objects and of what the program calls them.
  std::vector<std::pair<std::string, std::string>> names;
  std::string inputs;
  for (auto &unit : units)
    for (const KernelCode &code : unit->codes) {
      if (!code.symbol.empty())
        names.emplace_back(code.symbol, code.name);
      inputs += code.symbol + "=" + code.name + "\n";
    }
  auto warn = [loc](const llvm::Twine &message) {
    emitWarning(loc) << message;
  };
  Cache libraries(getCacheFolder(), "kernels", "kernels", warn);
  if (std::optional<std::string> library = libraries.find(inputs))
    return *library;

  Cache objects(getCacheFolder(), "kernel", "kernels", warn);
  SmallVector<KernelCode *> distinct =
      findObjects(units, objects, /*mayRead=*/!libraries.isRefused());
  if (failed(runAll(units, &CompileUnit::optimizeAndAssemble, loc)))
    return failure();
  FailureOr<std::string> library = linkLibrary(
      llvm::map_to_vector(
          distinct, [](KernelCode *code) { return StringRef(code->object); }),
      names, loc);
  // A folder that does not take the library takes no objects either.
  if (succeeded(library) && libraries.insert(inputs, *library))
    for (KernelCode *code : distinct)
      if (code->isMissing)
        objects.insert(code->text, code->object);
  return library;
}

bool cpu::isOfCpu(Operation *command) {
  auto body = command->getParentOfType<plan::BodyOp>();
  return body && body.getEngine() == plan::Engine::cpu;
}

FailureOr<std::string> cpu::compileKernels(ModuleOp plan,
                                           const CpuTarget &target) {
  SmallVector<KernelInstance> instances;
  SmallVector<Operation *> attentions;
  SymbolTableCollection symbols;
  WalkResult result = plan.walk([&](Operation *op) {
    if (!isOfCpu(op))
      return WalkResult::advance();
    if (auto kernel = dyn_cast<plan::KernelOp>(op)) {
      if (failed(parseForm(kernel)))
        return WalkResult::interrupt();
      instances.push_back(getInstance(kernel, symbols));
      if (!instances.back().function) {
        kernel.emitOpError() << "expected a kernel function, found '"
                             << kernel.getFunction() << "'";
        return WalkResult::interrupt();
      }
    } else if (isa<plan::AttentionOp, plan::AttentionGradOp>(op)) {
      attentions.push_back(op);
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return compileInstances(instances, attentions, target, plan.getLoc());
}
