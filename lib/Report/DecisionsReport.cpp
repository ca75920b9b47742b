// `--report=decisions`: what was chosen by cost, what else there was, and why.

#include "Reports.h"
#include "Table.h"
#include "dialects/Plan/Plan.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Prediction.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;
using cost::Alternative;
using cost::Decision;

/// "1.25 ms"
static std::string formatSeconds(double seconds) {
  if (seconds < 1e-3)
    return llvm::formatv("{0:f2} us", 1e6 * seconds).str();
  if (seconds < 1)
    return llvm::formatv("{0:f2} ms", 1e3 * seconds).str();
  return llvm::formatv("{0:f2} s", seconds).str();
}

namespace {
/// An arena as it was predicted, and as it is.
struct Arena {
  cost::PredictedArena predicted;
  int64_t planned = 0;

  std::string describe() const {
    return "stage " + std::to_string(predicted.stage) + ", " + predicted.space;
  }
};
} // namespace

static FailureOr<SmallVector<Arena>> collectArenas(ModuleOp module) {
  auto predicted = cost::readPrediction(module);
  if (failed(predicted))
    return failure();
  SmallVector<Arena> arenas;
  for (const cost::PredictedArena &each : *predicted) {
    Arena &arena = arenas.emplace_back(Arena{each});
    for (auto program : module.getOps<plan::ProgramOp>())
      for (auto planned : program.getOps<plan::ArenaOp>())
        if (int64_t(program.getStage()) == each.stage &&
            plan::stringifySpace(planned.getSpace()) == each.space)
          arena.planned = planned.getBytes();
  }
  return arenas;
}

static void printDecisionsText(ArrayRef<Decision> decisions,
                               ArrayRef<Arena> arenas, llvm::raw_ostream &os) {
  Table table({"decision", "of", "value", "time", "bytes of a rank", "reason"});
  for (const Decision &decision : decisions) {
    auto add = [&](const Alternative &value, bool isChosen) {
      table.add(
          {isChosen ? decision.name : "", isChosen ? decision.of : "or",
           value.value + (value.detail.empty() ? "" : ": " + value.detail),
           value.seconds ? formatSeconds(*value.seconds) : "",
           value.bytes ? formatBytes(*value.bytes) : "",
           isChosen ? decision.reason : ""});
    };
    add(decision.chosen, /*isChosen=*/true);
    for (const Alternative &other : decision.others)
      add(other, /*isChosen=*/false);
  }
  table.print(os);
  if (arenas.empty())
    return;
  os << "memory of a rank:\n";
  Table memory({"arena of", "predicted", "planned", "difference"});
  for (const Arena &arena : arenas)
    memory.add({arena.describe(), formatBytes(arena.predicted.bytes),
                formatBytes(arena.planned),
                formatDifference(arena.predicted.bytes, arena.planned)});
  memory.print(os);
}

static void printDecisionsJson(ArrayRef<Decision> decisions,
                               ArrayRef<Arena> arenas, llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  auto writeCosts = [&](const Alternative &value) {
    out.attribute("value", value.value);
    if (!value.detail.empty())
      out.attribute("detail", value.detail);
    if (value.seconds)
      out.attribute("seconds", *value.seconds);
    if (value.bytes)
      out.attribute("bytes", *value.bytes);
  };
  out.array([&] {
    for (const Decision &decision : decisions)
      out.object([&] {
        out.attribute("decision", decision.name);
        out.attribute("of", decision.of);
        writeCosts(decision.chosen);
        out.attribute("reason", decision.reason);
        out.attributeArray("alternatives", [&] {
          for (const Alternative &other : decision.others)
            out.object([&] { writeCosts(other); });
        });
      });
    for (const Arena &arena : arenas)
      out.object([&] {
        out.attribute("decision", "memory");
        out.attribute("of", arena.describe());
        out.attribute("bytes", arena.predicted.bytes);
        out.attribute("planned_bytes", arena.planned);
        out.attribute(
            "difference_percent",
            cost::getDifferencePercent(arena.predicted.bytes, arena.planned));
      });
  });
  os << "\n";
}

LogicalResult report::printDecisions(ModuleOp module, llvm::raw_ostream &os,
                                     bool json) {
  if (!cost::isAskedForDecisions(module))
    return module.emitError()
           << "expected a module that was asked for its decisions before they "
              "were made, found none in it: compile it from the model, or from "
              "an earlier phase, with --report=decisions";
  auto decisions = cost::readDecisions(module);
  if (failed(decisions))
    return failure();
  auto arenas = collectArenas(module);
  if (failed(arenas))
    return failure();
  (json ? printDecisionsJson : printDecisionsText)(*decisions, *arenas, os);
  return success();
}
