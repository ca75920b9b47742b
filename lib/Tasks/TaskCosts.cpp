// Adds up what the ops of each task take, and the bytes of cuts.

#include "TaskCosts.h"

#include "dialects/Interfaces/Cost.h"
#include "lib/Cost/Work.h"
#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::tasks;
using namespace accel::cost;

static double getBytes(Value value) { return getTensorBytes(value.getType()); }

namespace {
/// What a task of each chunk leaves and a later one reads: counted once, with
/// what is kept until the weights' gradients where those read it.
class Kept {
public:
  explicit Kept(const TaskHomes &homes) : homes(homes) {}

  void read(Operation *reader, Place place) {
    bool isOfWeights = place.home == Home::BackwardWeight;
    SmallVector<Value> values(reader->getOperands());
    while (!values.empty()) {
      Value value = values.pop_back_val();
      Operation *maker = value.getDefiningOp();
      if (!maker) {
        auto argument = cast<BlockArgument>(value);
        auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
        if (entry.getArgAttr(argument.getArgNumber(), nn::kInputAttr))
          add(value, place.chunk, isOfWeights);
        continue;
      }
      if (TaskHomes::isFree(maker) || homes.isWidenedAgain(maker, place.home)) {
        llvm::append_range(values, maker->getOperands());
        continue;
      }
      Home home = homes.getHome(value);
      if (home == Home::Forward || (isOfWeights && home == Home::BackwardInput))
        add(value, place.chunk, isOfWeights);
    }
  }

  void writeTo(pipeline::Costs &costs) const {
    for (const auto &[key, isOfWeights] : kept) {
      pipeline::ChunkCost &cost = costs.chunks[key.first];
      int64_t &bytes = homes.getHome(key.second) == Home::BackwardInput
                           ? cost.betweenBytes
                       : isOfWeights ? cost.weightBytes
                                     : cost.inputBytes;
      bytes += getTensorBytes(key.second.getType());
    }
  }

private:
  void add(Value value, int64_t chunk, bool isOfWeights) {
    kept[{chunk, value}] |= isOfWeights;
  }

  const TaskHomes &homes;
  llvm::MapVector<std::pair<int64_t, Value>, bool> kept;
};
} // namespace

pipeline::Problem tasks::measureTasks(func::FuncOp entry,
                                      const TaskHomes &homes, int64_t stages,
                                      int64_t microBatches) {
  pipeline::Problem problem;
  problem.ranks = stages;
  problem.microBatches = microBatches;
  problem.cap.slots = stages;
  problem.costs.secondsPerTransfer = kFlopsPerMessage;
  problem.costs.secondsPerByte = kFlopsPerByteSent;
  problem.costs.chunks.assign(homes.countChunks(), {0, 0, 0, 0});
  // By the two chunks: bytes of values, and of gradients.
  std::map<std::pair<int64_t, int64_t>, std::pair<double, double>> between;
  // Of a chunk's whole backward, up to each op.
  llvm::DenseMap<Operation *, double> workUpTo;
  Kept kept(homes);
  for (Operation &op : entry.front().without_terminator()) {
    if (TaskHomes::isFree(&op) || !homes.isLive(&op))
      continue;
    Place place = homes.getPlace(&op, homes.getChunk(op.getResult(0)));
    if (auto sum = homes.getReductions().find(&op);
        sum != homes.getReductions().end())
      place.home = sum->second.adds;
    if (place.home != Home::Forward && !isBackward(place.home))
      continue; // once a step
    if (auto cut = dyn_cast<nn::CutOp>(op)) {
      int64_t from = cut.getFrom(), to = cut.getTo();
      auto &[values, gradients] = between[std::minmax(from, to)];
      (from < to ? values : gradients) += getBytes(cut.getInput());
      if (auto made = workUpTo.find(cut.getInput().getDefiningOp());
          from > to && made != workUpTo.end()) {
        auto &toGradient = problem.costs.chunks[from].backwardToGradient;
        toGradient = std::max(toGradient.value_or(0), made->second);
      }
      continue;
    }
    pipeline::ChunkCost &cost = problem.costs.chunks[place.chunk];
    (place.home == Home::Forward         ? cost.forward
     : place.home == Home::BackwardInput ? cost.backwardInput
                                         : cost.backwardWeight) += getWork(&op);
    if (isBackward(place.home)) {
      kept.read(&op, place);
      workUpTo[&op] = cost.backwardInput + cost.backwardWeight;
    }
  }
  for (pipeline::ChunkCost &cost : problem.costs.chunks)
    cost.backward = cost.backwardInput + cost.backwardWeight;
  kept.writeTo(problem.costs);
  for (auto &[chunks, bytes] : between) {
    problem.edges.push_back({chunks.first, chunks.second});
    problem.costs.edgeBytes.push_back(std::max(bytes.first, bytes.second));
  }
  return problem;
}
