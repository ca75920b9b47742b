// lld and the cache folder.

#include "Library.h"

#include "CacheFolder.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/xxhash.h"

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
                                            /*RequiresNullTerminator=*/false);
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

LibraryCache::LibraryCache(StringRef code) {
  folder = getCacheFolder();
  if (folder.empty())
    return;
  SmallString<128> place(folder);
  std::string keyed = (code + LLVM_VERSION_STRING).str();
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(
      ArrayRef(reinterpret_cast<const uint8_t *>(keyed.data()), keyed.size()));
  llvm::sys::path::append(place, llvm::utohexstr(hash.high64, false, 16) +
                                     llvm::utohexstr(hash.low64, false, 16) +
                                     ".so");
  path = std::string(place);
}

std::optional<std::string> LibraryCache::find() const {
  if (path.empty())
    return std::nullopt;
  std::optional<std::string> library = readFile(path);
  if (library && !StringRef(*library).starts_with("\x7f"
                                                  "ELF"))
    return std::nullopt;
  return library;
}

void LibraryCache::insert(StringRef library) const {
  if (path.empty() || fs::create_directories(folder))
    return;
  SmallString<128> temporary;
  int descriptor;
  if (fs::createUniqueFile(path + ".%%%%%%", descriptor, temporary))
    return;
  if (!writeFile(descriptor, library) || fs::rename(temporary, path))
    fs::remove(temporary);
}
