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

uint64_t SampleOrder::sampleAt(uint64_t finishedSteps, uint64_t g) const {
  uint64_t number = (finishedSteps - firstStep) * batch + g,
           epoch = number / samples;
  if (kind == Once)
    return std::min(number, samples - 1);
  if (kind == InFile)
    return number % samples;
  return permuteIndex(samples, mix(seed) + mix(~epoch), number % samples);
}

} // namespace accel::rt
