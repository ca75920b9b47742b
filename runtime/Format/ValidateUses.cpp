// Whether what a file declares is used. The compiler declares nothing else, so
// what is left over belongs to a command that has come to name another. States
// are an exception: parameters that a model has and does not use are its own.

#include "Format/Runs.h"
#include "Format/Tables.h"

#include <string_view>
#include <unordered_set>

namespace accel::rt {
namespace {

class Uses {
public:
  explicit Uses(const Executable &executable) : executable(executable) {
    for (const StatePlan &state : executable.states)
      sections.insert(state.first.section);
    for (const Program &program : executable.programs) {
      for (const BufferPlan &buffer : program.buffers)
        sections.insert(buffer.section);
      for (const Entry &entry : program.entries)
        format::forEachRun(entry, [&](const Run &run, const Loop &) {
          const Body &body = program.bodies[run.body];
          if (bodies.insert(&body).second)
            for (const Command &command : body.commands)
              add(program, command);
        });
    }
  }

  Status check() const {
    for (const Program &program : executable.programs)
      for (const Body &body : program.bodies)
        if (!bodies.count(&body))
          return unused("run of body", body.name);
    for (const TensorPlan &output : executable.outputs)
      if (!outputs.count(output.name))
        return unused("run that writes output", output.name);
    for (const TensorPlan &input : executable.inputs)
      if (!inputs.count(input.name))
        return unused("run that reads input", input.name);
    for (const KernelPlan &kernel : executable.kernels)
      if (!kernels.count({kernel.function, kernel.signature}))
        return unused("call of kernel", kernel.function);
    // What people read and the code are named by nobody.
    for (const Section &section : executable.sections)
      if (!sections.count(section.name) &&
          section.name.rfind(kCodePrefix, 0) != 0 &&
          section.name.rfind("ir:", 0) != 0)
        return unused("state or constant in section", section.name);
    return Status();
  }

private:
  void add(const Program &program, const Command &command) {
    auto *read = std::get_if<ReadCommand>(&command.what);
    if (read && read->source == "input")
      inputs.insert(read->name);
    else if (auto *write = std::get_if<WriteCommand>(&command.what))
      outputs.insert(write->name);
    else if (auto kernel = kernelSignature(program, command))
      kernels.insert({kernel->function, kernel->signature});
  }
  static Status unused(const std::string &what, const std::string &name) {
    return Status::error("expected a " + what + " " + inQuotes(name) +
                         ", found none");
  }

  const Executable &executable;
  std::unordered_set<const Body *> bodies;
  std::unordered_set<std::string_view> inputs, outputs, sections;
  std::set<std::pair<std::string, uint64_t>> kernels;
};

} // namespace

Status checkUses(const Executable &executable) {
  return Uses(executable).check();
}

} // namespace accel::rt
