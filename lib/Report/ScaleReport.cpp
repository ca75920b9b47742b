// `--report=scale`.

#include "Reports.h"
#include "Table.h"
#include "lib/Scale/PredictStep.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using namespace accel::report;
using namespace accel::scale;

namespace {
struct Predicted {
  mutable EntryOp entry; // op handles are pointers
  Prediction step;
};

/// A program on machines.
struct Scaled {
  mutable ProgramOp program;
  Links links;
  int64_t ranks = 1, planned = 0;
  std::vector<Predicted> entries;

  int64_t unitsOf(size_t level) const {
    return ranks / (level ? links.levels[level - 1].ranks : 1);
  }
  int64_t ranksOfMachine() const { return links.levels[0].ranks; }
};
} // namespace

static std::string formatStepSeconds(double seconds) {
  if (seconds >= 1)
    return llvm::formatv("{0:f3} s", seconds).str();
  return seconds >= 1e-3 ? llvm::formatv("{0:f2} ms", seconds * 1e3).str()
                         : llvm::formatv("{0:f1} us", seconds * 1e6).str();
}

static std::string formatShare(double part, double whole) {
  return whole > 0 ? llvm::formatv("{0:f1} %", 100 * part / whole).str() : "";
}

static std::string formatSize(double bytes) {
  return formatBytes(static_cast<int64_t>(bytes));
}

static void printScaleText(const Scaled &scaled, llvm::raw_ostream &os) {
  const Links &links = scaled.links;
  int64_t machines = scaled.ranks / scaled.ranksOfMachine();
  for (const Predicted &predicted : scaled.entries) {
    const Prediction &step = predicted.step;
    os << "one call of '" << predicted.entry.getKind() << "' on "
       << scaled.ranks << (scaled.ranks == 1 ? " rank, " : " ranks, ")
       << machines << (machines == 1 ? " machine of " : " machines of ")
       << scaled.ranksOfMachine() << ":\n";
    Table times({"", "time", "share"});
    auto add = [&](const char *what, double seconds) {
      times.add({what, formatStepSeconds(seconds),
                 formatShare(seconds, step.seconds)});
    };
    add("predicted", step.seconds);
    add("computing", step.computing);
    add("exchanging, in between", step.exchanging);
    add("waiting for other streams", step.waiting);
    times.print(os);
    os << "links, each way:\n";
    Table table({"level", "links", "alpha", "bytes/s", "at work",
                 "most through one", "through all"});
    for (auto [i, level] : llvm::enumerate(links.levels))
      table.add({level.name, std::to_string(scaled.unitsOf(i)),
                 formatStepSeconds(level.seconds),
                 llvm::formatv("{0:e2}", level.bytesPerSecond).str(),
                 formatShare(step.busySeconds[i], step.seconds),
                 formatSize(step.busiest[i]), formatSize(step.all[i])});
    table.print(os);
    if (step.exchanges.empty())
      continue;
    os << "exchanges:\n";
    std::vector<std::string> head{"kind", "count", "bytes of a rank", "alone"};
    for (const cost::Level &level : ArrayRef(links.levels).drop_front())
      head.push_back(level.name + ", one link");
    Table kinds(head);
    for (auto &[name, total] : step.exchanges) {
      std::vector<std::string> row{name.str(), std::to_string(total.count),
                                   formatSize(total.bytes),
                                   formatStepSeconds(total.seconds)};
      for (double bytes : ArrayRef(total.busiest).drop_front())
        row.push_back(formatSize(bytes));
      kinds.add(row);
    }
    kinds.print(os);
  }
  os << "planned memory: " << formatBytes(scaled.planned) << " of a rank, "
     << formatBytes(scaled.planned * scaled.ranksOfMachine())
     << " of a machine\n";
}

static void printScaleJson(const Scaled &scaled, llvm::json::OStream &out) {
  out.object([&] {
    out.attribute("program", scaled.program.getSymName());
    out.attribute("ranks", scaled.ranks);
    out.attribute("ranks_of_machine", scaled.ranksOfMachine());
    out.attribute("planned_bytes_of_rank", scaled.planned);
    out.attributeObject("entries", [&] {
      for (const Predicted &predicted : scaled.entries)
        out.attributeObject(
            predicted.entry.getKind(), [&, &step = predicted.step] {
              out.attribute("seconds", step.seconds);
              out.attribute("computing", step.computing);
              out.attribute("exchanging", step.exchanging);
              out.attribute("waiting", step.waiting);
              out.attribute("flops_of_rank", step.flops);
              out.attributeArray("levels", [&] {
                for (auto [i, level] : llvm::enumerate(scaled.links.levels))
                  out.object([&, i = i, &level = level] {
                    out.attribute("name", level.name);
                    out.attribute("links", scaled.unitsOf(i));
                    out.attribute("busy_seconds", step.busySeconds[i]);
                    out.attribute("bytes_of_busiest", step.busiest[i]);
                    out.attribute("bytes", step.all[i]);
                  });
              });
              out.attributeArray("exchanges", [&] {
                for (auto &[name, total] : step.exchanges)
                  out.object([&, name = name, &total = total] {
                    out.attribute("kind", name.getValue());
                    out.attribute("count", total.count);
                    out.attribute("bytes_of_rank", total.bytes);
                    out.attribute("seconds_alone", total.seconds);
                    out.attributeArray("bytes_of_busiest", [&] {
                      for (double bytes : total.busiest)
                        out.value(bytes);
                    });
                  });
              });
            });
    });
  });
}

LogicalResult report::printScale(ModuleOp module, StringRef links,
                                 llvm::raw_ostream &os, bool json) {
  dist::MeshOp mesh = dist::MeshOp::of(module);
  int64_t ranks = mesh ? mesh.getRankCount() : 1;
  FailureOr<Links> read = cost::readLinks(links, ranks, module.getContext());
  if (failed(read))
    return failure();
  auto scale = [&](ProgramOp program) {
    Scaled scaled{program, *read, ranks, 0, {}};
    for (auto arena : program.getOps<ArenaOp>())
      if (arena.getSpace() != Space::nvme)
        scaled.planned += arena.getBytes();
    TrafficModel traffic(mesh, scaled.links);
    for (auto entry : program.getOps<EntryOp>())
      if (entry.getKind() != kLoadEntry)
        scaled.entries.push_back(
            {entry, predictStep(entry, scaled.links, traffic)});
    return scaled;
  };
  if (!json) {
    for (auto program : module.getOps<ProgramOp>())
      printScaleText(scale(program), os);
    return success();
  }
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attributeArray("programs", [&] {
      for (auto program : module.getOps<ProgramOp>())
        printScaleJson(scale(program), out);
    });
  });
  os << "\n";
  return success();
}
