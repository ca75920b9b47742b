// What becomes of a config file, from its text to settings: what the targets
// yaml and json share.

#ifndef ACCEL_TEST_FUZZ_CONFIG_H
#define ACCEL_TEST_FUZZ_CONFIG_H

#include "Target.h"
#include "lib/Config/Config.h"

#include <algorithm>

namespace accel::fuzz {

/// Resolves the text as a file of --config, and prints the settings. A file may
/// name another: without slashes it is none of this machine's.
inline void resolve(std::string text, const char *name) {
  static MemoryFile file(name);
  std::replace(text.begin(), text.end(), '/', '_');
  file.write(text);
  config::Request request;
  request.files = {file.path()};
  request.likeAccelerate = text.size() % 8 == 0;
  llvm::Expected<config::Config> resolved = config::resolveConfig(request);
  if (!resolved) {
    require(!llvm::toString(resolved.takeError()).empty(),
            "an error says something");
    return;
  }
  if (!request.likeAccelerate)
    config::compareWithAccelerate(request, *resolved);
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  config::PrintOptions options;
  options.differences = true;
  options.json = text.size() % 2;
  config::printConfig(*resolved, options, stream);
  require(!printed.empty(), "settings are printed");
}

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_CONFIG_H
