// Opens and closes segments and loops as runs are added.

#include "RunListWriter.h"

using namespace mlir;
using namespace accel::plan;

bool RunListWriter::isCapturable(BodyOp body) {
  auto [known, isNew] = capturable.try_emplace(body, true);
  if (isNew)
    known->second = llvm::all_of(body.getBody().front(), [&](Operation &op) {
      return target.isCapturable(&op);
    });
  return known->second;
}

void RunListWriter::run(BodyOp body, int64_t offset) {
  if (!body)
    return;
  bool captures = isCapturable(body);
  if (!segment || !captures || !segment.getCapturable()) {
    OpBuilder inner = OpBuilder::atBlockEnd(&list->front());
    segment = createContainer<SegmentOp>(inner, entry.getLoc(),
                                         body.getEngine(), captures);
  }
  OpBuilder runs = OpBuilder::atBlockEnd(&segment.getBody().front());
  RunOp::create(runs, entry.getLoc(), body.getSymName(), offset,
                /*turn=*/list != &entry.getBody());
}

void RunListWriter::run(TaskBodies &bodies, int64_t offset) {
  readOnce(bodies);
  if (bodies.reads)
    run(bodies.read, offset);
  run(bodies.body, offset);
  run(bodies.write, offset);
}

void RunListWriter::readOnce(TaskBodies &bodies) {
  run(bodies.readOnce, 0);
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
