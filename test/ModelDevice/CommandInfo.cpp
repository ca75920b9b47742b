// Walking the descriptions of commands.

#include "CommandInfo.h"

#include "Format/Views.h"

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
  for (const Body &body : program.bodies)
    for (const Command &command : body.commands) {
      infos.push_back(describeCommand(command, &program));
      infos.back().body = body.name;
    }
  return infos;
}

} // namespace accel::rt::model
