// Finds the transfers in the bodies that an entry runs.

#include "Format/EntryTensors.h"

#include "Format/Runs.h"

#include <set>

namespace accel::rt {

EntryTensors tensorsOf(const Executable &executable, const std::string &name) {
  EntryTensors tensors;
  std::set<std::string> read, written;
  for (const Program &program : executable.programs)
    for (const Entry &entry : program.entries) {
      if (entry.name != name)
        continue;
      format::forEachRun(entry, [&](const Run &run, const Loop &) {
        for (const Command &command : program.bodies[run.body].commands) {
          tensors.commands.insert(&command);
          if (auto *from = std::get_if<ReadCommand>(&command.what);
              from && from->source == "input")
            read.insert(from->name);
          if (auto *to = std::get_if<WriteCommand>(&command.what))
            written.insert(to->name);
        }
      });
    }
  for (const TensorPlan &input : executable.inputs)
    if (read.count(input.name))
      tensors.inputs.push_back(input);
  for (const TensorPlan &output : executable.outputs)
    if (written.count(output.name))
      tensors.outputs.push_back(output);
  return tensors;
}

} // namespace accel::rt
