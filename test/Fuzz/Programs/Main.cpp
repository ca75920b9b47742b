// accel-fuzz-programs: random training steps, each in random layouts, held
// against one rank. docs/Fuzzing.md says how to read what it prints.

#include "OnnxForm.h"
#include "Shrink.h"
#include "Trial.h"
#include "dialects/Interfaces/Differentiable.h"
#include "dialects/NN/NN.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

#include <chrono>
#include <set>

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("accel-fuzz-programs options");
cl::opt<uint64_t> seed("seed", cl::init(1), cl::desc("Of programs and layouts"),
                       cl::cat(category));
cl::opt<uint64_t> first("first", cl::init(0),
                        cl::desc("The first program's number"),
                        cl::cat(category));
cl::opt<uint64_t> programs("programs", cl::init(100), cl::desc("How many"),
                           cl::cat(category));
cl::opt<unsigned> layouts("layouts", cl::init(3), cl::desc("Of each program"),
                          cl::cat(category));
cl::opt<unsigned> jobs("jobs", cl::init(1), cl::desc("Processes at once"),
                       cl::cat(category));
cl::opt<unsigned> timeout("timeout", cl::init(60),
                          cl::desc("Seconds for a program in a layout"),
                          cl::cat(category));
cl::opt<unsigned> gradientsEvery(
    "gradients-every", cl::init(10),
    cl::desc("Hold each so many programs' gradients against finite "
             "differences; 0: none"),
    cl::cat(category));
cl::opt<bool> shrinks("shrink",
                      cl::desc("Make the first failure of each kind "
                               "small"),
                      cl::cat(category));
cl::opt<unsigned> attempts("attempts", cl::init(1000),
                           cl::desc("How many smaller programs are tried"),
                           cl::cat(category));
cl::opt<unsigned> examples("examples", cl::init(1),
                           cl::desc("Failures of each kind that are made "
                                    "small; of those that come to the same "
                                    "ops and axes one is kept"),
                           cl::cat(category));
cl::opt<std::string> findings("findings", cl::value_desc("folder"),
                              cl::desc("Where to write a file per kind of "
                                       "failure"),
                              cl::cat(category));
cl::opt<std::string> check("check", cl::value_desc("file.mlir"),
                           cl::desc("Try this program, as --findings wrote "
                                    "it, and nothing else"),
                           cl::cat(category));
cl::opt<std::string> onnxFile("write-onnx", cl::value_desc("file.onnx"),
                              cl::desc("Beside --check: write the program as "
                                       "the model that it is tried as"),
                              cl::cat(category));
cl::opt<bool> coverage("coverage",
                       cl::desc("Count in how many programs each op that has a "
                                "gradient stands, and try none"),
                       cl::cat(category));
cl::opt<int64_t> printed("print", cl::init(-1), cl::value_desc("number"),
                         cl::desc("Print this program and its layouts"),
                         cl::cat(category));
cl::opt<unsigned> mutants("mutants", cl::init(0),
                          cl::desc("Make so many wrong programs of each rank's "
                                   "program, and of each plan: the proofs must "
                                   "refuse them"),
                          cl::cat(category));
cl::opt<Sabotage> sabotage(
    "sabotage", cl::init(Sabotage::none),
    cl::desc("For tests of this instrument, what is put out of order:"),
    cl::values(clEnumValN(Sabotage::none, "none", "nothing (default)"),
               clEnumValN(Sabotage::program, "program",
                          "each rank's program, behind the proof"),
               clEnumValN(Sabotage::acceptance, "acceptance",
                          "the proofs accept all mutants"),
               clEnumValN(Sabotage::refusal, "refusal",
                          "the first proof refuses all programs")),
    cl::cat(category));
cl::opt<std::string> known("known", cl::value_desc("file"),
                           cl::desc("Failures that are known: a line each, "
                                    "PATTERN | why; nothing that is wrong or "
                                    "crashes can be"),
                           cl::cat(category));
cl::opt<std::string> json("json", cl::value_desc("file"),
                          cl::desc("Write the summary as JSON"),
                          cl::cat(category));

/// Failures of one kind.
struct Kind {
  unsigned count = 0, right = 0;
  Result example;
};

TrialOptions getOptions() {
  TrialOptions options;
  options.seed = seed;
  options.first = first;
  options.programs = programs;
  options.layouts = layouts;
  options.jobs = std::max(1u, jobs.getValue());
  options.timeout = timeout;
  options.gradientsEvery = gradientsEvery;
  options.check = {mutants, sabotage};
  return options;
}

/// The patterns of `--known`.
std::vector<llvm::Regex> readKnown() {
  std::vector<llvm::Regex> patterns;
  if (known.empty())
    return patterns;
  auto buffer = llvm::MemoryBuffer::getFile(known);
  if (!buffer)
    llvm::report_fatal_error(llvm::Twine("cannot read '") + known + "'");
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    if (!line.starts_with("#"))
      patterns.emplace_back(line.rsplit(" | ").first);
  return patterns;
}

