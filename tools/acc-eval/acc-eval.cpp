// acc-eval: runs the text of a program of any phase by the reference evaluator,
// and compares its outputs with files or with those of another program.

#include "accel-rt/Version.h"
#include "lib/Driver/InitAll.h"
#include "lib/Driver/OpenText.h"
#include "lib/Driver/OutputFile.h"
#include "lib/Driver/RepeatedFlags.h"
#include "lib/Evaluate/TensorFiles.h"
#include "mlir/IR/AsmState.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <sys/resource.h>
#include <typeinfo>
#include <unistd.h>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("acc-eval options");
cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                               cl::desc("<model.mlir>"), cl::cat(category));
cl::opt<std::string> inputs("inputs", cl::value_desc("folder"),
                            cl::desc("Inputs: <name>.npy or input_K.pb"),
                            cl::cat(category));
cl::opt<std::string> outputs("outputs", cl::value_desc("folder"),
                             cl::desc("Where to write <name>.npy"),
                             cl::cat(category));
cl::opt<std::string> expect("expect", cl::value_desc("folder"),
                            cl::desc("Outputs to compare with: <name>.npy or "
                                     "output_K.pb"),
                            cl::cat(category));
cl::opt<std::string> compare("compare", cl::value_desc("other.mlir"),
                             cl::desc("Program whose outputs to compare with"),
                             cl::cat(category));
cl::opt<double> tolerance("tolerance", cl::init(1e-4),
                          cl::desc("Largest |difference| / (1 + |reference|)"),
                          cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::init(1),
                       cl::desc("Of the random inputs without --inputs"),
                       cl::cat(category));
cl::opt<unsigned> steps("steps", cl::init(1),
                        cl::desc("Steps of training, on the same inputs; "
                                 "prints the scalars of each if given"),
                        cl::cat(category));
cl::opt<unsigned> interleavings("interleavings", cl::init(3),
                                cl::desc("Orders of a plan's streams to try"),
                                cl::cat(category));
cl::opt<EvaluationMode>
    mode(cl::desc("How floats are held:"), cl::init(EvaluationMode::Float64),
         cl::values(clEnumValN(EvaluationMode::Float64, "f64",
                               "in double, without rounding (default)"),
                    clEnumValN(EvaluationMode::OwnTypes, "own-types",
                               "rounded to their type after each op")),
         cl::cat(category));
cl::opt<nn::EntryKind> entry(
    "entry", cl::desc("What is run: of several, the step unless given"),
    cl::values(clEnumValN(nn::EntryKind::step, "step", "a step of training"),
               clEnumValN(nn::EntryKind::eval, "eval", "the loss alone"),
               clEnumValN(nn::EntryKind::forward, "forward",
                          "the model's outputs")),
    cl::cat(category));
cl::opt<bool> json("json", cl::desc("Print one JSON object"),
                   cl::cat(category));

/// Compares every tensor of `expected`; prints each, fails above the tolerance.
LogicalResult report(ModuleOp module, const TensorsByName &found,
                     const TensorsByName &expected) {
  SmallVector<StringRef> names = llvm::to_vector(expected.keys());
  llvm::sort(names);
  double largest = 0;
  llvm::json::Array rows;
  for (StringRef name : names) {
    auto it = found.find(name);
    const Tensor &wanted = expected.find(name)->second;
    if (it == found.end() || it->second.getShape() != wanted.getShape())
      return module.emitError() << "expected an output '" << name
                                << "' of type " << wanted.getType();
    double difference = getMaxDifference(it->second, wanted);
    largest = std::max(largest, difference);
    // JSON knows no infinity.
    rows.push_back(llvm::json::Object{
        {"name", name}, {"max_difference", std::min(difference, 1e300)}});
    if (!json)
      llvm::outs() << name << ": " << llvm::format("%.3g", difference) << "\n";
  }
  bool within = largest <= tolerance;
  if (json)
    llvm::outs() << llvm::json::Value(llvm::json::Object{
                        {"outputs", std::move(rows)},
                        {"max_difference", std::min(largest, 1e300)},
                        {"tolerance", tolerance.getValue()},
                        {"within", within}})
                 << "\n";
  else
    llvm::outs() << "max difference: " << llvm::format("%.3g", largest) << "\n";
  if (within)
    return success();
  return module.emitError() << "expected differences of at most "
                            << tolerance.getValue() << ", found " << largest;
}

/// One line of a step's scalar outputs, as JSON.
void printStep(unsigned step, const TensorsByName &results) {
  llvm::json::Object line{{"step", step}};
  for (const auto &[name, tensor] : results)
    if (tensor.getShape().empty() && !name.starts_with("@"))
      line[name] = tensor.asDouble(0);
  llvm::outs() << llvm::json::Value(std::move(line)) << "\n";
}

/// Each output of a run that nothing else is done with: its number, or its
/// type.
void printOutputs(const TensorsByName &results) {
  SmallVector<StringRef> names = llvm::to_vector(results.keys());
  llvm::sort(names);
  llvm::json::Object line;
  for (StringRef name : names) {
    const Tensor &tensor = results.find(name)->second;
    bool isNumber = tensor.getShape().empty();
    std::string type = llvm::formatv("{0}", Type(tensor.getType()));
    if (json)
      line[name] = isNumber ? llvm::json::Value(tensor.asDouble(0)) : type;
    else if (isNumber)
      llvm::outs() << name << ": " << llvm::format("%.9g", tensor.asDouble(0))
                   << "\n";
    else
      llvm::outs() << name << ": " << type << "\n";
  }
  if (json)
    llvm::outs() << llvm::json::Value(std::move(line)) << "\n";
}

