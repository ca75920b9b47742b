// Schedules that split backwards: ZB-H1, ZB-H2, ZB-V and DualPipeV.

#include "Generators.h"
#include <deque>
#include <map>

using namespace accel::pipeline;

namespace {

/// Writes a rank's tasks down, of each chunk and kind on one micro-batch after
/// another, and remembers the weight gradients that are still to come.
class Writer {
public:
  explicit Writer(int64_t microBatches) : microBatches(microBatches) {}

  void forward(int64_t chunk) { write(TaskKind::Forward, chunk, forwards); }
  void whole(int64_t chunk) { write(TaskKind::Backward, chunk, backwards); }
  void input(int64_t chunk) {
    pending.push_back({TaskKind::BackwardWeight, chunk, backwards[chunk]});
    write(TaskKind::BackwardInput, chunk, backwards);
  }
  /// The weight gradient that has waited longest; none if none waits.
  void weight() {
    if (pending.empty())
      return;
    add(pending.front());
    pending.pop_front();
  }
  /// Of those of one chunk.
  void weight(int64_t chunk) {
    auto oldest = llvm::find_if(
        pending, [&](const Task &task) { return task.chunk == chunk; });
    if (oldest == pending.end())
      return;
    add(*oldest);
    pending.erase(oldest);
  }
  void allWeights() {
    while (!pending.empty())
      weight();
  }
  std::vector<Task> take() { return std::move(tasks); }

private:
  void write(TaskKind kind, int64_t chunk, std::map<int64_t, int64_t> &counts) {
    add({kind, chunk, counts[chunk]++});
  }
  void add(const Task &task) {
    if (task.microBatch < microBatches)
      tasks.push_back(task);
  }

  int64_t microBatches;
  std::map<int64_t, int64_t> forwards, backwards;
  std::deque<Task> pending;
  std::vector<Task> tasks;
};

} // namespace

std::vector<Task> accel::pipeline::orderZBH1(Shape shape, int64_t rank) {
  Writer writer(shape.microBatches);
  int64_t ahead = std::min(shape.ranks - 1 - rank, shape.microBatches);
  for (int64_t turn = 0; turn < ahead; ++turn)
    writer.forward(rank);
  for (int64_t turn = 0; turn < shape.microBatches; ++turn) {
    if (ahead + turn < shape.microBatches)
      writer.forward(rank);
    writer.input(rank);
    if (turn >= rank)
      writer.weight();
  }
  writer.allWeights();
  return writer.take();
}

std::vector<Task> accel::pipeline::orderZBH2(Shape shape, int64_t rank) {
  Writer writer(shape.microBatches);
  int64_t ahead =
      std::min(2 * (shape.ranks - 1 - rank) + 1, shape.microBatches);
  // In the middle every rank runs I, W, F. Once rank 0 is out of forwards it
  // wants an input gradient every second task: others have as many forwards
  // left as fill the places of weight gradients between them.
  int64_t middle =
      std::max<int64_t>(0, shape.microBatches - (2 * shape.ranks - 1));
  for (int64_t turn = 0; turn < ahead; ++turn)
    writer.forward(rank);
  for (int64_t turn = 0; turn < shape.microBatches; ++turn) {
    writer.input(rank);
    bool isForwardLeft = ahead + turn < shape.microBatches;
    if (turn < middle || !isForwardLeft)
      writer.weight();
    if (isForwardLeft)
      writer.forward(rank);
  }
  writer.allWeights();
  return writer.take();
}

std::vector<Task> accel::pipeline::orderZBV(Shape shape, int64_t rank) {
  int64_t down = rank, up = 2 * shape.ranks - 1 - rank;
  int64_t later = shape.ranks - rank;
  int64_t count = std::max(2 * shape.ranks - 1, shape.microBatches);
  Writer writer(shape.microBatches);
  auto backward = [&](int64_t chunk) {
    writer.input(chunk);
    writer.weight(chunk);
  };
  int64_t forwards = 2 * later - 1, turned = 0;
  for (int64_t turn = 0; turn < forwards; ++turn)
    writer.forward(down);
  for (int64_t turn = 0; turn < rank; ++turn, ++forwards, ++turned) {
    writer.forward(up);
    writer.forward(down);
  }
  for (int64_t turn = 0; turn < later; ++turn, ++turned) {
    writer.forward(up);
    backward(up);
  }
  for (; turned < count; ++turned) {
    if (forwards < count) {
      writer.forward(down);
      ++forwards;
    }
    backward(down);
    writer.forward(up);
    backward(up);
  }
  for (int64_t turn = 0; turn < rank; ++turn) {
    writer.input(down);
    writer.input(up);
  }
  for (int64_t turn = 0; turn < later; ++turn)
    backward(down);
  for (int64_t turn = 0; turn < rank; ++turn)
    writer.weight(up);
  writer.allWeights();
  return writer.take();
}

std::vector<Task> accel::pipeline::orderDualPipeV(Shape shape, int64_t rank) {
  int64_t down = rank, up = 2 * shape.ranks - 1 - rank;
  int64_t later = shape.ranks - 1 - rank;
  int64_t count = std::max(2 * shape.ranks, shape.microBatches);
  Writer writer(shape.microBatches);
  for (int64_t turn = 0; turn < 2 * later; ++turn)
    writer.forward(down);
  for (int64_t turn = 0; turn < rank + 1; ++turn) {
    writer.forward(down);
    writer.forward(up);
  }
  for (int64_t turn = 0; turn < later; ++turn) {
    writer.input(up);
    writer.weight();
    writer.forward(up);
  }
  for (int64_t turn = 0; turn < count - 2 * shape.ranks + rank + 1; ++turn) {
    writer.forward(down);
    writer.whole(up);
    writer.forward(up);
    writer.whole(down);
  }
  for (int64_t turn = 0; turn < later; ++turn) {
    writer.whole(up);
    writer.forward(up);
    writer.whole(down);
  }
  // Of what is left in both chunks the second half is split.
  for (int64_t turn = 0; turn < 2 * (rank + 1); ++turn) {
    int64_t chunk = turn % 2 == 0 ? up : down;
    if (turn < rank + 1)
      writer.whole(chunk);
    else
      writer.input(chunk);
  }
  for (int64_t turn = 0; turn < later; ++turn) {
    writer.weight();
    writer.input(down);
  }
  writer.allWeights();
  return writer.take();
}