std::string slugOf(StringRef kind) {
  std::string slug;
  for (char c : kind) {
    if (isalnum(c))
      slug += char(tolower(c));
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
    if (slug.size() >= 70)
      break;
  }
  return StringRef(slug).rtrim('-').str();
}

std::string describe(const Result &result) {
  std::string text =
      llvm::formatv("seed {0} program {1} layout {2}\n{3}: {4}: {5}\n",
                    seed.getValue(), result.program, result.layout,
                    result.verdict, result.outcome.where, result.outcome.what)
          .str();
  if (result.verdict == "refused")
    text += result.outcome.isRight ? "what was refused is right\n" : "";
  return text;
}

/// What small programs of one fault have in common: their ops, and the axes.
std::string getSignature(const Program &program, const Layout &layout) {
  std::set<std::string> words;
  program.module.get()->walk(
      [&](Operation *op) { words.insert(op->getName().getStringRef().str()); });
  for (const Layout::Axis &axis : layout.axes)
    words.insert(axis.name);
  return llvm::join(words, " ");
}

/// The text of a failing program, made small if that is asked for, and its
/// signature.
std::pair<std::string, std::string> reproduce(const Result &result) {
  auto context = makeContext();
  TrialOptions options = getOptions();
  Program program = makeProgram(context.get(), seed, result.program);
  Layout layout;
  if (result.layout >= 0)
    layout = makeLayouts(program, seed, result.program, layouts)[result.layout];
  std::string kind = result.getKind(), comment = describe(result);
  // Inputs' seed is the program's number, and tryOne's programs are number 0.
  options.seed = seed + result.program;
  if (shrinks) {
    Result last = result;
    shrink(program, layout, attempts,
           [&](const Program &smaller, const Layout &simpler) {
             Result now = tryOne(smaller, simpler, result.layout, options);
             bool fails = now.getKind() == kind;
             if (fails)
               last = now;
             return fails;
           });
    comment = describe(result) + "made small: " + last.outcome.what + "\n";
  }
  comment += llvm::formatv("accel-fuzz-programs --seed {0} --check FILE\n",
                           options.seed)
                 .str();
  return {print(program, layout, comment), getSignature(program, layout)};
}

void writeFinding(const Result &result, unsigned &number,
                  std::set<std::string> &signatures) {
  auto [text, signature] = reproduce(result);
  if (!signatures.insert(result.getKind() + signature).second)
    return;
  ++number;
  if (findings.empty()) {
    llvm::outs() << text << "\n";
    return;
  }
  llvm::sys::fs::create_directories(findings);
  SmallString<128> path(findings);
  llvm::sys::path::append(
      path, llvm::formatv("{0,0+3}-{1}.txt", number, slugOf(result.getKind())));
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  file << text;
}

int checkFile() {
  auto buffer = llvm::MemoryBuffer::getFile(check);
  if (!buffer) {
    llvm::errs() << "cannot read '" << check
                 << "': " << buffer.getError().message() << "\n";
    return 1;
  }
  auto context = makeContext();
  Layout layout;
  Program program = parse((*buffer)->getBuffer(), layout, context.get());
  if (!program.module)
    return 1;
  if (!onnxFile.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream file(onnxFile, error);
    file << writeOnnx(*program.module);
  }
  bool failed = false;
  for (int what : {0, -2}) {
    Result result = tryOne(program, layout, what, getOptions());
    failed |= result.isFailure();
    llvm::outs() << (what ? "gradients: " : "layout: ") << result.verdict << " "
                 << result.outcome.where << " " << result.outcome.what
                 << (result.verdict == "refused" && result.outcome.isRight
                         ? " (what was refused is right)"
                         : "")
                 << "\n";
  }
  return failed;
}

/// Fails unless every op that has a gradient, and stands in forward programs,
/// is in some program.
int countOps() {
  auto context = makeContext();
  std::map<std::string, unsigned> counts;
  for (RegisteredOperationName name : context->getRegisteredOperations())
    // A cut is what pipelines put in.
    if (name.getDialectNamespace() == nn::NNDialect::getDialectNamespace() &&
        name.hasInterface<DifferentiableOpInterface>() &&
        name.getStringRef() != nn::CutOp::getOperationName())
      counts[name.getStringRef().str()];
  for (uint64_t number = first; number < first + programs; ++number) {
    Program program = makeProgram(context.get(), seed, number);
    std::set<std::string> ops;
    program.module.get()->walk(
        [&](Operation *op) { ops.insert(op->getName().getStringRef().str()); });
    for (const std::string &op : ops)
      if (auto it = counts.find(op); it != counts.end())
        ++it->second;
    counts["written as ONNX"] += program.viaOnnx;
  }
  unsigned missing = 0;
  for (auto &[name, count] : counts) {
    llvm::outs() << llvm::formatv("{0,6} {1}\n", count, name);
    missing += count == 0;
  }
  return missing != 0;
}

