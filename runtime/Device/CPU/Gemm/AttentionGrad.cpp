// Runs the gradient of attention key head by key head. All operands of the
// products are gathered into scratch once, where they have no gaps: gemm
// libraries want that, and most operands are pieces of rows of one projection.

#include "Device/CPU/Gemm/AttentionGrad.h"

#include "Device/CPU/Gemm/ConvertRows.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace accel::rt;
using namespace accel::rt::cpu;

AttentionGrad::~AttentionGrad() = default;

namespace {
int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Rows of a strided view of one head.
struct Rows {
  char *data;
  int64_t stride; ///< bytes
};

/// The products of blocks of one size.
struct Block {
  int64_t rows = 0, columns = 0;
  std::unique_ptr<Gemm> scores, slopes, query, key, value;
};

class BlockAttentionGrad : public AttentionGrad {
public:
  BlockAttentionGrad(const AttentionGradDesc &grad, const AttentionForm &form,
                     KernelFunction kernel)
      : grad(grad), desc(this->grad.forward), prepared(form), kernel(kernel),
        type(desc.type), sumType(getSumType(type)) {
    rows = form.blockQueries > 0 ? std::min(form.blockQueries, desc.queries)
                                 : desc.queries;
    blocks = (desc.queries + rows - 1) / rows;
  }

  const AttentionForm &form() const override { return prepared; }
  int64_t chunks() const override { return desc.batch * desc.groups; }
  int64_t scratchBytes() const override { return scratch; }

  Status prepare(int threads) {
    int64_t gemmScratch = 0;
    for (int64_t index = 0; index < blocks; ++index) {
      int64_t first = index * rows;
      int64_t size = std::min(rows, desc.queries - first);
      auto [found, isNew] = sizes.try_emplace({size, getColumns(first, size)});
      if (isNew)
        ACCEL_RT_RETURN_IF_ERROR(prepare(found->second, found->first.first,
                                         found->first.second, threads,
                                         gemmScratch));
      ofBlock.push_back(&found->second);
    }
    int64_t bytes = getBytes(type), sumBytes = getBytes(sumType);
    auto place = [&](int64_t size) {
      int64_t begin = scratch;
      scratch += alignUp(size);
      return begin;
    };
    keyAt = place(desc.keys * desc.width * bytes);
    valueAt = place(desc.keys * desc.valueWidth * bytes);
    // The two sums lie side by side: they are zeroed together.
    keySumAt = place(desc.keys * desc.width * sumBytes);
    valueSumAt = place(desc.keys * desc.valueWidth * sumBytes);
    queryAt = place(rows * desc.width * bytes);
    gradientAt = place(rows * desc.valueWidth * bytes);
    resultAt = place(rows * desc.width * bytes);
    probabilitiesAt = scoresAt = place(rows * desc.keys * sumBytes);
    scoreSlopesAt = slopesAt = place(rows * desc.keys * sumBytes);
    if (isNarrow(type)) {
      probabilitiesAt = place(rows * desc.keys * bytes);
      scoreSlopesAt = place(rows * desc.keys * bytes);
    }
    gemmAt = place(gemmScratch);
    return Status();
  }

  void run(int64_t chunk, int thread, const Addresses &at,
           void *scratchpad) const override {
    auto *own = static_cast<char *>(scratchpad);
    int64_t batch = chunk / desc.groups, group = chunk % desc.groups;
    gather(get(at.key, desc.key, batch, group), own + keyAt, desc.keys,
           desc.width);
    gather(get(at.value, desc.value, batch, group), own + valueAt, desc.keys,
           desc.valueWidth);
    std::memset(own + keySumAt, 0, queryAt - keySumAt);
    int64_t shared = desc.heads / desc.groups;
    for (int64_t head = group * shared; head < (group + 1) * shared; ++head)
      for (int64_t index = 0; index < blocks; ++index)
        runBlock(batch, head, index, thread, at, own);
    scatter(own + keySumAt, get(at.keyGradient, grad.keyGradient, batch, group),
            desc.keys, desc.width);
    scatter(own + valueSumAt,
            get(at.valueGradient, grad.valueGradient, batch, group), desc.keys,
            desc.valueWidth);
  }

private:
  /// Keys that a block sees some of. One that sees nothing still has a row; if
  /// its rows are NaN, so are the gradients of all keys.
  int64_t getColumns(int64_t first, int64_t size) const {
    if (desc.causal && first + desc.diagonal < 0 && !grad.zeroMaskedRows)
      return desc.keys;
    return countColumns(desc, first, size);
  }

  Rows get(const void *data, const std::array<int64_t, 3> &strides,
           int64_t batch, int64_t head, int64_t row = 0) const {
    return {const_cast<char *>(static_cast<const char *>(data)) +
                (batch * strides[0] + head * strides[1] + row * strides[2]) *
                    getBytes(type),
            strides[2] * getBytes(type)};
  }

  void gather(Rows from, char *to, int64_t count, int64_t width) const {
    int64_t bytes = width * getBytes(type);
    for (int64_t row = 0; row < count; ++row)
      std::memcpy(to + row * bytes, from.data + row * from.stride, bytes);
  }

  /// Stores sums in the type of the results.
  void scatter(const char *from, Rows to, int64_t count, int64_t width) const {
    int64_t bytes = width * getBytes(sumType);
    for (int64_t row = 0; row < count; ++row) {
      const char *source = from + row * bytes;
      char *target = to.data + row * to.stride;
      if (isNarrow(type))
        narrowRow(type, reinterpret_cast<const float *>(source), width, target);
      else
        std::memcpy(target, source, bytes);
    }
  }

