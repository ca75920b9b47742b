// Compiles kernels, on all cores: loops to LLVM IR, LLVM's optimiser without
// unrolling (which spills: reference figures 73 % against 117 % of hand-written
// code), objects, a shared library.

#include "Cache.h"
#include "EmitKernel.h"
#include "Library.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Threading.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace mlir;
using namespace accel;
using namespace accel::cpu;

OwningOpRef<ModuleOp> cpu::makeKernelModule(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                      func::FuncDialect, LLVM::LLVMDialect, scf::SCFDialect>();
  return ModuleOp::create(UnknownLoc::get(&context));
}

static LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

static void initializeX86() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

/// Null, and why in `problem`, where LLVM has no such target.
static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const CpuTarget &target, std::string &problem) {
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *x86 = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!x86) {
    problem = "expected an LLVM that generates code for x86-64: " + error;
    return nullptr;
  }
  return std::unique_ptr<llvm::TargetMachine>(x86->createTargetMachine(
      triple, target.level, "", llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Asks for masks where the last columns of a row do not fill a vector. A
/// causal row has any number of columns, often fewer than an unrolled loop
/// takes at once: most of them would be computed one by one.
static void maskTails(llvm::Function &function) {
  llvm::DominatorTree tree(function);
  llvm::LoopInfo loops(tree);
  for (llvm::Loop *loop : loops.getLoopsInPreorder())
    if (loop->isInnermost()) {
      llvm::addStringMetadataToLoop(loop,
                                    "llvm.loop.vectorize.predicate.enable", 1);
      llvm::addStringMetadataToLoop(loop, "llvm.loop.interleave.count", 1);
    }
}

/// What MLIR has no words for: whom code is for, and that arguments of a body
/// do not overlap (results in place are one argument).
static void annotate(llvm::Module &module, const CpuTarget &target) {
  for (llvm::Function &function : module) {
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.level);
    function.addFnAttr("tune-cpu", target.tune);
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
    function.addFnAttr("reciprocal-estimates", "none");
    if (!function.getName().ends_with(kBodySuffix))
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::NoInline);
    if (function.getName().starts_with(kSoftmaxPrefix))
      maskTails(function);
    for (llvm::Argument &argument : function.args())
      if (argument.getType()->isPointerTy()) {
        argument.addAttr(llvm::Attribute::NoAlias);
        argument.addAttr(llvm::Attribute::NonNull);
      }
  }
}

/// What a library is made of, beside the text of its code, which says for which
/// CPU it is: raise the number when `optimize`, the emission or `linkLibrary`
/// make another library of the same text.
static constexpr const char *kRecipe =
    "recipe 2, LLVM " LLVM_VERSION_STRING "\n";

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

namespace {
/// One kernel's code. What is kept of it has no name of the program's, so that
/// it is found again where another program has the same code: kernels of a
/// model hardly differ between its optimizers and layouts.
struct Code {
  Code(StringRef symbol, const KernelInstance *instance)
      : symbol(symbol), instance(instance) {}
  Code(StringRef symbol, const SoftmaxDesc &softmax)
      : symbol(symbol), softmax(softmax) {}

  std::string symbol; ///< what the program calls it
  const KernelInstance *instance = nullptr;
  std::optional<SoftmaxDesc> softmax; ///< if it is no instance

  OwningOpRef<ModuleOp> module;
  std::unique_ptr<llvm::Module> llvm;
  std::string text; ///< all that the object is made of
  std::string name; ///< of the object's function, which is that of its text
  std::string object;
};

/// Kernels that one thread compiles: so many at a time, whatever the machine
/// has, so that it is the same library everywhere. Has contexts of its own:
/// threads share nothing, and passes may load no dialects.
class Unit {
public:
  static constexpr size_t kKernels = 8;

  explicit Unit(const CpuTarget &target)
      : target(target),
        context(getRegistry(), MLIRContext::Threading::DISABLED) {}

  /// Makes the code and its text; says what is wrong with it.
  void emit();
  /// Makes the objects that are not there yet.
  void optimizeAndAssemble();

  std::string problem;

private:
  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    return registry;
  }
  bool emit(Code &code);
  bool assemble(Code &code);

  const CpuTarget &target;
  MLIRContext context;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::TargetMachine> machine;

public:
  SmallVector<Code> codes; ///< which the contexts outlive
};
} // namespace

/// What a kernel is called while it is compiled.
static constexpr llvm::StringLiteral kAnyKernel = "kernel";

