// Commands by their number, and processes by /proc.

#include "Run/WhereIs.h"

#include "Run/Rank.h"

#include <fstream>

namespace accel::rt {
namespace {

/// Null if there is no such command.
const Command *findCommand(const Program &program, int64_t index) {
  for (const Body &body : program.bodies) {
    if (index < static_cast<int64_t>(body.commands.size()))
      return &body.commands[static_cast<size_t>(index)];
    index -= static_cast<int64_t>(body.commands.size());
  }
  return nullptr;
}

/// "a gemm of node 'MatMul#17' (micro-batch 3)".
std::string commandText(const Command &command, int64_t microBatch) {
  std::string text = std::string("a ") + commandKind(command);
  if (auto *collective = std::get_if<CollectiveCommand>(&command.what)) {
    text += " (" + collective->kind + " over ";
    for (size_t i = 0; i < collective->axes.size(); ++i)
      text += (i ? ", " : "") + collective->axes[i];
    text += ")";
  }
  text += " of node " + inQuotes(command.node);
  if (microBatch >= 0)
    text += " (micro-batch " + std::to_string(microBatch) + ")";
  return text;
}

/// Whether it is a send, a receive or a group of them.
bool passesMessages(const Command &command) {
  return std::holds_alternative<GroupCommand>(command.what) ||
         std::holds_alternative<SendCommand>(command.what) ||
         std::holds_alternative<RecvCommand>(command.what);
}

/// Whether a stream of the rank is in a command of which `is` holds.
template <class F>
bool isInCommand(const Executable &plan, const RankControl &control,
                 int64_t rank, F &&is) {
  const Program *program = programOf(plan, rank);
  for (const auto &stream : control.command) {
    int64_t at = stream.load();
    const Command *command =
        program && at >= 0 ? findCommand(*program, at) : nullptr;
    if (command && is(*command))
      return true;
  }
  return false;
}

struct ProcessState {
  std::string state, tracer = "0";
};

/// Empty where there is no such process.
ProcessState stateOf(pid_t process) {
  ProcessState found;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (value == std::string::npos)
      continue;
    if (line.rfind("State:", 0) == 0)
      found.state = line.substr(value);
    if (line.rfind("TracerPid:", 0) == 0)
      found.tracer = line.substr(value);
  }
  return found;
}

} // namespace

std::string whereIs(const Executable &plan, const RankControl &control,
                    int64_t rank, bool waits) {
  std::string text = "rank " + std::to_string(rank);
  const Program *program = programOf(plan, rank);
  int64_t index = control.command[0].load();
  if (waits)
    text += ", waiting for others";
  if (index == RankControl::kBetweenRuns)
    return text + ", between two runs";
  if (index == RankControl::kSaving)
    return text + ", while saving a checkpoint";
  if (!program)
    return text + ", while loading";
  // What a stream of the rank itself waits for, another one tells.
  std::string places, waited;
  for (int stream = 0; stream < RankControl::kStreams; ++stream)
    if (int64_t at = control.command[stream].load(); at >= 0)
      if (const Command *command = findCommand(*program, at)) {
        bool isWait = std::holds_alternative<WaitCommand>(command->what);
        std::string &list = isWait ? waited : places;
        list += (list.empty() ? ", in " : " and ") +
                commandText(*command, control.microBatch[stream].load());
      }
  places = places.empty() ? waited : places;
  return text + (places.empty() ? ", while loading" : places);
}

bool canOnlyWait(const Executable &plan, const RankControl &control,
                 int64_t rank) {
  return !isInCommand(plan, control, rank, [](const Command &command) {
    return !std::holds_alternative<WaitCommand>(command.what) &&
           !std::holds_alternative<CollectiveCommand>(command.what) &&
           !passesMessages(command);
  });
}

bool isInMessage(const Executable &plan, const RankControl &control,
                 int64_t rank) {
  return isInCommand(plan, control, rank, passesMessages);
}

std::string whyItStands(pid_t process) {
  std::string state = stateOf(process).state;
  return state.find_first_of("TtD") == 0
             ? " (process " + std::to_string(process) + ", in state " + state +
                   ")"
             : "";
}

std::string whyItLives(pid_t process) {
  std::string text = "process " + std::to_string(process);
  ProcessState found = stateOf(process);
  if (found.tracer != "0")
    return text + ", traced by process " + found.tracer;
  return text + (found.state.empty() ? "" : ", in state " + found.state);
}

} // namespace accel::rt
