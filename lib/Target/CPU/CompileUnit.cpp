// Loops to LLVM IR, LLVM's optimiser without unrolling (which spills: reference
// figures 73 % against 117 % of hand-written code), objects.

#include "CompileUnit.h"
#include "Cache.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
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

/// What an object, or a library of them, is made of, beside the text of its
/// code, which says for which CPU it is: raise the number when `optimize`, the
/// emission or `linkLibrary` make another library of the same text.
static constexpr const char *kRecipe =
    "recipe 2, LLVM " LLVM_VERSION_STRING "\n";

static DialectRegistry getRegistry() {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  return registry;
}

CompileUnit::CompileUnit(const CpuTarget &target)
    : target(target), context(getRegistry(), MLIRContext::Threading::DISABLED) {
}

/// What a kernel is called while it is compiled.
static constexpr llvm::StringLiteral kAnyKernel = "kernel";

bool CompileUnit::emit(KernelCode &code) {
  code.module = makeKernelModule(context);
  std::string own = kAnyKernel.str();
  if (code.softmax) {
    SoftmaxDesc softmax = *code.softmax;
    softmax.symbol = own = (kSoftmaxPrefix + kAnyKernel).str();
    emitSoftmax(*code.module, softmax);
  } else if (code.instance) {
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
  if (llvm::Function *function = code.llvm->getFunction(own)) {
    function->setName(code.name);
    // Only the program's names for it are seen from outside.
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
  return true;
}

void CompileUnit::emit() {
  machine = createTargetMachine(target, problem);
  if (machine)
    (void)llvm::all_of(codes, [&](KernelCode &code) { return emit(code); });
}

bool CompileUnit::assemble(KernelCode &code) {
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

void CompileUnit::optimizeAndAssemble() {
  (void)llvm::all_of(codes, [&](KernelCode &code) {
    return !code.isMissing || assemble(code);
  });
}
