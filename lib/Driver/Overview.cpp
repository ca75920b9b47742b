// The overview of a plan, from its arenas and its main entry.

#include "Overview.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace accel;

/// Commands of one call of `entry`, by kind.
static llvm::MapVector<StringRef, int64_t>
countCommands(plan::ProgramOp program, plan::EntryOp entry) {
  llvm::MapVector<StringRef, int64_t> kinds;
  entry.walk([&](plan::RunOp run) {
    program.lookupSymbol<plan::BodyOp>(run.getTask())
        .walk([&](plan::CommandOpInterface command) {
          kinds[command->getName().stripDialect()] += run.getTrips();
        });
  });
  return kinds;
}

static int64_t getMicroBatches(ModuleOp module) {
  if (dist::MeshOp mesh = dist::MeshOp::of(module))
    return mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
  return 1;
}

static std::string sizeText(int64_t bytes) {
  return bytes < (1 << 20)
             ? llvm::formatv("{0:F1} KiB", double(bytes) / (1 << 10)).str()
             : llvm::formatv("{0:F1} MiB", double(bytes) / (1 << 20)).str();
}

static void printProgram(plan::ProgramOp program, llvm::raw_ostream &os) {
  int64_t planned = 0, reserve = 0;
  std::string spaces;
  for (auto arena : program.getOps<plan::ArenaOp>()) {
    planned += arena.getBytes();
    reserve += arena.getReserve();
    spaces += (spaces.empty() ? "" : ", ") +
              stringifySpace(arena.getSpace()).str() + " " +
              sizeText(arena.getBytes());
  }
  os << "  memory of a rank: " << sizeText(planned) << " planned (" << spaces
     << "), " << sizeText(reserve) << " reserved beside it\n";
  for (auto entry : program.getOps<plan::EntryOp>()) {
    if (entry.getKind() == plan::kLoadEntry)
      continue;
    int64_t all = 0;
    std::string kinds;
    for (auto &[kind, count] : countCommands(program, entry)) {
      all += count;
      kinds += (kinds.empty() ? "" : ", ") + kind.str() + " " +
               std::to_string(count);
    }
    os << "  commands of '" << entry.getKind() << "': " << all << " (" << kinds
       << ")\n";
  }
}

void driver::printOverview(ModuleOp module, StringRef input,
                           llvm::raw_ostream &os) {
  for (auto program : module.getOps<plan::ProgramOp>()) {
    int64_t ranks = program.getRanks(), parts = getMicroBatches(module);
    bool trains = llvm::any_of(program.getOps<plan::EntryOp>(), [](auto entry) {
      return entry.getKind() == "step";
    });
    os << input << ": " << (trains ? "a training step" : "a forward pass")
       << " on " << ranks << (ranks == 1 ? " rank" : " ranks");
    if (parts > 1)
      os << ", in " << parts << " micro-batches";
    os << "\n";
    printProgram(program, os);
  }
  os << "-o FILE.accx writes it as an executable, which acc-run runs; "
        "--compile-to=plan prints\nits text, --report=memory, sharding, "
        "collectives or commands what it costs.\n";
}
