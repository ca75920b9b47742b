// `--report=stages`.

#include "PipelineFigures.h"
#include "Reports.h"
#include "Table.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;

static std::string formatType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string formatRatio(double part, double whole) {
  return whole > 0 ? llvm::formatv("{0:f2}", part / whole).str() : "";
}

static void printChunks(const PipelineFigures &figures, llvm::raw_ostream &os) {
  double mean = figures.getMeanWork();
  Table table({"chunk", "stage", "first node", "last node", "parameters",
               "parameters of a rank", "states of a rank", "forward flops",
               "backward flops", "kept of a micro-batch", "work / mean"});
  for (auto [number, chunk] : llvm::enumerate(figures.chunks))
    table.add(
        {std::to_string(number),
         std::to_string(figures.placement.rankOfChunk[number]), chunk.first,
         chunk.last, std::to_string(chunk.parameters),
         formatBytes(chunk.parameterBytes), formatBytes(chunk.stateBytes),
         std::to_string(chunk.getFlops(/*backward=*/false)),
         std::to_string(chunk.getFlops(/*backward=*/true)),
         formatBytes(chunk.keptBytes + chunk.keptForWeightsBytes),
         formatRatio(chunk.getWork(), mean * figures.placement.ranks /
                                          figures.placement.countChunks())});
  table.print(os);
  os << "work of the stages, of their mean:";
  for (int64_t stage = 0; stage < figures.placement.ranks; ++stage)
    os << " " << formatRatio(figures.getStageWork(stage), mean);
  os << "\n";
}

static void printStagesText(const PipelineFigures &figures,
                            llvm::raw_ostream &os) {
  dist::ScheduleOp schedule = figures.schedule;
  os << "chunks of '" << schedule.getEntry() << "' on " << describeSize(figures)
     << ", schedule " << figures.name << ":\n";
  printChunks(figures, os);
  if (figures.crossings.empty())
    return;
  os << "what crosses the cuts, of a rank:\n";
  Table table({"from", "to", "value", "type", "bytes", "once per", "state"});
  for (const Crossing &crossing : figures.crossings)
    table.add({std::to_string(crossing.from), std::to_string(crossing.to),
               crossing.name, formatType(crossing.type),
               formatBytes(crossing.bytes),
               crossing.isRepeated ? "micro-batch" : "step", crossing.state});
  table.print(os);
  bool isTied = false;
  for (const Crossing &crossing : figures.crossings) {
    if (!crossing.isParameter)
      continue;
    os << (isTied ? "" : "parameters that several chunks read:\n") << "  "
       << crossing.state << ": of chunk " << crossing.from
       << ", which sends it to chunk " << crossing.to << "\n";
    isTied = true;
  }
}

static void printStagesJson(const PipelineFigures &figures,
                            llvm::raw_ostream &os) {
  dist::ScheduleOp schedule = figures.schedule;
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attribute("entry", schedule.getEntry());
    out.attribute("schedule", figures.name);
    out.attribute("micro_batches", figures.microBatches);
    out.attributeArray("stages", [&] {
      for (int64_t stage = 0; stage < figures.placement.ranks; ++stage)
        out.object([&] {
          out.attribute("stage", stage);
          out.attribute("work", figures.getStageWork(stage));
          out.attribute("of_mean", figures.getStageWork(stage) /
                                       std::max(figures.getMeanWork(), 1.0));
        });
    });
    out.attributeArray("chunks", [&] {
      for (auto [number, chunk] : llvm::enumerate(figures.chunks))
        out.object([&, number = number, &chunk = chunk] {
          out.attribute("chunk", int64_t(number));
          out.attribute("stage", figures.placement.rankOfChunk[number]);
          out.attribute("first_node", chunk.first);
          out.attribute("last_node", chunk.last);
          out.attribute("parameters", chunk.parameters);
          out.attribute("parameter_bytes_of_rank", chunk.parameterBytes);
          out.attribute("state_bytes_of_rank", chunk.stateBytes);
          out.attribute("forward_flops", chunk.getFlops(/*backward=*/false));
          out.attribute("backward_flops", chunk.getFlops(/*backward=*/true));
          out.attribute("work", chunk.getWork());
          out.attribute("kept_bytes_of_micro_batch",
                        chunk.keptBytes + chunk.keptForWeightsBytes);
        });
    });
    out.attributeArray("crossings", [&] {
      for (const Crossing &crossing : figures.crossings)
        out.object([&] {
          out.attribute("from", crossing.from);
          out.attribute("to", crossing.to);
          out.attribute("value", crossing.name);
          out.attribute("type", formatType(crossing.type));
          out.attribute("bytes", crossing.bytes);
          out.attribute("per", crossing.isRepeated ? "micro_batch" : "step");
          if (!crossing.state.empty())
            out.attribute("state", crossing.state);
        });
    });
    out.attributeArray("ties", [&] {
      for (const Crossing &crossing : figures.crossings)
        if (crossing.isParameter)
          out.object([&] {
            out.attribute("state", crossing.state);
            out.attribute("owner", crossing.from);
            out.attribute("reader", crossing.to);
          });
    });
  });
  os << "\n";
}

LogicalResult report::printStages(ModuleOp module, llvm::raw_ostream &os,
                                  bool json) {
  FailureOr<PipelineFigures> figures = countPipeline(module);
  if (failed(figures))
    return failure();
  json ? printStagesJson(*figures, os) : printStagesText(*figures, os);
  return success();
}
