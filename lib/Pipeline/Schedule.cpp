// Placements, the transfers that edges imply, and how tasks and transfers are
// written in messages.

#include "Schedule.h"

using namespace accel::pipeline;

std::string accel::pipeline::toString(const Task &task) {
  return "FBIW"[static_cast<int>(task.kind)] + std::to_string(task.chunk) +
         "[" + std::to_string(task.microBatch) + "]";
}

llvm::Expected<Task> accel::pipeline::parseTask(llvm::StringRef text) {
  llvm::StringRef rest = text;
  size_t kind = llvm::StringRef("FBIW").find(rest.take_front(1));
  Task task{TaskKind::Forward, 0, 0};
  if (rest.empty() || kind == llvm::StringRef::npos ||
      (rest = rest.drop_front()).consumeInteger(10, task.chunk) ||
      !rest.consume_front("[") || rest.consumeInteger(10, task.microBatch) ||
      rest != "]")
    return llvm::createStringError(
        "expected a task like F2[5], the kind F, B, I or W, the chunk and the "
        "micro-batch, found '" +
        text + "'");
  task.kind = static_cast<TaskKind>(kind);
  return task;
}

std::string accel::pipeline::toString(const Transfer &transfer,
                                      llvm::ArrayRef<Edge> edges) {
  return (transfer.gradient ? "gradient " : "value ") +
         std::to_string(getSender(transfer, edges)) + "->" +
         std::to_string(getReceiver(transfer, edges)) + "[" +
         std::to_string(transfer.microBatch) + "]";
}

Placement Placement::interleaved(int64_t ranks, int64_t chunksPerRank) {
  Placement placement;
  placement.ranks = ranks;
  for (int64_t chunk = 0; chunk < ranks * chunksPerRank; ++chunk)
    placement.rankOfChunk.push_back(chunk % ranks);
  return placement;
}

Placement Placement::vee(int64_t ranks) {
  Placement placement;
  placement.ranks = ranks;
  for (int64_t chunk = 0; chunk < 2 * ranks; ++chunk)
    placement.rankOfChunk.push_back(std::min(chunk, 2 * ranks - 1 - chunk));
  return placement;
}

Edges accel::pipeline::makeChain(int64_t chunks) {
  Edges edges;
  for (int64_t chunk = 1; chunk < chunks; ++chunk)
    edges.push_back({chunk - 1, chunk});
  return edges;
}

int64_t accel::pipeline::getSender(const Transfer &transfer,
                                   llvm::ArrayRef<Edge> edges) {
  const Edge &edge = edges[transfer.edge];
  return transfer.gradient ? edge.target : edge.source;
}

int64_t accel::pipeline::getReceiver(const Transfer &transfer,
                                     llvm::ArrayRef<Edge> edges) {
  const Edge &edge = edges[transfer.edge];
  return transfer.gradient ? edge.source : edge.target;
}

std::vector<Transfer>
accel::pipeline::listTransfers(const Schedule &schedule,
                               llvm::ArrayRef<Edge> edges) {
  const auto &rankOf = schedule.placement.rankOfChunk;
  std::vector<Transfer> transfers;
  for (size_t edge = 0; edge < edges.size(); ++edge) {
    if (rankOf[edges[edge].source] == rankOf[edges[edge].target])
      continue;
    for (bool gradient : {false, true})
      for (int64_t micro = 0; micro < schedule.microBatches; ++micro)
        transfers.push_back({edge, gradient, micro});
  }
  return transfers;
}
