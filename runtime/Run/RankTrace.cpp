// Names, nesting and arguments of what a rank did.

#include "Run/RankTrace.h"

#include "Format/Layout.h"
#include "Run/Rank.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace accel::rt {
namespace {

constexpr size_t kBuffered = 1 << 20;

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      result += escaped;
    } else {
      if (c == '"' || c == '\\')
        result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

/// Microseconds, to the nanosecond.
std::string micros(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03d",
                static_cast<long long>(nanoseconds / 1000),
                static_cast<int>(nanoseconds % 1000));
  return text;
}

/// "rank 3 · dp 1 tp 1".
std::string rankName(const Executable &plan, int64_t rank) {
  std::string name = "rank " + std::to_string(rank);
  Coordinates here = Coordinates::of(plan.mesh, rank);
  for (size_t i = 0; i < here.axes.size(); ++i)
    name += (i ? " " : " · ") + here.axes[i].name + " " +
            std::to_string(here.values[i]);
  return name;
}

/// What a command sends to other ranks, or receives from them where it sends
/// nothing; none of others.
std::optional<uint64_t> bytesMoved(const Command &command) {
  std::optional<uint64_t> sent, received;
  auto add = [](std::optional<uint64_t> &sum, const View &view) {
    uint64_t bytes = static_cast<uint64_t>(dtypeBytes(view.dtype));
    for (int64_t size : view.shape)
      bytes *= static_cast<uint64_t>(size);
    sum = sum.value_or(0) + bytes;
  };
  if (auto *collective = std::get_if<CollectiveCommand>(&command.what))
    for (const View &input : collective->inputs)
      add(sent, input);
  if (auto *send = std::get_if<SendCommand>(&command.what))
    add(sent, send->view);
  if (auto *recv = std::get_if<RecvCommand>(&command.what))
    add(received, recv->view);
  if (auto *group = std::get_if<GroupCommand>(&command.what)) {
    for (const SendCommand &one : group->sends)
      add(sent, one.view);
    for (const RecvCommand &one : group->recvs)
      add(received, one.view);
  }
  return sent ? sent : received;
}

} // namespace

void TextFile::add(const std::string &text) {
  buffer += text;
  if (buffer.size() >= kBuffered)
    flush();
}

void TextFile::flush() {
  if (status.ok())
    status = writeRange(file.descriptor(), file.path(), written, buffer.data(),
                        buffer.size());
  written += buffer.size();
  buffer.clear();
}

Status TextFile::finish() {
  flush();
  return status;
}

RankTrace::CommandText RankTrace::describe(const Command &command,
                                           size_t body) {
  CommandText text{body, commandKind(command), "command", {}, {}};
  text.node = "\"node\":" + quoted(command.node);
  text.arguments = "\"kind\":" + quoted(text.name) + "," + text.node;
  if (command.insertedBy)
    text.arguments += ",\"inserted_by\":" + quoted(*command.insertedBy);
  if (std::optional<uint64_t> bytes = bytesMoved(command)) {
    text.category = "communication";
    text.arguments += ",\"bytes\":" + std::to_string(*bytes);
  }
  if (auto *collective = std::get_if<CollectiveCommand>(&command.what)) {
    text.name = collective->kind;
    std::string axes;
    for (const std::string &axis : collective->axes)
      axes += (axes.empty() ? "" : ",") + axis;
    text.arguments += ",\"axes\":" + quoted(axes);
  }
  if (auto *wait = std::get_if<WaitCommand>(&command.what)) {
    text.category = "wait";
    text.arguments += ",\"event\":" + quoted(wait->event);
  }
  return text;
}

RankTrace::RankTrace(const Executable &plan, int64_t rank, const Tape &tape,
                     int64_t finishedSteps, int64_t origin, int64_t end)
    : plan(plan), program(*programOf(plan, rank)), rank(rank), tape(tape),
      origin(origin), end(end), streams{"compute"} {
  for (size_t body = 0; body < program.bodies.size(); ++body)
    for (const Command &command : program.bodies[body].commands) {
      commands.push_back(describe(command, body));
      if (std::find(streams.begin(), streams.end(), command.stream) ==
          streams.end())
        streams.push_back(command.stream);
    }
  // "load", "step 3", "eval 1".
  std::map<size_t, int64_t> numbers;
  for (uint32_t call = 0; call < tape.callsKept; ++call) {
    const std::string &entry = program.entries[tape.entries[call]].name;
    int64_t number = ++numbers[tape.entries[call]];
    number += entry == "step" ? finishedSteps : 0;
    callNames.push_back(entry == "load" ? entry
                                        : entry + " " + std::to_string(number));
  }
}

void RankTrace::write(TextFile &out) const {
  writeNames(out);
  for (size_t stream = 0; stream < streams.size(); ++stream)
    writeStream(stream, out);
}

