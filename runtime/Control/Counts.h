// What the commands that a rank has executed come to, for devices that only
// count. docs/Reports.md says what the figures mean; acc-opt --report=commands
// predicts them.

#ifndef ACCEL_RUNTIME_CONTROL_COUNTS_H
#define ACCEL_RUNTIME_CONTROL_COUNTS_H

#include "accel-rt/PlanFormat.h"
#include "accel-rt/Runtime.h"

#include <array>

namespace accel::rt {

/// By the alternatives of Command::what.
using Counts =
    std::array<KindCounts, std::variant_size_v<decltype(Command::what)>>;

/// Adds what `times` executions of a command do. A group counts as its sends
/// and receives.
void addCosts(const Program &program, const Command &command, uint64_t times,
              Counts &counts);

/// Notes in `noted` what one call of an entry did; what was noted before must
/// be the same, unless it is the first call. Errors: it is not.
Status noteCounts(const Counts &counts, bool first, Counts &noted);

/// By name, kinds of which there were none left out.
EntryCounts nameCounts(const Counts &counts);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_COUNTS_H
