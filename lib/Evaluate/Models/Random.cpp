// The meaning of random numbers: Philox4x32-10 as its paper defines it (Salmon,
// Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC'11).

#include "Group.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

/// The first of the four words at counter {counter, 0}, low words first.
static uint32_t philox(uint64_t counter, uint64_t key) {
  uint32_t x[4] = {static_cast<uint32_t>(counter),
                   static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t low = static_cast<uint32_t>(key);
  uint32_t high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53) * x[0];
    uint64_t second = uint64_t(0xCD9E8D57) * x[2];
    uint32_t next[4] = {static_cast<uint32_t>(second >> 32) ^ x[1] ^ low,
                        static_cast<uint32_t>(second),
                        static_cast<uint32_t>(first >> 32) ^ x[3] ^ high,
                        static_cast<uint32_t>(first)};
    std::copy(next, next + 4, x);
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return x[0];
}

namespace {
struct RandomUniform : EvaluateModel<RandomUniform, nn::RandomUniformOp> {
  LogicalResult evaluate(Operation *op, ArrayRef<Tensor> operands,
                         SmallVectorImpl<Tensor> &results) const {
    Tensor result = makeResult(op);
    for (auto [value, counter, key] : llvm::zip(
             result.mutableFloats(), operands[0].ints(), operands[1].ints()))
      value = (philox(counter, key) >> 8) * 0x1p-24;
    results.push_back(std::move(result));
    return success();
  }
};
} // namespace

void evaluate::attachRandomModels(MLIRContext *context) {
  nn::RandomUniformOp::attachInterface<RandomUniform>(*context);
}
