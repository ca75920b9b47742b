// Walking the descriptions of commands.

#include "CommandInfo.h"

#include "Format/Views.h"

#include <map>

namespace accel::rt::model {
namespace {

ViewAccess accessOf(const View &view, Access access, const Program *program) {
  // Scratch is among what is both read and written.
  ViewAccess made{access, view.buffer, ByteRuns(view),
                  {},     -1,          access == Access::Both};
  if (!program)
    return made;
  const BufferPlan &buffer = program->buffers[view.buffer];
  made.buffer = buffer.name;
  made.root = view.buffer;
  made.isScratch = buffer.role == "scratch";
  made.space = buffer.space;
  made.inArena = {Address{} + (buffer.offset + view.offset), buffer.slots,
                  buffer.slotStride};
  for (const AxisStride &stride : view.axes)
    if (stride.axis == "mb")
      made.inArena.microBatchStride += stride.bytes;
  for (size_t i = 0; !buffer.aliasOf.empty() && i < program->buffers.size();
       ++i)
    if (program->buffers[i].name == buffer.aliasOf)
      made.root = static_cast<int64_t>(i);
  return made;
}

} // namespace

std::string CommandInfo::describe() const {
  std::string text = kind + " for node " + inQuotes(node) + " (";
  if (!body.empty())
    text += "body " + inQuotes(body) + ", ";
  return text + "stream " + inQuotes(stream) + ")";
}

CommandInfo describeCommand(const Command &command, const Program *program) {
  CommandInfo info{
      commandKind(command), command.node, command.stream, {}, {}, {}};
  format::visitViews(command, [&](const View &view, Access access) {
    info.views.push_back(accessOf(view, access, program));
  });
  for (const View &view : command.releases)
    info.releases.push_back(accessOf(view, Access::Write, program));
  info.isCollective = std::holds_alternative<CollectiveCommand>(command.what);
  info.isFile = std::holds_alternative<ReadCommand>(command.what) ||
                std::holds_alternative<WriteCommand>(command.what);
  return info;
}

std::vector<CommandInfo> describeProgram(const Program &program) {
  std::vector<CommandInfo> infos;
  std::vector<std::map<std::string, int64_t>> records(program.bodies.size());
  int64_t number = 0;
  for (size_t i = 0; i < program.bodies.size(); ++i)
    for (const Command &command : program.bodies[i].commands) {
      if (auto *record = std::get_if<RecordCommand>(&command.what))
        records[i][record->event] = number;
      ++number;
    }
  for (size_t i = 0; i < program.bodies.size(); ++i)
    for (const Command &command : program.bodies[i].commands) {
      CommandInfo &info =
          infos.emplace_back(describeCommand(command, &program));
      info.body = program.bodies[i].name;
      if (auto *record = std::get_if<RecordCommand>(&command.what))
        info.record = records[i][record->event];
      if (auto *wait = std::get_if<WaitCommand>(&command.what))
        info.record =
            records[wait->body < 0 ? i : static_cast<size_t>(wait->body)]
                   [wait->event];
    }
  return infos;
}

} // namespace accel::rt::model