void printProgram() {
  auto context = makeContext();
  Program program = makeProgram(context.get(), seed, printed);
  for (const Layout &layout : makeLayouts(program, seed, printed, layouts))
    llvm::outs() << "// layout: " << layout.getFlags() << "\n";
  llvm::outs() << print(program, Layout());
}
} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "accel-fuzz-programs: random training steps in random "
      "layouts, held against one rank\n");
  if (!check.empty())
    return checkFile();
  if (coverage)
    return countOps();
  if (printed >= 0) {
    printProgram();
    return 0;
  }
  std::vector<llvm::Regex> patterns = readKnown();
  auto isKnown = [&](const Result &result) {
    return result.verdict == "refused" &&
           llvm::any_of(patterns, [&](llvm::Regex &pattern) {
             return pattern.match(result.getKind());
           });
  };
  unsigned numKnown = 0, numMutants = 0;
  std::map<std::string, unsigned> verdicts, reasons;
  std::map<std::string, Kind> kinds;
  std::vector<Result> failures; ///< to be written down
  unsigned tried = 0, numFailures = 0, rightButRefused = 0, numFindings = 0;
  double longest = 0;
  Result slowest;
  auto start = std::chrono::steady_clock::now();
  runTrial(getOptions(), [&](const Result &result) {
    if (result.layout >= 0)
      ++tried;
    if (result.layout >= 0 || result.isFailure())
      ++verdicts[result.verdict];
    if (result.verdict == "reason" && result.layout >= 0)
      ++reasons[result.outcome.reason];
    if (result.seconds > longest) {
      longest = result.seconds;
      slowest = result;
    }
    numMutants += result.outcome.mutants;
    if (!result.isFailure())
      return;
    numKnown += isKnown(result);
    numFailures += !isKnown(result);
    rightButRefused += result.outcome.isRight;
    Kind &kind = kinds[result.getKind()];
    kind.right += result.outcome.isRight;
    if (kind.count++ == 0)
      kind.example = result;
    if ((!findings.empty() || shrinks) && kind.count <= examples)
      failures.push_back(result);
  });
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  std::set<std::string> signatures;
  for (const Result &failure : failures)
    if (failure.outcome.where != "generation") // there is no program
      writeFinding(failure, numFindings, signatures);
  llvm::outs() << llvm::formatv(
      "seed {0}: {1} programs from {2} on, {3} layouts tried, {4:f1} s "
      "({5:f1} ms each), the longest {6:f2} s (program {7})\n\n",
      seed.getValue(), programs.getValue(), first.getValue(), tried, seconds,
      1e3 * seconds / std::max(1u, tried), longest, slowest.program);
  llvm::outs() << "| verdict | |\n|---|---|\n";
  for (auto &[name, count] : verdicts)
    llvm::outs() << "| " << name << " | " << count << " |\n";
  llvm::outs() << "| refused though right | " << rightButRefused << " |\n"
               << "| refused, and known | " << numKnown << " |\n";
  if (mutants)
    llvm::outs() << "| mutants that compute something else | " << numMutants
                 << " |\n";
  llvm::outs() << "\n";
  llvm::outs() << "| reason | |\n|---|---|\n";
  for (auto &[name, count] : reasons)
    llvm::outs() << "| " << name << " | " << count << " |\n";
  llvm::outs() << "\n| failure | | right | the first |\n|---|---|---|---|\n";
  std::vector<std::pair<std::string, Kind>> sorted(kinds.begin(), kinds.end());
  llvm::sort(sorted,
             [](auto &a, auto &b) { return a.second.count > b.second.count; });
  llvm::json::Array rows;
  for (auto &[name, kind] : sorted) {
    llvm::outs() << llvm::formatv("| {0} | {1} | {2} | program {3}: `{4}` |\n",
                                  name, kind.count, kind.right,
                                  kind.example.program, kind.example.flags);
    rows.push_back(
        llvm::json::Object{{"kind", llvm::json::fixUTF8(name)},
                           {"count", kind.count},
                           {"right", kind.right},
                           {"program", int64_t(kind.example.program)},
                           {"layout", kind.example.layout},
                           {"flags", kind.example.flags}});
  }
  if (!json.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream file(json, error);
    llvm::json::Object counts, byReason;
    for (auto &[name, count] : verdicts)
      counts[name] = count;
    for (auto &[name, count] : reasons)
      byReason[name] = count;
    file << llvm::json::Value(
                llvm::json::Object{{"seed", int64_t(seed)},
                                   {"programs", int64_t(programs)},
                                   {"first", int64_t(first)},
                                   {"tried", tried},
                                   {"seconds", seconds},
                                   {"verdicts", std::move(counts)},
                                   {"refused_though_right", rightButRefused},
                                   {"known", numKnown},
                                   {"mutants", numMutants},
                                   {"reasons", std::move(byReason)},
                                   {"failures", std::move(rows)}})
         << "\n";
  }
  return numFailures == 0 ? 0 : 1;
}
