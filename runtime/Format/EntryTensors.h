// What a call of an entry reads of files and writes to them.

#ifndef ACCEL_RUNTIME_FORMAT_ENTRYTENSORS_H
#define ACCEL_RUNTIME_FORMAT_ENTRYTENSORS_H

#include "accel-rt/PlanFormat.h"

#include <unordered_set>

namespace accel::rt {

struct EntryTensors {
  /// In the order in which the file has them.
  std::vector<TensorPlan> inputs, outputs;
  /// The commands of the entry's bodies, of all programs.
  std::unordered_set<const Command *> commands;
};

/// Of the entry `name`; nothing where there is none. What it returns points
/// into `executable`.
EntryTensors tensorsOf(const Executable &executable, const std::string &name);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FORMAT_ENTRYTENSORS_H
