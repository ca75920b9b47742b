// Listing what can be lost.

#include "Mutants.h"

namespace accel::rt::model {

const char *nameOf(Mutant::Kind kind) {
  constexpr const char *names[] = {"wait", "edge", "record", "copy"};
  return names[static_cast<size_t>(kind)];
}

std::vector<Mutant> mutantsOf(const Executable &executable) {
  std::vector<Mutant> mutants;
  for (size_t p = 0; p < executable.programs.size(); ++p) {
    const Program &program = executable.programs[p];
    auto add = [&](Mutant::Kind kind, std::set<int64_t> lost, size_t body,
                   const Command &command, const std::string &event) {
      mutants.push_back({kind, p, std::move(lost),
                         std::string(nameOf(kind)) + " " + event + " of node " +
                             inQuotes(command.node) + ", stream " +
                             inQuotes(command.stream) + ", body " +
                             inQuotes(program.bodies[body].name) +
                             ", program " + inQuotes(program.name)});
    };
    // Of each event, by the body that records it.
    std::map<std::pair<size_t, std::string>, std::set<int64_t>> waits;
    int64_t number = 0;
    for (size_t b = 0; b < program.bodies.size(); ++b)
      for (const Command &command : program.bodies[b].commands) {
        if (auto *wait = std::get_if<WaitCommand>(&command.what)) {
          size_t recorder =
              wait->body < 0 ? b : static_cast<size_t>(wait->body);
          waits[{recorder, wait->event}].insert(number);
          add(Mutant::Kind::Wait, {number}, b, command, wait->event);
        }
        if (std::holds_alternative<CopyCommand>(command.what))
          add(Mutant::Kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = 0;
    for (size_t b = 0; b < program.bodies.size(); ++b)
      for (const Command &command : program.bodies[b].commands) {
        if (auto *record = std::get_if<RecordCommand>(&command.what)) {
          add(Mutant::Kind::Record, {number}, b, command, record->event);
          const std::set<int64_t> &all = waits[{b, record->event}];
          if (all.size() > 1)
            add(Mutant::Kind::Edge, all, b, command, record->event);
        }
        ++number;
      }
  }
  return mutants;
}

Executable without(const Executable &executable, const Mutant &mutant) {
  Executable made = executable;
  int64_t number = 0;
  for (Body &body : made.programs[mutant.program].bodies) {
    std::vector<Command> kept;
    for (Command &command : body.commands)
      if (!mutant.lost.count(number++))
        kept.push_back(std::move(command));
    body.commands = std::move(kept);
  }
  return made;
}

} // namespace accel::rt::model
