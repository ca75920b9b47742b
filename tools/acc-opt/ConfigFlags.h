// acc-opt's flags of configuration: files, and what they resolve to.

#ifndef ACCEL_TOOLS_ACC_OPT_CONFIGFLAGS_H
#define ACCEL_TOOLS_ACC_OPT_CONFIGFLAGS_H

#include "lib/Config/Config.h"

/// Resolves `--config` and what else `request` says (its files and mode are
/// filled in here). Prints what was asked to be printed.
llvm::Expected<accel::config::Config>
readConfigFlags(accel::config::Request request, bool json);

/// Whether files were given, and which.
bool hasConfigFiles();
std::vector<std::string> configFiles();

/// Whether something was printed, so that there need not be a model.
bool printsConfig();

#endif // ACCEL_TOOLS_ACC_OPT_CONFIGFLAGS_H
