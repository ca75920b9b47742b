// The encodings that a config file may come in.

#include "lib/Config/Source.h"
#include "lib/Config/ParseArguments.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <optional>

using namespace llvm;
using namespace accel::config;

/// The text of a JSON that is written as such or in base64, or of arguments;
/// none for a path.
static std::optional<std::string> decodeText(StringRef source) {
  if (source.ltrim().starts_with("{") || looksLikeArguments(source))
    return source.str();
  std::string standard = source.trim().str();
  for (char &c : standard)
    c = c == '-' ? '+' : c == '_' ? '/' : c;
  standard.append((4 - standard.size() % 4) % 4, '=');
  std::vector<char> bytes;
  if (source.size() < 8)
    return std::nullopt;
  if (Error error = decodeBase64(standard, bytes)) {
    consumeError(std::move(error));
    return std::nullopt;
  }
  std::string text(bytes.begin(), bytes.end());
  if (!StringRef(text).ltrim().starts_with("{"))
    return std::nullopt;
  return text;
}

/// `source` as a path: from the working folder, else beside the file that names
/// it.
static std::string findBeside(StringRef source, const Place &saidAt) {
  if (saidAt.isFile() && !sys::fs::exists(source) &&
      sys::path::is_relative(source)) {
    SmallString<128> beside(sys::path::parent_path(saidAt.file));
    sys::path::append(beside, source);
    if (sys::fs::exists(beside))
      return beside.str().str();
  }
  return source.str();
}

Expected<std::pair<std::string, std::string>>
accel::config::openPath(StringRef source, const Place &saidAt) {
  std::string path = findBeside(source, saidAt);
  uint64_t size = 0;
  if (source.size() >= 4096 || !sys::fs::is_regular_file(path) ||
      sys::fs::file_size(path, size) || size > (1 << 20))
    return failAt(saidAt, "cannot read '" + source.take_front(120) + "'");
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return failAt(saidAt,
                  "cannot read '" + path + "': " + buffer.getError().message());
  return std::pair(path, (*buffer)->getBuffer().str());
}

Expected<std::pair<std::string, std::string>>
accel::config::openSource(StringRef source, const Place &saidAt) {
  std::string path = findBeside(source, saidAt);
  if (source.size() < 4096 && sys::fs::is_regular_file(path)) {
    auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!buffer)
      return failAt(saidAt, "cannot read '" + path +
                                "': " + buffer.getError().message());
    return std::pair(path, (*buffer)->getBuffer().str());
  }
  if (std::optional<std::string> text = decodeText(source))
    return std::pair(saidAt.isFile() ? "<JSON of " + saidAt.str() + ">"
                     : looksLikeArguments(*text)
                         ? std::string("<arguments of --config>")
                         : std::string("<JSON of --config>"),
                     *text);
  if (saidAt.isFile())
    return failAt(saidAt,
                  "expected as 'deepspeed_config.deepspeed_config_file' the "
                  "path of a file, JSON, or JSON in base64, found '" +
                      source.take_front(120) + "'");
  return failAt(saidAt,
                "cannot read '" + source.take_front(120) + "': " +
                    (sys::fs::exists(path) ? "it is no file" : "no such file"));
}
