// accel-draw-schedule NAME RANKS MICRO-BATCHES [TRANSFER]: the picture of a
// named schedule, of chunks that are alike: a forward takes 1, each part of a
// backward 1, a transfer nothing unless said. docs/Schedules.md has some.

#include "lib/Pipeline/DrawSchedule.h"
#include "lib/Pipeline/Synthesise.h"

using namespace accel::pipeline;

int main(int argc, char **argv) {
  llvm::ExitOnError check("accel-draw-schedule: error: ");
  auto number = [&](int at) {
    return at < argc ? std::strtod(argv[at], nullptr) : 0;
  };
  llvm::StringRef name = argc > 1 ? argv[1] : "";
  Choice choice = check(parseChoice(name));
  if (!choice.named)
    check(llvm::createStringError("expected the name of a schedule"));
  Shape shape{static_cast<int64_t>(number(2)), choice.chunksPerRank,
              static_cast<int64_t>(number(3))};
  Schedule schedule = check(generate(*choice.named, shape));
  int64_t chunks = schedule.placement.countChunks();
  Problem problem{
      shape.ranks, shape.microBatches, makeChain(chunks), {}, MemoryCap()};
  problem.costs = Costs::makeEven(chunks);
  problem.costs.secondsPerTransfer = number(4);
  Synthesis step = evaluate(name.str(), std::move(schedule), problem);
  writeScheduleSvg(llvm::outs(), {step.name, step.schedule, problem.edges,
                                  step.simulation, "F"});
  return 0;
}
