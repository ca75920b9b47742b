// `--report=commands`. The runtime counts the same as it executes
// (runtime/Control/Counts.cpp); neither side knows the other's figures but the
// arithmetic of a command, which the file carries.

#include "Reports.h"
#include "Table.h"
#include "dialects/Plan/Offloaded.h"
#include "dialects/Plan/Plan.h"
#include "lib/Plan/Summary.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using accel::report::Table;

using Kinds = std::map<StringRef, CommandCounts>;

static CommandCounts addCommands(const Kinds &kinds) {
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

/// Of each entry what captures it has.
using EntryCaptures = SmallVector<std::pair<EntryOp, Captures>>;

static FailureOr<EntryCaptures> findAll(ProgramOp program) {
  BufferTable buffers(program);
  EntryCaptures all;
  for (auto entry : program.getOps<EntryOp>()) {
    FailureOr<Captures> captures = findCaptures(entry, buffers);
    if (failed(captures))
      return failure();
    all.push_back({entry, std::move(*captures)});
  }
  return all;
}

/// The bodies that wait for copies, and for what part of their time.
static SmallVector<std::pair<StringRef, double>>
findWaiting(ProgramOp program) {
  SmallVector<std::pair<StringRef, double>> waiting;
  for (auto body : program.getOps<BodyOp>())
    if (auto part = body->getAttrOfType<FloatAttr>(kCopiesWaitAttr))
      waiting.push_back({body.getSymName(), part.getValueAsDouble()});
  return waiting;
}

/// Of each body the kernels that work on a tile of offloaded states, and what
/// touches more of some as a whole.
struct Tiled {
  StringRef body;
  int64_t tiles = 0;
  SmallVector<Operation *, 0> wholes;
};
static SmallVector<Tiled> findTiled(ProgramOp program) {
  SmallVector<Tiled> all;
  for (auto body : program.getOps<BodyOp>()) {
    Tiled own{body.getSymName(), 0, {}};
    body.walk([&](CommandOpInterface command) {
      own.tiles += command->hasAttr(kTileAttr);
      if (command->hasAttr(kStagedWholeAttr))
        own.wholes.push_back(command);
    });
    if (own.tiles || !own.wholes.empty())
      all.push_back(std::move(own));
  }
  return all;
}

static StringRef getWhy(Operation *command) {
  return command->getAttrOfType<DictionaryAttr>(kStagedWholeAttr)
      .getAs<StringAttr>("why");
}

static auto listStates(Operation *command) {
  return command->getAttrOfType<DictionaryAttr>(kStagedWholeAttr)
      .getAs<ArrayAttr>("states")
      .getAsValueRange<StringAttr>();
}

static void printTiledJson(ProgramOp program, llvm::json::OStream &out) {
  out.attributeObject("offloaded_states", [&] {
    for (const Tiled &own : findTiled(program))
      out.attributeObject(own.body, [&] {
        out.attribute("tiles", own.tiles);
        out.attributeArray("whole", [&] {
          for (Operation *command : own.wholes)
            out.object([&] {
              out.attributeArray("states", [&] {
                for (StringRef state : listStates(command))
                  out.value(state);
              });
              out.attribute("why", getWhy(command));
            });
        });
      });
  });
}

static void printTiledText(ProgramOp program, llvm::raw_ostream &os) {
  for (const Tiled &own : findTiled(program)) {
    if (own.tiles)
      os << "@" << own.body << " works on " << own.tiles
         << " tiles of offloaded states (offload.tile), a kernel each\n";
    for (Operation *command : own.wholes) {
      os << "@" << own.body << " has all of ";
      llvm::interleaveComma(listStates(command), os, [&](StringRef state) {
        os << "'" << state << "'";
      });
      os << " on the device at once: " << getWhy(command) << "\n";
    }
  }
}

static void printCommandsJson(ProgramOp program, const EntryCaptures &all,
                              llvm::json::OStream &out) {
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
          printNumbers(addCommands(kinds), out);
          if (CommandCounts stored = countStored(entry, buffers);
              stored.commands)
            out.attributeObject("storage", [&] { printNumbers(stored, out); });
          out.attributeObject("kinds", [&] {
            for (auto &[kind, counts] : kinds)
              out.attributeObject(
                  kind, [&, &counts = counts] { printNumbers(counts, out); });
          });
        });
    });
    printTiledJson(program, out);
    out.attributeObject("waiting_for_copies", [&] {
      for (auto [body, part] : findWaiting(program))
        out.attribute(body, part);
    });
    out.attributeObject("captures", [&] {
      for (auto &[entry, captures] : all)
        out.attributeObject(EntryOp(entry).getKind(), [&, &found = captures] {
          out.attribute("count", found.count);
          out.attributeArray("split_by", [&] {
            for (const std::string &split : found.splits)
              out.value(split);
          });
        });
    });
  });
}

static void printCommandsText(ProgramOp program, const EntryCaptures &all,
                              llvm::raw_ostream &os) {
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
    add("all", addCommands(kinds));
  }
  table.print(os);
  for (auto entry : program.getOps<EntryOp>())
    if (CommandCounts stored = countStored(entry, buffers); stored.commands)
      os << "of these " << entry.getKind() << " has " << stored.commands
         << " copies that read " << stored.bytesRead << " bytes from a file "
         << "(nvme) and write " << stored.bytesWritten << " to it\n";
  for (auto [body, part] : findWaiting(program))
    os << "copies do not hide behind @" << body << ", which waits for them for "
       << llvm::formatv("{0:P1}", part) << " of its time\n";
  printTiledText(program, os);
  os << "captures of one call, where the device has any:\n";
  for (auto &[entry, captures] : all) {
    os << "  " << EntryOp(entry).getKind() << " " << captures.count;
    for (const std::string &split : captures.splits)
      os << (split == captures.splits.front() ? ", split by " : "; ") << split;
    os << "\n";
  }
}

LogicalResult report::printCommands(ModuleOp module, llvm::raw_ostream &os,
                                    bool json) {
  SmallVector<std::pair<ProgramOp, EntryCaptures>> programs;
  for (auto program : module.getOps<ProgramOp>()) {
    FailureOr<EntryCaptures> captures = findAll(program);
    if (failed(captures))
      return failure();
    programs.push_back({program, std::move(*captures)});
  }
  if (!json) {
    for (auto &[program, captures] : programs)
      printCommandsText(program, captures, os);
    return success();
  }
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attributeArray("programs", [&] {
      for (auto &[program, captures] : programs)
        printCommandsJson(program, captures, out);
    });
  });
  os << "\n";
  return success();
}
