// `--report=memory`.

#include "DrawFrontier.h"
#include "KeptInFlight.h"
#include "NodeNames.h"
#include "Reports.h"
#include "Table.h"
#include "dialects/NN/NN.h"
#include "lib/Cost/Prediction.h"
#include "lib/Plan/Liveness.h"
#include "lib/Plan/Roles.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;
using namespace accel::report;

/// Tensors named one by one.
static constexpr size_t kLargest = 8;
static constexpr StringLiteral kGaps = "alignment and gaps";

namespace {
/// An arena at the moment when most of it is alive.
struct Peak {
  ArenaOp arena;
  std::optional<int64_t> predicted; ///< its bytes, before it was planned
  llvm::MapVector<StringAttr, int64_t> roles; ///< adds up to the arena
  SmallVector<Liveness::Held> largest;
};

struct StateBytes {
  int64_t bytes = 0, padding = 0, tensors = 0;
};
} // namespace

static std::optional<int64_t>
findPrediction(ArenaOp arena, ArrayRef<cost::PredictedArena> predicted) {
  int64_t stage = arena->getParentOfType<ProgramOp>().getStage();
  StringRef space = stringifySpace(arena.getSpace());
  for (const cost::PredictedArena &each : predicted)
    if (each.stage == stage && each.space == space)
      return each.bytes;
  return std::nullopt;
}

static Peak measure(ArenaOp arena, const Liveness &liveness,
                    const SymbolTable &symbols,
                    ArrayRef<cost::PredictedArena> predicted) {
  Peak peak{arena,
            findPrediction(arena, predicted),
            {},
            liveness.getPeak(arena.getSpace())};
  int64_t gaps = arena.getBytes();
  for (auto [buffer, content] : peak.largest) {
    auto role = StringAttr::get(arena.getContext(),
                                describeRole(buffer, content, symbols));
    peak.roles[role] += Liveness::getBytes(buffer);
    gaps -= Liveness::getBytes(buffer);
  }
  if (gaps != 0)
    peak.roles[StringAttr::get(arena.getContext(), kGaps)] = gaps;
  llvm::stable_sort(peak.largest, [](const auto &lhs, const auto &rhs) {
    return Liveness::getBytes(lhs.buffer) > Liveness::getBytes(rhs.buffer);
  });
  if (peak.largest.size() > kLargest)
    peak.largest.resize(kLargest);
  return peak;
}