std::string RankTrace::place(size_t stream) const {
  return ",\"pid\":" + std::to_string(rank) +
         ",\"tid\":" + std::to_string(stream);
}

void RankTrace::writeNames(TextFile &out) const {
  auto add = [&](const std::string &what, size_t stream,
                 const std::string &name) {
    bool isFirst = rank == 0 && stream == 0 && what == "process";
    out.add(
        std::string(isFirst ? "\n" : ",\n") + "{\"ph\":\"M\",\"name\":\"" +
        what + "_name\"" + place(stream) + ",\"args\":{\"name\":" +
        quoted(name) + "}},\n{\"ph\":\"M\",\"name\":\"" + what +
        "_sort_index\"" + place(stream) + ",\"args\":{\"sort_index\":" +
        std::to_string(what == "process" ? static_cast<size_t>(rank) : stream) +
        "}}");
  };
  add("process", 0, rankName(plan, rank));
  for (size_t stream = 0; stream < streams.size(); ++stream)
    add("thread", stream, streams[stream]);
}

void RankTrace::writeSpan(const std::string &name, const std::string &category,
                          size_t stream, int64_t from, int64_t to,
                          const std::string &arguments, TextFile &out) const {
  out.add(",\n{\"ph\":\"X\",\"name\":" + quoted(name) + ",\"cat\":\"" +
          category + "\",\"ts\":" + micros(from - origin) + ",\"dur\":" +
          micros(to - from) + place(stream) + ",\"args\":{" + arguments + "}}");
}

/// What is on the tape of a stream, in its order: waits stand behind their
/// command.
std::vector<RankTrace::Done> RankTrace::find(size_t stream) const {
  std::vector<Done> found;
  for (uint32_t i = 0; i < tape.used; ++i) {
    const TapeSpan &one = tape.spans[i];
    if (one.stream != stream || !one.begin) // a rank died before it was written
      continue;
    if (one.kind == TapeSpan::Wait)
      found.back().waits.push_back(&one);
    else
      found.push_back({&one, {}});
  }
  return found;
}

/// In a run of a body numbers of commands rise; what is released is
/// overwritten right after its last reader.
bool RankTrace::isSameRun(const TapeSpan &one, const TapeSpan &next) const {
  auto bodyOf = [&](const TapeSpan &span) {
    return commands[static_cast<size_t>(span.command)].body;
  };
  return one.call == next.call && one.microBatch == next.microBatch &&
         bodyOf(one) == bodyOf(next) &&
         (one.command < next.command || next.kind == TapeSpan::Poison);
}

void RankTrace::writeStream(size_t stream, TextFile &out) const {
  std::vector<Done> all = find(stream);
  /// The end of what begins at `i` and goes on while `holds`.
  auto endFrom = [&](size_t i, auto &&holds) {
    while (i + 1 < all.size() && holds(*all[i].span, *all[i + 1].span))
      ++i;
    return endOf(*all[i].span);
  };
  auto isSameCall = [](const TapeSpan &one, const TapeSpan &next) {
    return one.call == next.call;
  };
  auto isSame = [&](auto &one, auto &next) { return isSameRun(one, next); };
  for (size_t i = 0; i < all.size(); ++i) {
    const TapeSpan &one = *all[i].span;
    if (i == 0 || !isSameCall(*all[i - 1].span, one))
      writeSpan(callNames[one.call], "call", stream, one.begin,
                endFrom(i, isSameCall), "", out);
    const CommandText &text = commands[static_cast<size_t>(one.command)];
    if (i == 0 || !isSameRun(*all[i - 1].span, one))
      writeSpan(program.bodies[text.body].name, "body", stream, one.begin,
                endFrom(i, isSame),
                one.microBatch < 0
                    ? ""
                    : "\"micro_batch\":" + std::to_string(one.microBatch),
                out);
    writeCommand(all[i], out);
  }
}

void RankTrace::writeCommand(const Done &done, TextFile &out) const {
  const TapeSpan &span = *done.span;
  const CommandText &text = commands[static_cast<size_t>(span.command)];
  std::string arguments = text.arguments;
  if (span.microBatch >= 0)
    arguments += ",\"micro_batch\":" + std::to_string(span.microBatch);
  if (!span.end)
    arguments += ",\"unfinished\":true";
  int64_t waited = 0;
  for (const TapeSpan *wait : done.waits)
    waited += wait->end - wait->begin;
  if (waited)
    arguments += ",\"waited_us\":" + micros(waited);
  bool isPoison = span.kind == TapeSpan::Poison;
  writeSpan(isPoison ? "poison" : text.name,
            isPoison ? "poison" : text.category, span.stream, span.begin,
            endOf(span), arguments, out);
  for (const TapeSpan *wait : done.waits)
    writeSpan("wait for others", "wait", span.stream, wait->begin, wait->end,
              text.node, out);
}

} // namespace accel::rt
