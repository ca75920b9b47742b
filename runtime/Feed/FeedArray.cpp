// Each sample is a piece of its own, which lies as many samples behind the
// first one in the file as the order says.

#include "Feed/FeedArray.h"

#include <cstring>

namespace accel::rt {
namespace {

/// A part whose dimension `dim` is one sample, which nobody splits.
Part partOfOne(Part part, size_t dim) {
  part.shape[dim] = 1;
  part.axes[dim].clear();
  return part;
}

View viewOfOne(View view, size_t dim) {
  view.shape[dim] = 1;
  return view;
}

/// A sample all of whose elements are the label that does not count, in the
/// type that the input has.
TensorRange ignoredSample(TensorRange one, DType dtype) {
  one.dtype = dtype;
  auto fill = [&](auto number) {
    one.fill.resize(sizeof number);
    std::memcpy(one.fill.data(), &number, sizeof number);
  };
  if (dtype == DType::I32)
    fill(static_cast<int32_t>(SampleOrder::kIgnoredLabel));
  else
    fill(SampleOrder::kIgnoredLabel);
  return one;
}

class ArrayTask : public HostTask {
public:
  ArrayTask(const SampleArray &array, size_t dim, const SampleOrder &order,
            bool isIgnored, const ReadCommand &read,
            const Coordinates &coordinates, Memory *memory,
            const int64_t &finishedSteps)
      : array(array), order(order), finishedSteps(finishedSteps),
        mover(array.first(), partOfOne(read.part, dim),
              viewOfOne(read.target, dim), coordinates, memory),
        rows(read.target.shape[dim]),
        rowBytes(read.target.strides[dim] * dtypeBytes(read.target.dtype)),
        first(pieceStart(read.part, read.target.shape, coordinates, 0)[dim]),
        second(pieceStart(read.part, read.target.shape, coordinates, 1)[dim]) {
    if (isIgnored)
      ignored.emplace(ignoredSample(array.first(), read.target.dtype),
                      partOfOne(read.part, dim), viewOfOne(read.target, dim),
                      coordinates, memory);
  }

  Status run(const Address *views, int64_t microBatch) override {
    int64_t start = first + microBatch * (second - first);
    auto counting = static_cast<int64_t>(
        order.numRows(static_cast<uint64_t>(finishedSteps)));
    for (int64_t row = 0; row < rows; ++row) {
      if (ignored && start + row >= counting) {
        ACCEL_RT_RETURN_IF_ERROR(
            ignored->read(views[0] + row * rowBytes, microBatch));
        continue;
      }
      uint64_t sample = order.sampleAt(static_cast<uint64_t>(finishedSteps),
                                       static_cast<uint64_t>(start + row));
      Status status = mover.readBehind(sample * array.stride(),
                                       views[0] + row * rowBytes, microBatch);
      if (!status.ok())
        return Status::error("sample " + std::to_string(sample) + " of " +
                             inQuotes(array.path()) + ": " + status.message());
    }
    for (int64_t row = 0; row < rows; ++row)
      array.announce(order.sampleAt(static_cast<uint64_t>(finishedSteps + 1),
                                    static_cast<uint64_t>(start + row)));
    return Status();
  }

private:
  const SampleArray &array;
  const SampleOrder &order;
  const int64_t &finishedSteps;
  PieceMover mover;                  ///< Of one sample.
  std::optional<PieceMover> ignored; ///< Of one that does not count.
  int64_t rows, rowBytes;
  int64_t first,
      second; ///< Samples before the piece's in the batch, mb 0 and 1.
};

} // namespace

std::unique_ptr<HostTask> feedArray(const SampleArray &array, size_t dim,
                                    const SampleOrder &order, bool isIgnored,
                                    const ReadCommand &read,
                                    const Coordinates &coordinates,
                                    Memory *memory,
                                    const int64_t &finishedSteps) {
  return std::make_unique<ArrayTask>(array, dim, order, isIgnored, read,
                                     coordinates, memory, finishedSteps);
}

} // namespace accel::rt
