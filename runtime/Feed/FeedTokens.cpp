// Row by row, in parts that fit the stack.

#include "Feed/FeedTokens.h"

#include <algorithm>

namespace accel::rt {
namespace {

/// Fills one rank's piece for one micro-batch.
class TokenTask : public HostTask {
public:
  TokenTask(const TokenCorpus &tokens, TokenContent content,
            const SampleOrder &order, bool isIgnored, const ReadCommand &read,
            const Coordinates &coordinates, Memory &memory,
            const int64_t &finishedSteps)
      : reader(tokens, order), ahead(tokens, order), order(order),
        content(content), isIgnored(isIgnored), read(read), memory(memory),
        first(pieceStart(read.part, read.target.shape, coordinates, 0)),
        second(pieceStart(read.part, read.target.shape, coordinates, 1)),
        finishedSteps(finishedSteps) {}

  Status run(const Address *views, int64_t microBatch) override {
    const View &view = read.target;
    auto start = [&](int dim) {
      return first[dim] + microBatch * (second[dim] - first[dim]);
    };
    auto rows = static_cast<int64_t>(
        order.numRows(static_cast<uint64_t>(finishedSteps)));
    for (int64_t row = 0; row < view.shape[0]; ++row) {
      TokenCorpus::Place sample = reader.placeOf(finishedSteps, start(0) + row);
      bool counts = !isIgnored || start(0) + row < rows;
      for (int64_t column = 0; column < view.shape[1];) {
        int64_t count = std::min(TokenFile::kMaxRead, view.shape[1] - column);
        int64_t values[TokenFile::kMaxRead];
        std::fill_n(values, count, SampleOrder::kIgnoredLabel);
        if (counts)
          ACCEL_RT_RETURN_IF_ERROR(
              get(sample, start(1) + column, count, values));
        ACCEL_RT_RETURN_IF_ERROR(
            store(views[0], row * view.strides[0] + column * view.strides[1],
                  values, count));
        column += count;
      }
    }
    if (content != TokenContent::Ones)
      for (int64_t row = 0; row < view.shape[0]; ++row) {
        TokenCorpus::Place next =
            ahead.placeOf(finishedSteps + 1, start(0) + row);
        next.file->announce(next.sample);
      }
    return Status();
  }

private:
  Status get(TokenCorpus::Place sample, int64_t begin, int64_t count,
             int64_t *values) {
    if (content == TokenContent::Ones) {
      std::fill_n(values, count, 1);
      return Status();
    }
    if (content == TokenContent::Tokens)
      return sample.file->read(sample.sample, begin, count, values);
    int64_t known =
        std::min(count, sample.file->numFollowed(sample.sample) - begin);
    std::fill(values + known, values + count, SampleOrder::kIgnoredLabel);
    return sample.file->read(sample.sample, begin + 1, known, values);
  }
  /// Stores values of a row from the element `offset` of the view on.
  Status store(Address base, int64_t offset, const int64_t *values,
               int64_t count) const {
    int64_t stride = read.target.strides[1];
    if (read.target.dtype == DType::I64)
      return memory.upload(base + offset * 8, values,
                           Rows::ofElements(8, count, stride, 1));
    // Out of range for the model, and so refused by its kernels.
    int32_t narrow[TokenFile::kMaxRead];
    std::transform(values, values + count, narrow, [](int64_t value) {
      return static_cast<int32_t>(
          std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
    });
    return memory.upload(base + offset * 4, narrow,
                         Rows::ofElements(4, count, stride, 1));
  }

  TokenCorpus::Reader reader, ahead; ///< The latter of the next step.
  const SampleOrder &order;
  TokenContent content;
  bool isIgnored;
  const ReadCommand &read;
  Memory &memory;
  std::vector<int64_t> first, second;
  const int64_t &finishedSteps;
};

} // namespace

std::unique_ptr<HostTask>
feedTokens(const TokenCorpus &tokens, TokenContent content,
           const SampleOrder &order, bool isIgnored, const ReadCommand &read,
           const Coordinates &coordinates, Memory &memory,
           const int64_t &finishedSteps) {
  return std::make_unique<TokenTask>(tokens, content, order, isIgnored, read,
                                     coordinates, memory, finishedSteps);
}

} // namespace accel::rt