  void runBlock(int64_t batch, int64_t head, int64_t index, int thread,
                const Addresses &at, char *own) const {
    const Block &block = *ofBlock[index];
    int64_t first = index * rows;
    gather(get(at.query, desc.query, batch, head, first), own + queryAt,
           block.rows, desc.width);
    gather(get(at.gradient, desc.output, batch, head, first), own + gradientAt,
           block.rows, desc.valueWidth);
    char *pad = own + gemmAt;
    block.scores->run(0, thread, own + queryAt, own + keyAt, nullptr,
                      own + scoresAt, pad);
    block.slopes->run(0, thread, own + gradientAt, own + valueAt, nullptr,
                      own + slopesAt, pad);
    SoftmaxRows which{first + desc.diagonal + 1, block.columns, block.columns,
                      block.columns, grad.result[2]};
    auto ofRows = [&](const void *data, const std::array<int64_t, 2> &strides) {
      return advance(data, (batch * strides[0] + head * strides[1] + first) *
                               getBytes(sumType));
    };
    void *arguments[] = {own + scoresAt,
                         advance(at.mask, batch * desc.mask[0] +
                                              head * desc.mask[1] +
                                              first * desc.mask[2]),
                         own + slopesAt,
                         own + probabilitiesAt,
                         own + scoreSlopesAt,
                         get(at.result, grad.result, batch, head, first).data,
                         own + gradientAt,
                         ofRows(at.logSumExp, desc.logSumExp),
                         ofRows(at.logSumExpGradient, grad.logSumExpGradient),
                         &which};
    kernel(arguments, 0, block.rows);
    block.query->run(0, thread, own + scoreSlopesAt, own + keyAt, nullptr,
                     own + resultAt, pad);
    block.key->run(0, thread, own + scoreSlopesAt, own + queryAt, nullptr,
                   own + keySumAt, pad);
    block.value->run(0, thread, own + probabilitiesAt, own + gradientAt,
                     nullptr, own + valueSumAt, pad);
    Rows result = get(at.queryGradient, grad.queryGradient, batch, head, first);
    int64_t bytes = desc.width * getBytes(type);
    for (int64_t row = 0; row < block.rows; ++row)
      std::memcpy(result.data + row * result.stride,
                  own + resultAt + row * bytes, bytes);
  }

  Status prepare(Block &block, int64_t size, int64_t columns, int threads,
                 int64_t &gemmScratch) {
    block.rows = size;
    block.columns = columns;
    auto make = [&](std::unique_ptr<Gemm> &gemm, GemmType outType, int64_t m,
                    int64_t n, int64_t k, bool transposeA, bool transposeB,
                    bool accumulate) {
      GemmDesc product;
      product.type = type;
      product.outType = outType;
      product.m = m, product.n = n, product.k = k;
      product.aRow = transposeA ? 1 : k;
      product.aCol = transposeA ? m : 1;
      product.bRow = transposeB ? 1 : n;
      product.bCol = transposeB ? k : 1;
      product.cRow = n;
      product.accumulate = accumulate;
      ACCEL_RT_RETURN_IF_ERROR(
          Gemm::create(product, GemmForm(), threads, gemm));
      gemmScratch = std::max(gemmScratch, gemm->scratchBytes());
      return Status();
    };
    ACCEL_RT_RETURN_IF_ERROR(make(block.scores, sumType, size, columns,
                                  desc.width, false, true, false));
    ACCEL_RT_RETURN_IF_ERROR(make(block.slopes, sumType, size, columns,
                                  desc.valueWidth, false, true, false));
    ACCEL_RT_RETURN_IF_ERROR(make(block.query, type, size, desc.width, columns,
                                  false, false, false));
    ACCEL_RT_RETURN_IF_ERROR(
        make(block.key, sumType, columns, desc.width, size, true, false, true));
    return make(block.value, sumType, columns, desc.valueWidth, size, true,
                false, true);
  }

  AttentionGradDesc grad;
  const AttentionDesc &desc; ///< grad.forward
  AttentionForm prepared;
  KernelFunction kernel;
  GemmType type, sumType;
  int64_t rows, blocks, scratch = 0;
  /// Offsets in scratch.
  int64_t keyAt = 0, valueAt = 0, keySumAt = 0, valueSumAt = 0, queryAt = 0,
          gradientAt = 0, resultAt = 0, scoresAt = 0, probabilitiesAt = 0,
          slopesAt = 0, scoreSlopesAt = 0, gemmAt = 0;
  std::map<std::pair<int64_t, int64_t>, Block> sizes;
  std::vector<const Block *> ofBlock;
};
} // namespace

Status AttentionGrad::create(const AttentionGradDesc &desc,
                             const AttentionForm &form, KernelFunction rows,
                             int threads,
                             std::unique_ptr<AttentionGrad> &grad) {
  if (desc.forward.groups < 1 || desc.forward.heads % desc.forward.groups != 0)
    return Status::error("expected key heads that divide " +
                         std::to_string(desc.forward.heads) + " heads, found " +
                         std::to_string(desc.forward.groups));
  auto made = std::make_unique<BlockAttentionGrad>(desc, form, rows);
  ACCEL_RT_RETURN_IF_ERROR(made->prepare(threads));
  grad = std::move(made);
  return Status();
}
