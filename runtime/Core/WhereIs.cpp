// Commands by their number, and processes by /proc.

#include "Core/WhereIs.h"

#include "Core/Rank.h"

#include <fstream>

namespace accel::rt {
namespace {

/// "a gemm of node 'MatMul#17'"; empty if there is no such command.
std::string commandText(const Program &program, int64_t index) {
  for (const Body &body : program.bodies) {
    if (index < static_cast<int64_t>(body.commands.size())) {
      const Command &command = body.commands[static_cast<size_t>(index)];
      std::string text = std::string("a ") + commandKind(command);
      if (auto *collective = std::get_if<CollectiveCommand>(&command.what)) {
        text += " (" + collective->kind + " over ";
        for (size_t i = 0; i < collective->axes.size(); ++i)
          text += (i ? ", " : "") + collective->axes[i];
        text += ")";
      }
      return text + " of node " + inQuotes(command.node);
    }
    index -= static_cast<int64_t>(body.commands.size());
  }
  return "";
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
  std::string places;
  for (const auto &stream : control.command)
    if (int64_t at = stream.load(); at >= 0)
      places +=
          (places.empty() ? ", in " : " and ") + commandText(*program, at);
  return text + (places.empty() ? ", while loading" : places);
}

std::string whyItLives(pid_t process) {
  std::string text = "process " + std::to_string(process);
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string state, tracer = "0";
  for (std::string line; std::getline(status, line);) {
    size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (value == std::string::npos)
      continue;
    if (line.rfind("State:", 0) == 0)
      state = line.substr(value);
    if (line.rfind("TracerPid:", 0) == 0)
      tracer = line.substr(value);
  }
  if (tracer != "0")
    return text + ", traced by process " + tracer;
  return text + (state.empty() ? "" : ", in state " + state);
}

} // namespace accel::rt
