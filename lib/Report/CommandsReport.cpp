// `--report=commands`. The runtime counts the same as it executes
// (runtime/Control/Counts.cpp); neither side knows the other's figures but the
// arithmetic of a command, which the file carries.

#include "Reports.h"
#include "Table.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/Summary.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using accel::report::Table;

using Kinds = std::map<StringRef, CommandCounts>;

static CommandCounts addUp(const Kinds &kinds) {
  CommandCounts all;
  for (auto &[kind, counts] : kinds)
    all.add(counts, 1);
  return all;
}

static void printNumbers(const CommandCounts &counts,
                         llvm::json::OStream &out) {
  out.attribute("commands", counts.commands);
  out.attribute("bytes_read", counts.bytesRead);
  out.attribute("bytes_written", counts.bytesWritten);
  out.attribute("flops", counts.flops);
}

static void printJson(ProgramOp program, llvm::json::OStream &out) {
  BufferTable buffers(program);
  SymbolTableCollection symbols;
  out.object([&] {
    out.attribute("program", program.getSymName());
    out.attribute("stage", int64_t(program.getStage()));
    out.attribute("ranks", int64_t(program.getRanks()));
    out.attributeObject("entries", [&] {
      for (auto entry : program.getOps<EntryOp>())
        out.attributeObject(entry.getKind(), [&] {
          Kinds kinds = countCommands(entry, buffers, symbols);
          printNumbers(addUp(kinds), out);
          out.attributeObject("kinds", [&] {
            for (auto &[kind, counts] : kinds)
              out.attributeObject(
                  kind, [&, &counts = counts] { printNumbers(counts, out); });
          });
        });
    });
    out.attributeObject("captures", [&] {
      for (auto entry : program.getOps<EntryOp>())
        out.attributeObject(entry.getKind(), [&] {
          Captures captures = findCaptures(entry, buffers);
          out.attribute("count", captures.count);
          out.attributeArray("split_by", [&] {
            for (const std::string &split : captures.splits)
              out.value(split);
          });
        });
    });
  });
}

static void printText(ProgramOp program, llvm::raw_ostream &os) {
  BufferTable buffers(program);
  SymbolTableCollection symbols;
  os << "commands of one call, per rank:\n";
  Table table(
      {"entry", "kind", "commands", "bytes read", "bytes written", "flops"});
  for (auto entry : program.getOps<EntryOp>()) {
    auto add = [&](StringRef kind, const CommandCounts &counts) {
      table.add(
          {entry.getKind().str(), kind.str(), std::to_string(counts.commands),
           std::to_string(counts.bytesRead),
           std::to_string(counts.bytesWritten), std::to_string(counts.flops)});
    };
    Kinds kinds = countCommands(entry, buffers, symbols);
    for (auto &[kind, counts] : kinds)
      add(kind, counts);
    add("all", addUp(kinds));
  }
  table.print(os);
  os << "captures of one call, where the device has any:\n";
  for (auto entry : program.getOps<EntryOp>()) {
    Captures captures = findCaptures(entry, buffers);
    os << "  " << entry.getKind() << " " << captures.count;
    for (const std::string &split : captures.splits)
      os << (split == captures.splits.front() ? ", split by " : "; ") << split;
    os << "\n";
  }
}

LogicalResult report::printCommands(ModuleOp module, llvm::raw_ostream &os,
                                    bool json) {
  if (!json) {
    for (auto program : module.getOps<ProgramOp>())
      printText(program, os);
    return success();
  }
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attributeArray("programs", [&] {
      for (auto program : module.getOps<ProgramOp>())
        printJson(program, out);
    });
  });
  os << "\n";
  return success();
}
