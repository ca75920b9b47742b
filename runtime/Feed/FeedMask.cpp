// A byte a row, all of them in one upload.

#include "Feed/FeedMask.h"

namespace accel::rt {
namespace {

class MaskTask : public HostTask {
public:
  MaskTask(const SampleOrder &order, const ReadCommand &read,
           const Coordinates &coordinates, Memory &memory,
           const int64_t &finishedSteps)
      : order(order), memory(memory), finishedSteps(finishedSteps),
        stride(read.target.strides[0]),
        first(pieceStart(read.part, read.target.shape, coordinates, 0)[0]),
        second(pieceStart(read.part, read.target.shape, coordinates, 1)[0]),
        mask(static_cast<size_t>(read.target.shape[0])) {}

  Status run(const Address *views, int64_t microBatch) override {
    int64_t start = first + microBatch * (second - first);
    auto counting = static_cast<int64_t>(
        order.numRows(static_cast<uint64_t>(finishedSteps)));
    for (size_t row = 0; row < mask.size(); ++row)
      mask[row] = start + static_cast<int64_t>(row) < counting;
    return memory.upload(
        views[0], mask.data(),
        Rows::ofElements(1, static_cast<int64_t>(mask.size()), stride, 1));
  }

private:
  const SampleOrder &order;
  Memory &memory;
  const int64_t &finishedSteps;
  int64_t stride;
  int64_t first, second; ///< Rows before the piece's in the batch, mb 0 and 1.
  std::vector<char> mask;
};

} // namespace

std::unique_ptr<HostTask> feedMask(const SampleOrder &order,
                                   const ReadCommand &read,
                                   const Coordinates &coordinates,
                                   Memory &memory,
                                   const int64_t &finishedSteps) {
  return std::make_unique<MaskTask>(order, read, coordinates, memory,
                                    finishedSteps);
}

} // namespace accel::rt
