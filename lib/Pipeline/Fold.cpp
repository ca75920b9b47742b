// Finds the repetitions in a list of tasks.

#include "Fold.h"

using namespace accel::pipeline;

/// How far the micro-batch of `later` is from that of `earlier`; 0 if they are
/// not the same task.
static int64_t getStep(const Task &earlier, const Task &later) {
  bool isSame = earlier.kind == later.kind && earlier.chunk == later.chunk;
  return isSame ? later.microBatch - earlier.microBatch : 0;
}

static void foldInto(llvm::ArrayRef<Task> tasks, std::vector<Loop> &loops) {
  size_t best = 0, begin = 0, length = 0, trips = 1;
  for (size_t period = 1; 2 * period <= tasks.size(); ++period)
    for (size_t first = 0; first + period < tasks.size();) {
      int64_t step = getStep(tasks[first], tasks[first + period]);
      size_t end = first + 1;
      while (end + period < tasks.size() &&
             getStep(tasks[end], tasks[end + period]) == step)
        ++end;
      size_t turns = (end - first) / period;
      if (step != 0 && turns * period > best) {
        best = turns * period;
        begin = first;
        length = period;
        trips = turns + 1;
      }
      first = end;
    }
  if (best == 0) {
    if (!tasks.empty())
      loops.push_back({1, 0, tasks.vec()});
    return;
  }
  foldInto(tasks.take_front(begin), loops);
  loops.push_back({int64_t(trips), getStep(tasks[begin], tasks[begin + length]),
                   tasks.slice(begin, length).vec()});
  foldInto(tasks.drop_front(begin + trips * length), loops);
}

std::vector<Loop> accel::pipeline::fold(llvm::ArrayRef<Task> tasks) {
  std::vector<Loop> loops;
  foldInto(tasks, loops);
  return loops;
}

std::vector<Task> accel::pipeline::unfold(llvm::ArrayRef<Loop> loops) {
  std::vector<Task> tasks;
  for (const Loop &loop : loops)
    for (int64_t turn = 0; turn < loop.trips; ++turn)
      for (Task task : loop.tasks) {
        task.microBatch += turn * loop.step;
        tasks.push_back(task);
      }
  return tasks;
}
