// What several tests of pipelines need: a schedule of a name with all that runs
// it, and random ones.

#ifndef ACCEL_TEST_UNIT_PIPELINE_PIPELINEFIXTURE_H
#define ACCEL_TEST_UNIT_PIPELINE_PIPELINEFIXTURE_H

#include "lib/Pipeline/Synthesise.h"
#include "lib/Pipeline/Verify.h"

#include <random>

namespace accel::pipeline {

/// The named schedule, for chunks that follow each other and are all alike.
/// Requires a name that there is.
inline Synthesis makeNamed(llvm::StringRef name, int64_t ranks,
                           int64_t microBatches, Costs costs) {
  Choice choice = cantFail(parseChoice(name));
  Schedule schedule = cantFail(
      generate(*choice.named, {ranks, choice.chunksPerRank, microBatches}));
  int64_t chunks = schedule.placement.countChunks();
  Problem problem{ranks, microBatches, makeChain(chunks), std::move(costs), {}};
  return evaluate(name.str(), std::move(schedule), problem);
}

inline Synthesis makeNamed(llvm::StringRef name, int64_t ranks,
                           int64_t microBatches) {
  int64_t chunksPerRank = cantFail(parseChoice(name)).chunksPerRank;
  return makeNamed(name, ranks, microBatches,
                   Costs::makeEven(ranks * chunksPerRank));
}

/// The message of an error, empty if there is none.
inline std::string getMessage(llvm::Error error) {
  return llvm::toString(std::move(error));
}

/// From `low` to `high`, in steps of 1/64, the same on every machine.
inline double drawNumber(std::mt19937 &random, double low, double high) {
  return low + (high - low) * (random() % 65) / 64;
}

} // namespace accel::pipeline

#endif // ACCEL_TEST_UNIT_PIPELINE_PIPELINEFIXTURE_H