bool Unit::emit(Code &code) {
  code.module = makeKernelModule(context);
  std::string own = kAnyKernel.str();
  if (code.softmax) {
    SoftmaxDesc softmax = *code.softmax;
    softmax.symbol = own = (kSoftmaxPrefix + kAnyKernel).str();
    emitSoftmax(*code.module, softmax);
  } else {
    KernelInstance instance = *code.instance;
    instance.symbol = own;
    emitKernel(*code.module, instance);
  }
  if (failed(mlir::verify(*code.module)) || failed(lowerToLLVM(*code.module))) {
    problem = "expected kernels that lower to LLVM IR";
    return false;
  }
  code.llvm = translateModuleToLLVMIR(*code.module, llvmContext, "kernels");
  if (!code.llvm) {
    problem = "expected kernels that translate to LLVM IR";
    return false;
  }
  code.llvm->setTargetTriple(machine->getTargetTriple());
  code.llvm->setDataLayout(machine->createDataLayout());
  annotate(*code.llvm, target);
  code.text = kRecipe;
  llvm::raw_string_ostream stream(code.text);
  code.llvm->print(stream, nullptr);
  code.name = "k" + Cache::hash(code.text);
  llvm::Function *function = code.llvm->getFunction(own);
  function->setName(code.name);
  // Only the program's names for it are seen from outside.
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return true;
}

void Unit::emit() {
  machine = createTargetMachine(target, problem);
  if (machine)
    (void)llvm::all_of(codes, [&](Code &code) { return emit(code); });
}

bool Unit::assemble(Code &code) {
  optimize(*code.llvm, *machine);
  SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile)) {
    problem = "expected an LLVM that writes object files for x86-64";
    return false;
  }
  emission.run(*code.llvm);
  code.object.assign(object.begin(), object.end());
  return true;
}

void Unit::optimizeAndAssemble() {
  (void)llvm::all_of(codes, [&](Code &code) {
    return !code.object.empty() || assemble(code);
  });
}

FailureOr<std::string> cpu::compileInstances(ArrayRef<KernelInstance> instances,
                                             ArrayRef<Operation *> attentions,
                                             const CpuTarget &target,
                                             Location loc) {
  for (const KernelInstance &instance : instances)
    if (failed(verifyKernel(instance.function)))
      return failure();

  std::vector<std::unique_ptr<Unit>> units;
  llvm::StringSet<> known;
  auto add = [&](Code code) {
    if (!known.insert(code.symbol).second)
      return;
    if (units.empty() || units.back()->codes.size() == Unit::kKernels)
      units.push_back(std::make_unique<Unit>(target));
    units.back()->codes.push_back(std::move(code));
  };
  for (const KernelInstance &instance : instances)
    add(Code(instance.symbol, &instance));
  for (Operation *attention : attentions) {
    SoftmaxDesc softmax = getSoftmax(attention);
    add(Code(softmax.symbol, softmax));
  }
  initializeX86();
  auto inParallel = [&](void (Unit::*step)()) -> LogicalResult {
    parallelForEach(loc.getContext(), units,
                    [&](auto &unit) { (*unit.*step)(); });
    for (auto &unit : units)
      if (!unit->problem.empty())
        return emitError(loc) << unit->problem;
    return success();
  };
  if (failed(inParallel(&Unit::emit)))
    return failure();

  std::string inputs = kRecipe;
  std::vector<std::pair<std::string, std::string>> names;
  for (auto &unit : units)
    for (const Code &code : unit->codes) {
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
  llvm::StringMap<Code *> byName;
  std::vector<Code *> missing;
  SmallVector<Code *> distinct;
  for (auto &unit : units)
    for (Code &code : unit->codes) {
      if (!byName.try_emplace(code.name, &code).second) {
        code.object = " "; // another one's
        continue;
      }
      distinct.push_back(&code);
      if (!libraries.isRefused())
        if (std::optional<std::string> object = objects.find(code.text)) {
          code.object = std::move(*object);
          continue;
        }
      missing.push_back(&code);
    }
  if (failed(inParallel(&Unit::optimizeAndAssemble)))
    return failure();
  FailureOr<std::string> library = linkLibrary(
      llvm::map_to_vector(distinct,
                          [](Code *code) { return StringRef(code->object); }),
      names, loc);
  if (failed(library))
    return failure();
  // A folder that does not take the library takes no objects either.
  if (libraries.insert(inputs, *library))
    for (Code *code : missing)
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
