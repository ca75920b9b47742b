// The permutation's rounds are the finisher of splitmix64 (Steele, Lea and
// Flood, 2014), whose avalanche is full.

#include "Data/SampleOrder.h"

#include <algorithm>

namespace accel::rt {
namespace {

constexpr int kRounds = 8;

uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

} // namespace

uint64_t permuteIndex(uint64_t count, uint64_t key, uint64_t index) {
  int half = 1; // bits of one half
  while (half < 32 && uint64_t(1) << 2 * half < count)
    ++half;
  uint64_t mask = (uint64_t(1) << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      uint64_t next = left ^ (mix(right ^ mix(key + uint64_t(round))) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

uint64_t seedOfPart(uint64_t seed, uint64_t part) {
  return mix(mix(seed) + part);
}

uint64_t SampleOrder::sampleAt(uint64_t finishedSteps, uint64_t g) const {
  uint64_t steps = finishedSteps - firstStep, number = steps * batch + g;
  if (kind == Once)
    return std::min(number, samples - 1);
  uint64_t epoch = number / samples, index = number % samples;
  if (last != Next) {
    epoch = steps / stepsOfEpoch();
    index = std::min(steps % stepsOfEpoch() * batch + g, samples - 1);
  }
  if (kind == InFile)
    return index;
  return permuteIndex(samples, mix(seed) + mix(~epoch), index);
}

const char *nameOf(SampleOrder::Last last) {
  return last == SampleOrder::Next   ? "next"
         : last == SampleOrder::Drop ? "drop"
                                     : "keep";
}

uint64_t SampleOrder::numRows(uint64_t finishedSteps) const {
  if (last != Keep)
    return batch;
  uint64_t before = (finishedSteps - firstStep) % stepsOfEpoch() * batch;
  return std::min(batch, samples - before);
}

uint64_t SampleOrder::stepsOf(uint64_t epochs) const {
  if (last != Next)
    return epochs * stepsOfEpoch();
  return (epochs * samples + batch - 1) / batch;
}

double SampleOrder::epochAfter(uint64_t finishedSteps) const {
  uint64_t steps = finishedSteps - firstStep;
  auto ratio = [](uint64_t a, uint64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  if (last == Next)
    return ratio(steps * batch, samples);
  uint64_t within = steps % stepsOfEpoch() * batch;
  return static_cast<double>(steps / stepsOfEpoch()) +
         ratio(within, last == Keep ? samples : stepsOfEpoch() * batch);
}

} // namespace accel::rt
