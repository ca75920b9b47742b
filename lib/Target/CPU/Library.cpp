// lld.

#include "Library.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace accel::cpu;
namespace fs = llvm::sys::fs;

/// Writes a file that did not exist; false if that is impossible.
static bool writeFile(int descriptor, StringRef content) {
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << content;
  stream.close();
  bool good = !stream.has_error();
  stream.clear_error();
  return good;
}

static std::optional<std::string> readFile(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  if (!buffer)
    return std::nullopt;
  return (*buffer)->getBuffer().str();
}

FailureOr<std::string> accel::cpu::linkLibrary(ArrayRef<char> object,
                                               Location loc) {
  llvm::ErrorOr<std::string> linker = llvm::sys::findProgramByName("ld.lld");
  if (!linker)
    linker = llvm::sys::findProgramByName("ld.lld", {"/usr/lib/llvm-22/bin"});
  if (!linker) {
    emitError(loc) << "expected the linker 'ld.lld' on PATH or in "
                      "'/usr/lib/llvm-22/bin', found none";
    return failure();
  }
  SmallString<128> input, output, messages;
  llvm::scope_exit cleanUp([&] {
    for (const auto &path : {input, output, messages})
      if (!path.empty())
        fs::remove(path);
  });
  int descriptor = -1;
  if (fs::createTemporaryFile("acc-kernels", "o", descriptor, input) ||
      !writeFile(descriptor, StringRef(object.data(), object.size())) ||
      fs::createTemporaryFile("acc-kernels", "so", output) ||
      fs::createTemporaryFile("acc-kernels", "txt", messages)) {
    emitError(loc) << "expected to write temporary files, found that '" << input
                   << "' cannot be written";
    return failure();
  }
  // Functions of the C library stay open: the process that loads it has them.
  StringRef arguments[] = {*linker, "-shared", "--hash-style=gnu",
                           "-z",    "now",     "--build-id=none",
                           "-s",    "-o",      output,
                           input};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(messages),
                                          StringRef(messages)};
  int result = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt,
                                         redirects, /*SecondsToWait=*/60);
  std::optional<std::string> library = readFile(output);
  if (result != 0 || !library) {
    emitError(loc) << "expected '" << *linker << "' to link the kernels: "
                   << StringRef(readFile(messages).value_or("")).trim();
    return failure();
  }
  return *library;
}