/// Of all ranks together, what pads a state; of one rank, its bytes.
static llvm::MapVector<StringAttr, StateBytes>
addStates(ProgramOp program, const SymbolTable &symbols) {
  llvm::MapVector<StringAttr, StateBytes> roles;
  for (auto buffer : program.getOps<BufferOp>()) {
    if (buffer.getRole() != Role::state)
      continue;
    StateBytes &total = roles[StringAttr::get(
        program.getContext(), describeRole(buffer, Content::Own, symbols))];
    total.bytes += Liveness::getBytes(buffer);
    ++total.tensors;
    auto state = symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
    if (!state)
      continue;
    auto type = cast<RankedTensorType>(state.getType());
    total.padding +=
        (type.getNumElements() - state.getLogicalType().getNumElements()) *
        llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return roles;
}

/// Whether it is memory, and no file: a peak is of memory.
static bool isMemory(const Peak &peak) {
  return ArenaOp(peak.arena).getSpace() != Space::nvme;
}

static int64_t addArenas(ArrayRef<Peak> peaks) {
  int64_t sum = 0;
  for (Peak peak : peaks)
    if (isMemory(peak))
      sum += peak.arena.getBytes();
  return sum;
}

/// Of all of a rank's memory; none where an arena was not predicted.
static std::optional<int64_t> addPredictions(ArrayRef<Peak> peaks) {
  int64_t sum = 0;
  for (const Peak &peak : peaks) {
    if (!isMemory(peak))
      continue;
    if (!peak.predicted)
      return std::nullopt;
    sum += *peak.predicted;
  }
  return sum;
}

/// ", predicted 12.0 KiB (12288): +0.31 %"
static std::string describePrediction(std::optional<int64_t> predicted,
                                      int64_t planned) {
  if (!predicted)
    return "";
  return llvm::formatv(", predicted {0}: {1}", formatBytes(*predicted),
                       formatDifference(*predicted, planned));
}

static void printMemoryJson(ProgramOp program, ArrayRef<Peak> peaks,
                            const Liveness &live, const SymbolTable &symbols,
                            llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  auto writePrediction = [&](std::optional<int64_t> predicted,
                             int64_t planned) {
    if (!predicted)
      return;
    out.attribute("predicted_bytes", *predicted);
    out.attribute("difference_percent",
                  cost::getDifferencePercent(*predicted, planned));
  };
  int64_t planned = addArenas(peaks);
  out.object([&] {
    out.attribute("ranks", int64_t(program.getRanks()));
    out.attribute("stage", int64_t(program.getStage()));
    out.attribute("planned_peak_bytes", planned);
    writePrediction(addPredictions(peaks), planned);
    out.attributeArray("arenas", [&] {
      for (Peak peak : peaks)
        out.object([&] {
          out.attribute("space", stringifySpace(peak.arena.getSpace()));
          out.attribute("bytes", int64_t(peak.arena.getBytes()));
          writePrediction(peak.predicted, int64_t(peak.arena.getBytes()));
          out.attribute("reserve", int64_t(peak.arena.getReserve()));
          out.attributeObject("roles", [&] {
            for (auto [role, bytes] : peak.roles)
              out.attribute(role.getValue(), bytes);
          });
          out.attributeArray("largest", [&] {
            for (auto [buffer, content] : peak.largest)
              out.object([&, buffer = buffer, content = content]() mutable {
                out.attribute("buffer", buffer.getSymName());
                out.attribute("bytes", Liveness::getBytes(buffer));
                out.attribute("role", describeRole(buffer, content, symbols));
                out.attribute("node", describeNode(buffer));
              });
          });
        });
    });
    out.attributeObject("states", [&] {
      for (auto &[role, total] : addStates(program, symbols))
        out.attributeObject(role.getValue(), [&, &total = total] {
          out.attribute("bytes", total.bytes);
          out.attribute("padding_bytes_of_all_ranks", total.padding);
          out.attribute("tensors", total.tensors);
        });
    });
    KeptInFlight kept = countKept(program);
    out.attributeObject("micro_batches_in_flight", [&] {
      out.attribute("count", kept.microBatches);
      out.attribute("activation_bytes_each", kept.bytesEach);
    });
    out.attribute("gather_units_in_flight",
                  live.getUnitsInFlight(Content::GatheredWeight));
    out.attribute("gradient_units_in_flight",
                  live.getUnitsInFlight(Content::WholeGradient));
    out.attribute("secondary_copy_bytes",
                  live.getMostBytes(Content::SecondaryCopy));
  });
  os << "\n";
}

static void printMemoryText(ProgramOp program, ArrayRef<Peak> peaks,
                            const Liveness &live, const SymbolTable &symbols,
                            llvm::raw_ostream &os) {
  int64_t planned = addArenas(peaks);
  os << "planned peak of each of " << program.getRanks()
     << " ranks: " << formatBytes(planned)
     << describePrediction(addPredictions(peaks), planned) << "\n";
  for (Peak peak : peaks) {
    os << "arena '" << stringifySpace(peak.arena.getSpace())
       << "': " << formatBytes(peak.arena.getBytes())
       << describePrediction(peak.predicted, peak.arena.getBytes());
    if (peak.arena.getReserve())
      os << ", and " << formatBytes(peak.arena.getReserve())
         << (isMemory(peak) ? " reserved for libraries"
                            : " of memory by way of which the file is moved");
    os << "\n";
    Table roles({"at the peak", "bytes"});
    for (auto [role, bytes] : peak.roles)
      roles.add({role.str(), formatBytes(bytes)});
    roles.print(os);
    Table largest({"largest", "bytes", "role", "node"});
    for (auto [buffer, content] : peak.largest)
      largest.add(
          {buffer.getSymName().str(), formatBytes(Liveness::getBytes(buffer)),
           describeRole(buffer, content, symbols), describeNode(buffer)});
    largest.print(os);
  }
  os << "states of a rank:\n";
  Table states({"role", "tensors", "bytes", "padding of all ranks"});
  for (auto &[role, total] : addStates(program, symbols))
    states.add({role.str(), std::to_string(total.tensors),
                formatBytes(total.bytes), formatBytes(total.padding)});
  states.print(os);
  if (KeptInFlight kept = countKept(program); kept.bytesEach)
    os << "micro-batches in flight: " << kept.microBatches
       << ", each keeps activations of " << formatBytes(kept.bytesEach)
       << " for its backward\n";
  for (auto [content, what] :
       {std::pair(Content::GatheredWeight, "gathered weights"),
        std::pair(Content::WholeGradient, "whole gradients")})
    if (int64_t units = live.getUnitsInFlight(content))
      os << "units of " << what << " alive at once: " << units << " at most\n";
  if (int64_t bytes = live.getMostBytes(Content::SecondaryCopy))
    os << "secondary copies of weights, from forward to backward: "
       << formatBytes(bytes) << " at most\n";
}

static void printFrontier(ArrayRef<cost::FrontierPoint> points,
                          llvm::raw_ostream &os) {
  os << "with a memory budget (--memory-budget), of the stage that has most:\n";
  bool isMoreDecided = llvm::any_of(
      points, [](const auto &point) { return !point.decided.empty(); });
  std::vector<std::string> heads{"peak of a rank", "more work",
                                 "time of a step", "computed again"};
  if (isMoreDecided)
    heads.push_back("beside");
  Table table(heads);
  for (const cost::FrontierPoint &point : points) {
    std::vector<std::string> row{
        formatBytes(point.bytes),
        llvm::formatv("{0:f1} %", 100 * point.moreWork),
        llvm::formatv("{0:f3} times", point.time), point.what};
    if (isMoreDecided)
      row.push_back(point.decided);
    table.add(row);
  }
  table.print(os);
}

static void printFrontierJson(ArrayRef<cost::FrontierPoint> points,
                              llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attributeArray("frontier", [&] {
      for (const cost::FrontierPoint &point : points)
        out.object([&] {
          out.attribute("peak_bytes", point.bytes);
          out.attribute("more_work", point.moreWork);
          out.attribute("time", point.time);
          out.attribute("computed_again", point.what);
          if (!point.decided.empty())
            out.attribute("decided", point.decided);
        });
    });
  });
  os << "\n";
}

LogicalResult report::printMemory(ModuleOp module, StringRef file,
                                  llvm::raw_ostream &os, bool json) {
  auto predicted = cost::readPrediction(module);
  auto frontier = cost::readFrontier(module);
  if (failed(predicted) || failed(frontier))
    return failure();
  if (!json && file.ends_with(".svg")) {
    if (frontier->empty())
      return module.emitError()
             << "expected --what-if of a training step with '" << file
             << "': the picture is of what it would take with less memory";
    drawFrontier(*frontier, os);
    return success();
  }
  SymbolTable symbols(module);
  for (auto program : module.getOps<ProgramOp>()) {
    Liveness liveness = Liveness::compute(program);
    SmallVector<Peak> peaks;
    for (auto arena : program.getOps<ArenaOp>())
      peaks.push_back(measure(arena, liveness, symbols, *predicted));
    if (json)
      printMemoryJson(program, peaks, liveness, symbols, os);
    else
      printMemoryText(program, peaks, liveness, symbols, os);
  }
  if (!frontier->empty())
    (json ? printFrontierJson : printFrontier)(*frontier, os);
  return success();
}
