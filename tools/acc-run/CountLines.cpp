// Tables and JSON of counts; the JSON of an entry is that of
// acc-opt --report=commands.

#include "CountLines.h"

#include <cinttypes>
#include <cstdio>

namespace accel::rt {
namespace {

KindCounts addUp(const EntryCounts &entry) {
  KindCounts all;
  for (const auto &[name, kind] : entry) {
    all.commands += kind.commands;
    all.bytesRead += kind.bytesRead;
    all.bytesWritten += kind.bytesWritten;
    all.flops += kind.flops;
  }
  return all;
}

void printNumbers(const KindCounts &kind) {
  std::printf("\"commands\": %" PRIu64 ", \"bytes_read\": %" PRIu64
              ", \"bytes_written\": %" PRIu64 ", \"flops\": %" PRIu64,
              kind.commands, kind.bytesRead, kind.bytesWritten, kind.flops);
}

void printEntry(const EntryCounts &entry) {
  std::printf("{");
  printNumbers(addUp(entry));
  std::printf(", \"kinds\": {");
  const char *separator = "";
  for (const auto &[name, kind] : entry) {
    std::printf("%s\"%s\": {", separator, name.c_str());
    printNumbers(kind);
    std::printf("}");
    separator = ", ";
  }
  std::printf("}}");
}

void printRow(const std::string &entry, const std::string &kind,
              const KindCounts &counts) {
  std::printf("  %-6s %-15s %10" PRIu64 " %16" PRIu64 " %16" PRIu64
              " %18" PRIu64 "\n",
              entry.c_str(), kind.c_str(), counts.commands, counts.bytesRead,
              counts.bytesWritten, counts.flops);
}

void printLinesJson(const RunResult &result) {
  std::printf("{\"device\": \"%s\", \"ranks\": %" PRId64
              ", \"calls\": %zu, \"planned_peak_bytes\": %" PRIu64
              ", \"measured_peak_bytes\": %" PRIu64
              ", \"touched_peak_bytes\": %" PRIu64 ", \"counts\": [",
              result.device.c_str(), result.ranks, result.seconds.size(),
              result.plannedPeakBytes, result.measuredPeakBytes,
              result.touchedPeakBytes);
  for (size_t rank = 0; rank < result.counts.size(); ++rank) {
    std::printf("%s{\"rank\": %zu", rank ? ", " : "", rank);
    for (const auto &[name, entry] : result.counts[rank]) {
      std::printf(", \"%s\": ", name.c_str());
      printEntry(entry);
    }
    std::printf("}");
  }
  std::printf("]}\n");
}

bool areSame(const KindCounts &a, const KindCounts &b) {
  return a.commands == b.commands && a.bytesRead == b.bytesRead &&
         a.bytesWritten == b.bytesWritten && a.flops == b.flops;
}

bool areSame(const std::map<std::string, EntryCounts> &a,
             const std::map<std::string, EntryCounts> &b) {
  if (a.size() != b.size())
    return false;
  for (const auto &[name, entry] : a) {
    auto other = b.find(name);
    if (other == b.end() || other->second.size() != entry.size())
      return false;
    for (const auto &[kind, counts] : entry) {
      auto found = other->second.find(kind);
      if (found == other->second.end() || !areSame(found->second, counts))
        return false;
    }
  }
  return true;
}

void printLinesText(const RunResult &result) {
  std::printf("device %s: ranks %" PRId64
              ", nothing was executed; figures are of one call of an entry "
              "(%zu, all alike)\n",
              result.device.c_str(), result.ranks, result.seconds.size());
  std::printf("arenas: planned %.1f MiB, touched %.1f MiB\n",
              double(result.plannedPeakBytes) / (1 << 20),
              double(result.touchedPeakBytes) / (1 << 20));
  for (size_t first = 0, next; first < result.counts.size(); first = next) {
    const auto &counts = result.counts[first];
    for (next = first + 1;
         next < result.counts.size() && areSame(result.counts[next], counts);)
      ++next;
    if (next == first + 1)
      std::printf("rank %zu:\n", first);
    else
      std::printf("each of the ranks %zu to %zu:\n", first, next - 1);
    std::printf("  %-6s %-15s %10s %16s %16s %18s\n", "entry", "kind",
                "commands", "bytes read", "bytes written", "flops");
    for (const auto &[name, entry] : counts) {
      for (const auto &[kind, numbers] : entry)
        printRow(name, kind, numbers);
      printRow(name, "all", addUp(entry));
    }
  }
}

} // namespace

void printCounts(const RunResult &result, bool json) {
  if (json)
    printLinesJson(result);
  else
    printLinesText(result);
}

} // namespace accel::rt
