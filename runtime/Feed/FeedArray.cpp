// Each sample is a piece of its own, which lies as many samples behind the
// first one in the file as the order says.

#include "Feed/FeedArray.h"

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

class ArrayTask : public HostTask {
public:
  ArrayTask(const SampleArray &array, size_t dim, const SampleOrder &order,
            const ReadCommand &read, const Coordinates &coordinates,
            Memory &memory, const int64_t &finishedSteps)
      : array(array), order(order), finishedSteps(finishedSteps),
        mover(array.first(), partOfOne(read.part, dim),
              viewOfOne(read.target, dim), coordinates, &memory),
        rows(read.target.shape[dim]),
        rowBytes(read.target.strides[dim] * dtypeBytes(read.target.dtype)),
        first(pieceStart(read.part, read.target.shape, coordinates, 0)[dim]),
        second(pieceStart(read.part, read.target.shape, coordinates, 1)[dim]) {}

  Status run(const Address *views, int64_t microBatch) override {
    int64_t start = first + microBatch * (second - first);
    for (int64_t row = 0; row < rows; ++row) {
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
  PieceMover mover; ///< Of one sample.
  int64_t rows, rowBytes;
  int64_t first,
      second; ///< Samples before the piece's in the batch, mb 0 and 1.
};

} // namespace

std::unique_ptr<HostTask>
feedArray(const SampleArray &array, size_t dim, const SampleOrder &order,
          const ReadCommand &read, const Coordinates &coordinates,
          Memory &memory, const int64_t &finishedSteps) {
  return std::make_unique<ArrayTask>(array, dim, order, read, coordinates,
                                     memory, finishedSteps);
}

} // namespace accel::rt
