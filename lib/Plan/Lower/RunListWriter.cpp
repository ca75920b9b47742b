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
  readOnce(bodies);
  if (bodies.reads)
    run(bodies.read, offset, /*capturable=*/false);
  run(bodies.body, offset, /*capturable=*/true);
  run(bodies.write, offset, /*capturable=*/false);
}

void RunListWriter::readOnce(TaskBodies &bodies) {
  run(bodies.readOnce, 0, /*capturable=*/false);
  bodies.readOnce = {};
}

void RunListWriter::loop(int64_t trips, llvm::function_ref<void()> runs) {
  OpBuilder inner = OpBuilder::atBlockEnd(&list->front());
  auto loop = createContainer<LoopOp>(inner, entry.getLoc(), trips);
  segment = {};
  list = &loop.getBody();
  runs();
  list = &entry.getBody();
  segment = {};
}
