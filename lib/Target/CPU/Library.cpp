// lld.

#include "Library.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace accel::cpu;
namespace fs = llvm::sys::fs;

/// Writes a file that did not exist; why not if that is impossible.
static std::error_code writeObject(int descriptor, StringRef content) {
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << content;
  stream.close();
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

/// All of a file. Read here and not by llvm::MemoryBuffer, which has zeros for
/// what a read did not bring: they would become part of an executable.
static llvm::ErrorOr<std::string> readFile(StringRef path) {
  llvm::Expected<fs::file_t> opened = fs::openNativeFileForRead(path);
  if (!opened)
    return llvm::errorToErrorCode(opened.takeError());
  fs::file_t file = *opened;
  llvm::scope_exit close([&] { fs::closeFile(file); });
  fs::file_status status;
  if (std::error_code error = fs::status(*opened, status))
    return error;
  std::string content(status.getSize(), '\0');
  for (size_t filled = 0; filled < content.size();) {
    llvm::Expected<size_t> got = fs::readNativeFile(
        *opened, {content.data() + filled, content.size() - filled});
    if (!got)
      return llvm::errorToErrorCode(got.takeError());
    if (*got == 0)
      return std::make_error_code(std::errc::io_error);
    filled += *got;
  }
  return content;
}

/// The linker of the package that acc-opt is of (it brings one if it brings its
/// own LLVM), else the first on PATH, else that of Debian's LLVM. Where one
/// cannot be looked at, this is an error: another one would make other bytes of
/// the same kernels.
static FailureOr<std::string> findLinker(Location loc) {
  SmallString<128> own(fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&accel::cpu::linkLibrary)));
  llvm::sys::path::remove_filename(own);
  llvm::sys::path::append(own, "..", "lib", "acc", "bin");
  SmallVector<StringRef> folders = {own};
  std::optional<std::string> path = llvm::sys::Process::GetEnv("PATH");
  if (path)
    StringRef(*path).split(folders, llvm::sys::EnvPathSeparator, -1,
                           /*KeepEmpty=*/false);
  folders.push_back("/usr/lib/llvm-22/bin");
  for (StringRef folder : folders) {
    SmallString<128> linker(folder);
    llvm::sys::path::append(linker, "ld.lld");
    fs::file_status status;
    std::error_code error = fs::status(linker, status);
    if (!error && status.type() != fs::file_type::regular_file)
      continue;
    if (!error)
      error = fs::access(linker, fs::AccessMode::Execute);
    if (!error)
      return linker.str().str();
    if (error != std::errc::no_such_file_or_directory &&
        error != std::errc::not_a_directory &&
        error != std::errc::permission_denied)
      return emitError(loc) << "cannot look at the linker '" << linker
                            << "': " << error.message();
  }
  return emitError(loc) << "expected the linker 'ld.lld' in '" << own
                        << "', on PATH or in '/usr/lib/llvm-22/bin', found "
                           "none: install lld-22";
}

FailureOr<std::string>
accel::cpu::linkLibrary(ArrayRef<StringRef> objects,
                        ArrayRef<std::pair<std::string, std::string>> names,
                        Location loc) {
  FailureOr<std::string> linker = findLinker(loc);
  if (failed(linker))
    return failure();
  // A linker script beside the objects says what they are called.
  std::string script;
  for (const auto &[symbol, own] : names)
    script += "\"" + symbol + "\" = " + own + ";\n";
  SmallVector<StringRef> contents(objects);
  contents.push_back(script);
  SmallVector<SmallString<128>> inputs;
  SmallString<128> output, messages;
  llvm::scope_exit cleanUp([&] {
    for (const auto &path : inputs)
      fs::remove(path);
    for (const auto &path : {output, messages})
      if (!path.empty())
        fs::remove(path);
  });
  std::error_code error;
  for (StringRef content : contents) {
    int descriptor = -1;
    SmallString<128> input;
    error = fs::createTemporaryFile("acc-kernels", "o", descriptor, input);
    if (error)
      break;
    inputs.push_back(input);
    error = writeObject(descriptor, content);
    if (error)
      break;
  }
  if (!error)
    error = fs::createTemporaryFile("acc-kernels", "so", output);
  if (!error)
    error = fs::createTemporaryFile("acc-kernels", "txt", messages);
  if (error) {
    emitError(loc) << "expected to write temporary files, found that '"
                   << (inputs.empty() ? StringRef() : StringRef(inputs.back()))
                   << "' cannot be written: " << error.message();
    return failure();
  }
  // Functions of the C library stay open: the process that loads it has them.
  SmallVector<StringRef> arguments = {*linker, "-shared", "--hash-style=gnu",
                                      "-z",    "now",     "--build-id=none",
                                      "-s",    "-o",      output};
  llvm::append_range(arguments, inputs);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(messages),
                                          StringRef(messages)};
  std::string problem;
  int result = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt,
                                         redirects, /*SecondsToWait=*/60,
                                         /*MemoryLimit=*/0, &problem);
  if (result != 0) {
    llvm::ErrorOr<std::string> said = readFile(messages);
    emitError(loc) << "expected '" << *linker << "' to link the kernels: "
                   << StringRef(problem + " " + (said ? *said : "")).trim();
    return failure();
  }
  llvm::ErrorOr<std::string> library = readFile(output);
  if (!library) {
    emitError(loc) << "cannot read '" << output << "', which '" << *linker
                   << "' linked: " << library.getError().message();
    return failure();
  }
  return *library;
}
