// Tells files apart by their first bytes.

#include "InputFile.h"

#include "lib/Driver/OutputFile.h"

#include "accel-rt/PlanFormat.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace accel;
using namespace accel::driver;

/// Enough for the start of any format's header.
static constexpr uint64_t kHeadBytes = 4096;

static LogicalResult fail(StringRef path, const Twine &message) {
  llvm::errs() << path << ": error: " << message << "\n";
  return failure();
}

std::string readHead(StringRef path) {
  if (path == "-")
    return ""; // reading it would take it from whoever parses it
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return "";
  }
  std::string head(kHeadBytes, '\0');
  auto got = llvm::sys::fs::readNativeFileSlice(
      *file, MutableArrayRef(head.data(), head.size()), 0);
  llvm::sys::fs::closeFile(*file);
  if (!got)
    llvm::consumeError(got.takeError());
  head.resize(got ? *got : 0);
  return head;
}

/// The JSON header of a file of safetensors' shape: a length, then a brace.
static StringRef jsonHeader(StringRef head) {
  return head.size() > 9 && head[8] == '{' && head[7] == 0 ? head.substr(8)
                                                           : "";
}

bool isExecutable(StringRef head) {
  return jsonHeader(head).contains("\"format\":\"accx\"");
}

LogicalResult checkText(StringRef path, StringRef head) {
  if (llvm::sys::fs::is_directory(path)) {
    SmallString<128> model(path);
    llvm::sys::path::append(model, "model.onnx");
    return fail(path,
                llvm::sys::fs::exists(model)
                    ? "expected a model or IR, found a folder: its model "
                      "is '" +
                          model + "'"
                    : "expected a model or IR, found a folder: acc-export "
                      "writes a model of a PyTorch module, or of what "
                      "transformers saved (docs/Exporting.md)");
  }
  if (head.starts_with("ML\xefR") || !head.contains('\0'))
    return success();
  if (!jsonHeader(head).empty())
    return fail(path, "expected an .onnx model or IR as text, found what seems "
                      "to be a safetensors file: weights are read through the "
                      "model that names them");
  return fail(path, "expected an .onnx model or IR as text, found a binary "
                    "file: a model is read as one if its name ends in .onnx");
}

/// Reads the text of the first of these phases that is there, or says that none
/// is.
static LogicalResult readPhase(StringRef path, ArrayRef<std::string> phases,
                               std::string &text) {
  std::unique_ptr<rt::ExecutableFile> file;
  if (rt::Status status = rt::ExecutableFile::open(path.str(), file);
      !status.ok())
    return fail(path, status.message());
  const rt::Section *section = nullptr;
  for (const std::string &phase : phases)
    if (!section)
      section = file->find("ir:" + phase);
  if (!section)
    return fail(path, "has no text of phase '" + phases.front() +
                          "': it was compiled from that of a later one");
  text.assign(section->bytes, '\0');
  rt::Status status = file->read(*section, text.data());
  return status.ok() ? success() : fail(path, status.message());
}

LogicalResult printPhase(const CompileOptions &options, bool namesPhase) {
  StringRef path = options.input;
  if (!options.explain.empty())
    return fail(path, "expected the model for --explain=" + options.explain +
                          ", found an executable made of it");
  std::string text, error;
  if (options.report == "parameters") {
    if (!options.given.empty())
      return fail(path, "cannot use '" + options.given.front().first +
                            "' with an executable: it is compiled");
    return failed(readPhase(path, {"train", "dist", "decided", "local", "plan"},
                            text))
               ? failure()
               : reportUpdates(options, text);
  }
  if (!options.report.empty())
    return fail(path,
                "expected a model or IR, found an executable: a report is "
                "of the text in it, acc-opt " +
                    path + " --compile-to=" +
                    (isOfLocal(options.report) ? "local" : "plan") +
                    " | acc-opt - --report=" + options.report);
  if (!namesPhase || StringRef(options.output).ends_with(".accx"))
    return fail(path, "expected a model or IR, found an executable: run it "
                      "with acc-run, or print the text of one of its phases "
                      "with --compile-to=nn, train, dist, decided, local or "
                      "plan, which can be compiled again");
  if (!options.given.empty())
    return fail(path, "cannot use '" + options.given.front().first +
                          "' with an executable: it is compiled");
  if (failed(readPhase(path, {stringifyPhase(options.compileTo).str()}, text)))
    return failure();
  auto output = openOutputFile(options.output, &error);
  if (!output)
    return fail(options.output, error);
  output->os() << text << "\n";
  std::string why = keepOutput(*output);
  return why.empty() ? success() : fail(options.output, "cannot write: " + why);
}
