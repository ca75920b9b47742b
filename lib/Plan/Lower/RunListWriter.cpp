// Opens and closes segments and loops as runs are added.

#include "RunListWriter.h"

using namespace mlir;
using namespace accel::plan;

void RunListWriter::run(BodyOp body, int64_t offset, bool capturable) {
  if (!body)
    return;
  if (!segment || !capturable || !segment.getCapturable()) {
    OpBuilder inner = OpBuilder::atBlockEnd(&list->front());
    segment =
        createContainer<SegmentOp>(inner, entry.getLoc(), engine, capturable);
  }
  OpBuilder runs = OpBuilder::atBlockEnd(&segment.getBody().front());
  RunOp::create(runs, entry.getLoc(), body.getSymName(), offset,
                /*turn=*/list != &entry.getBody());
}

void RunListWriter::run(TaskBodies &bodies, int64_t offset) {
  if (llvm::any_of(bodies.inputs, [&](StringRef input) {
        auto found = current.find(input);
        return !bodies.kept.contains(input) &&
               (found == current.end() || found->second != offset);
      }))
    run(bodies.read, offset, /*capturable=*/false);
  for (StringRef input : bodies.inputs)
    current[input] = offset;
  run(bodies.body, offset, /*capturable=*/true);
  run(bodies.write, offset, /*capturable=*/false);
}

/// What inputs' buffers have when a turn begins, its text does not know: the
/// first turn finds another micro-batch than the rest.
void RunListWriter::loop(int64_t trips, llvm::function_ref<void()> runs) {
  OpBuilder inner = OpBuilder::atBlockEnd(&list->front());
  auto loop = createContainer<LoopOp>(inner, entry.getLoc(), trips);
  segment = {};
  current.clear();
  list = &loop.getBody();
  runs();
  list = &entry.getBody();
  segment = {};
  for (auto &input : current)
    input.second += trips - 1; // as the last turn leaves it
}
