// The text of --help, which docs/CommandLine.md repeats.

#ifndef ACCEL_TOOLS_ACC_RUN_HELP_H
#define ACCEL_TOOLS_ACC_RUN_HELP_H

namespace accel::rt {

extern const char *const kHelp;

} // namespace accel::rt

#endif // ACCEL_TOOLS_ACC_RUN_HELP_H
