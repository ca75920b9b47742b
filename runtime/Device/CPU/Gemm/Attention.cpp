// Runs attention block by block: the products are Gemms of the block's size,
// shared between blocks that are alike.

#include "Device/CPU/Gemm/Attention.h"

#include <algorithm>
#include <map>

using namespace accel::rt;
using namespace accel::rt::cpu;

Attention::~Attention() = default;

int64_t accel::rt::cpu::countColumns(const AttentionDesc &desc, int64_t first,
                                     int64_t size) {
  if (!desc.causal)
    return desc.keys;
  return std::clamp<int64_t>(first + size + desc.diagonal, 1, desc.keys);
}

namespace {
int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// The products of blocks of one size, and their place in scratch.
struct Block {
  int64_t rows = 0, columns = 0;
  std::unique_ptr<Gemm> scores, result;
  int64_t probabilities = 0, scratch = 0; ///< offsets
};

class BlockAttention : public Attention {
public:
  BlockAttention(const AttentionDesc &desc, const AttentionForm &form,
                 KernelFunction softmax)
      : desc(desc), prepared(form), softmax(softmax) {
    rows = form.blockQueries > 0 ? std::min(form.blockQueries, desc.queries)
                                 : desc.queries;
    blocks = (desc.queries + rows - 1) / rows;
  }

  const AttentionForm &form() const override { return prepared; }
  int64_t chunks() const override { return desc.batch * desc.heads * blocks; }
  int64_t scratchBytes() const override { return scratch; }

  Status prepare(int threads) {
    for (int64_t index = 0; index < blocks; ++index) {
      int64_t first = index * rows;
      int64_t size = std::min(rows, desc.queries - first);
      int64_t columns = countColumns(desc, first, size);
      auto [found, isNew] = sizes.try_emplace({size, columns});
      if (isNew)
        ACCEL_RT_RETURN_IF_ERROR(
            prepare(found->second, size, columns, threads));
      ofBlock.push_back(&found->second);
    }
    return Status();
  }

  void run(int64_t chunk, int thread, const Addresses &addresses,
           void *scratchpad) const override {
    // The last blocks of a causal attention are the longest: they come first.
    int64_t index = blocks - 1 - chunk / (desc.batch * desc.heads);
    int64_t head = chunk % desc.heads;
    int64_t batch = chunk / desc.heads % desc.batch;
    int64_t group = head / (desc.heads / desc.groups);
    const Block &block = *ofBlock[index];
    int64_t first = index * rows;
    auto *own = static_cast<char *>(scratchpad);
    auto at = [&](const void *data, const std::array<int64_t, 3> &strides,
                  int64_t which, int64_t row) {
      return const_cast<char *>(static_cast<const char *>(data)) +
             (batch * strides[0] + which * strides[1] + row * strides[2]) *
                 getBytes(desc.type);
    };
    block.scores->run(0, thread, at(addresses.query, desc.query, head, first),
                      at(addresses.key, desc.key, group, 0), nullptr, own,
                      own + block.scratch);
    SoftmaxRows which{first + desc.diagonal + 1, block.columns, block.columns,
                      block.columns, 0};
    void *arguments[] = {
        own,
        advance(addresses.mask, batch * desc.mask[0] + head * desc.mask[1] +
                                    first * desc.mask[2]),
        own + block.probabilities,
        advance(addresses.logSumExp,
                (batch * desc.logSumExp[0] + head * desc.logSumExp[1] + first) *
                    getBytes(getSumType(desc.type))),
        &which};
    softmax(arguments, 0, block.rows);
    block.result->run(0, thread, own + block.probabilities,
                      at(addresses.value, desc.value, group, 0), nullptr,
                      at(addresses.output, desc.output, head, first),
                      own + block.scratch);
  }

private:
  Status prepare(Block &block, int64_t size, int64_t columns, int threads) {
    block.rows = size;
    block.columns = columns;
    GemmDesc scores;
    scores.type = desc.type;
    scores.outType = getSumType(desc.type);
    scores.m = size;
    scores.n = columns;
    scores.k = desc.width;
    scores.aRow = desc.query[2];
    scores.bRow = 1;
    scores.bCol = desc.key[2];
    scores.cRow = columns;
    GemmDesc result;
    result.type = result.outType = desc.type;
    result.m = size;
    result.n = desc.valueWidth;
    result.k = columns;
    result.aRow = columns;
    result.bRow = desc.value[2];
    result.cRow = desc.output[2];
    ACCEL_RT_RETURN_IF_ERROR(
        Gemm::create(scores, GemmForm(), threads, block.scores));
    ACCEL_RT_RETURN_IF_ERROR(
        Gemm::create(result, GemmForm(), threads, block.result));
    int64_t end = alignUp(size * columns * getBytes(scores.outType));
    block.probabilities = 0;
    if (isNarrow(desc.type)) {
      block.probabilities = end;
      end += alignUp(size * columns * getBytes(desc.type));
    }
    block.scratch = end;
    end += std::max(block.scores->scratchBytes(), block.result->scratchBytes());
    scratch = std::max(scratch, end);
    return Status();
  }

  AttentionDesc desc;
  AttentionForm prepared;
  KernelFunction softmax;
  int64_t rows, blocks, scratch = 0;
  std::map<std::pair<int64_t, int64_t>, Block> sizes;
  std::vector<const Block *> ofBlock;
};
} // namespace

Status Attention::create(const AttentionDesc &desc, const AttentionForm &form,
                         KernelFunction softmax, int threads,
                         std::unique_ptr<Attention> &attention) {
  if (desc.groups < 1 || desc.heads % desc.groups != 0)
    return Status::error("expected key heads that divide " +
                         std::to_string(desc.heads) + " heads, found " +
                         std::to_string(desc.groups));
  auto made = std::make_unique<BlockAttention>(desc, form, softmax);
  ACCEL_RT_RETURN_IF_ERROR(made->prepare(threads));
  attention = std::move(made);
  return Status();
}
