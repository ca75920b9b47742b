// Where a config file's text comes from.

#ifndef ACCEL_LIB_CONFIG_SOURCE_H
#define ACCEL_LIB_CONFIG_SOURCE_H

#include "Document.h"

namespace accel::config {

/// Name and text of `source`: the path of a file, a JSON's text, that in
/// URL-safe base64, or arguments (`--name …`) as such, as Accelerate's
/// HfDeepSpeedConfig tries them. `saidAt` is the place of a path in a file,
/// which is looked for from the working folder, as Accelerate does, then beside
/// that file; no place: the command line.
llvm::Expected<std::pair<std::string, std::string>>
openSource(llvm::StringRef source, const Place &saidAt);

/// The same of a path alone, of a file that `saidAt` names. Refuses what is no
/// regular file, and more than 1 MiB.
llvm::Expected<std::pair<std::string, std::string>>
openPath(llvm::StringRef path, const Place &saidAt);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_SOURCE_H