/// Runs the program `steps` times, each from the states that the last one left.
LogicalResult evaluateSteps(ModuleOp module, TensorsByName inputs,
                            const InterpreterOptions &options,
                            TensorsByName &results) {
  for (unsigned step = 1; step <= steps; ++step) {
    results.clear();
    if (failed(evaluateModule(module, inputs, options, results)))
      return failure();
    if (steps.getNumOccurrences())
      printStep(step, results);
    for (const auto &[name, tensor] : results)
      if (name.starts_with("@"))
        inputs[name] = tensor;
  }
  return success();
}

LogicalResult run(MLIRContext *context) {
  OwningOpRef<ModuleOp> module = driver::parseModule(inputFile, context);
  if (!module)
    return failure();
  EntryKind kind;
  if (entry.getNumOccurrences())
    kind = entry;
  FailureOr<TensorsByName> given = inputs.empty()
                                       ? makeRandomInputs(*module, seed, kind)
                                       : readInputs(inputs, *module, kind);
  TensorsByName results;
  InterpreterOptions options{mode, interleavings, kind};
  if (failed(given) || failed(evaluateSteps(*module, *given, options, results)))
    return failure();
  if (!outputs.empty()) {
    if (std::error_code error = llvm::sys::fs::create_directories(outputs))
      return module->emitError()
             << "cannot create '" << outputs << "': " << error.message();
    // Before any is written: what is read later must not be what was written.
    for (const auto &[name, tensor] : results) {
      std::string path = getTensorPath(outputs, name), why;
      std::vector<std::string> read = {inputFile, compare};
      for (const std::string &folder : {inputs.getValue(), expect.getValue()})
        if (!folder.empty())
          read.push_back(getTensorPath(folder, name));
      why = driver::whyNotWrite(path, /*replaces=*/false, read);
      if (!why.empty())
        return module->emitError() << "cannot write '" << path << "': " << why;
    }
    for (const auto &[name, tensor] : results)
      if (failed(writeNpy(getTensorPath(outputs, name), tensor,
                          mode == EvaluationMode::Float64, context)))
        return failure();
  }
  if (!expect.empty()) {
    FailureOr<Signature> signature = getSignature(*module, kind);
    FailureOr<TensorsByName> wanted =
        readTensors(expect, signature->outputs, "output", context);
    if (failed(wanted))
      return failure();
    if (wanted->empty())
      return module->emitError() << "expected outputs in '" << expect
                                 << "', found none of the program's";
    if (failed(report(*module, results, *wanted)))
      return failure();
  }
  if (outputs.empty() && expect.empty() && compare.empty() &&
      !steps.getNumOccurrences())
    printOutputs(results);
  if (compare.empty())
    return success();
  OwningOpRef<ModuleOp> other = driver::parseModule(compare, context);
  TensorsByName reference;
  if (!other || failed(evaluateSteps(*other, *given, options, reference)))
    return failure();
  sumTerms(*module, results);
  sumTerms(*other, reference);
  if (results.size() != reference.size())
    return other->emitError() << "expected " << results.size()
                              << " outputs, found " << reference.size();
  return report(*module, results, reference);
}
} // namespace

/// Allocates nothing.
[[noreturn]] static void endWithoutMemory() {
  static constexpr char message[] =
      "acc-eval: error: cannot allocate memory: expected a program whose "
      "tensors, of all ranks, fit into this machine's, as float64\n";
  ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);
  _exit(written < 0 ? 2 : EXIT_FAILURE);
}

/// A text may say tensors of any size. More than the machine has ends as an
/// error, before the kernel ends processes.
static void guardMemory() {
#if !__has_feature(address_sanitizer) // which maps more than there is
  rlimit limit{};
  long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && bytes > 0 && getrlimit(RLIMIT_AS, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, rlim_t(pages) * bytes);
    (void)setrlimit(RLIMIT_AS, &limit);
  }
#endif
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endWithoutMemory(); });
  std::set_terminate([] {
    // Of more elements than a vector can count.
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (type && (std::strcmp(type->name(), "St12length_error") == 0 ||
                 std::strcmp(type->name(), "St9bad_alloc") == 0))
      endWithoutMemory();
    abort();
  });
}

int main(int argc, char **argv) {
  guardMemory();
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << accel::rt::versionText("acc-eval")
       << "compiled with: LLVM and MLIR " LLVM_VERSION_STRING "\n";
  });
  cl::HideUnrelatedOptions(category); // LLVM's own
  cl::ParseCommandLineOptions(
      argc, argv, "acc-eval: runs a program of any phase by its meaning\n");
  if (llvm::Error error = driver::checkRepeatedFlags({argv, size_t(argc)})) {
    llvm::logAllUnhandledErrors(std::move(error), llvm::errs(),
                                "acc-eval: error: ");
    return EXIT_FAILURE;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  // Commands of a plan mean ops of nn, which its text may not have.
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  return failed(run(&context));
}
