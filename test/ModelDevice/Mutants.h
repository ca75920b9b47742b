// Plans from which something is missing: a wait, a record, all waits of a
// record, a copy. What is right about a plan, the model device and the checks
// of files must find wrong about these.

#ifndef ACCEL_TEST_MODELDEVICE_MUTANTS_H
#define ACCEL_TEST_MODELDEVICE_MUTANTS_H

#include "accel-rt/PlanFormat.h"

#include <map>
#include <set>

namespace accel::rt::model {

struct Mutant {
  enum class Kind { Wait, Edge, Record, Copy };
  Kind kind;
  size_t program;         ///< Of the executable.
  std::set<int64_t> lost; ///< Its commands, by Work::number.
  std::string what;       ///< For people.
};

const char *nameOf(Mutant::Kind kind);

/// One for each wait, record and copy; of a record with several waits one more,
/// which loses them all (Edge).
std::vector<Mutant> mutantsOf(const Executable &executable);

/// The executable without what the mutant loses.
Executable without(const Executable &executable, const Mutant &mutant);

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MUTANTS_H
