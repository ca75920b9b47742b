// Adding up views and arithmetic.

#include "Control/Counts.h"

#include "Format/Describe.h"
#include "Format/Views.h"

namespace accel::rt {
namespace {

uint64_t bytesOf(const View &view) {
  uint64_t bytes = static_cast<uint64_t>(dtypeBytes(view.dtype));
  for (int64_t size : view.shape)
    bytes *= static_cast<uint64_t>(size);
  return bytes;
}

/// The place of a kind among the alternatives.
template <class Kind> size_t indexOf() {
  static const size_t index = decltype(Command::what)(Kind()).index();
  return index;
}

template <class Described>
void add(const Program &program, const Described &what, uint64_t times,
         KindCounts &kind) {
  kind.commands += times;
  format::forEachAccess(what, [&](const View &view, format::Access access) {
    // How often the target goes over its own scratch nobody else knows.
    if (program.buffers[view.buffer].role == "scratch")
      return;
    if (access != format::Access::Write)
      kind.bytesRead += times * bytesOf(view);
    if (access != format::Access::Read)
      kind.bytesWritten += times * bytesOf(view);
  });
}

} // namespace

void addCosts(const Program &program, const Command &command, uint64_t times,
              Counts &counts) {
  if (auto *group = std::get_if<GroupCommand>(&command.what)) {
    for (const SendCommand &send : group->sends)
      add(program, send, times, counts[indexOf<SendCommand>()]);
    for (const RecvCommand &recv : group->recvs)
      add(program, recv, times, counts[indexOf<RecvCommand>()]);
    return;
  }
  KindCounts &kind = counts[command.what.index()];
  add(program, command, times, kind);
  kind.flops += times * command.flops.value_or(0);
}

Status noteCounts(const Counts &counts, bool first, Counts &noted) {
  for (size_t kind = 0; kind < counts.size() && !first; ++kind)
    if (counts[kind].commands != noted[kind].commands)
      return Status::error(
          "expected the " + std::to_string(noted[kind].commands) +
          " commands of kind " + inQuotes(format::kCommandKinds[kind]) +
          " that the first call had, found " +
          std::to_string(counts[kind].commands));
  noted = counts;
  return Status();
}

EntryCounts nameCounts(const Counts &counts) {
  EntryCounts named;
  for (size_t kind = 0; kind < counts.size(); ++kind)
    if (counts[kind].commands)
      named[format::kCommandKinds[kind]] = counts[kind];
  return named;
}

} // namespace accel::rt
