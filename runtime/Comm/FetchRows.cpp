// fetch_rows: each rank reads the rows that it names from the memory of those
// who have them, or through those who have them where that is another
// machine's. What nobody names is not moved.

#include "Comm/RemoteFetch.h"
#include "Comm/RemoteTask.h"

#include <atomic>
#include <cstring>

namespace accel::rt {
namespace {

/// Bytes that a thread copies before it asks for more.
constexpr int64_t kChunkBytes = 1 << 17;

class FetchRowsTask : public HostTask {
public:
  FetchRowsTask(const CollectiveCommand &fetch, Group group,
                const Program &program, HostRank &self)
      : group(std::move(group)), self(self),
        input(fetch.inputs[0], isShared(program, fetch.inputs[0]), self),
        output(fetch.outputs[0], isShared(program, fetch.outputs[0]), self),
        index(*fetch.index, isShared(program, *fetch.index), self),
        peerRows(fetch.inputs[0].shape[0]), rows(fetch.outputs[0].shape[0]),
        rowBytes(dtypeBytes(fetch.inputs[0].dtype)) {
    for (size_t dim = 1; dim < fetch.inputs[0].shape.size(); ++dim)
      rowBytes *= fetch.inputs[0].shape[dim];
    int64_t bytes = dtypeBytes(fetch.inputs[0].dtype);
    inputStep = fetch.inputs[0].strides[0] * bytes;
    outputStep = fetch.outputs[0].strides[0] * bytes;
    toInput = distances(fetch.inputs[0], this->group, self);
    for (int64_t peer : this->group.ranks)
      isHere.push_back(self.memory.isHere(peer));
  }

  /// At preparation, where other machines have rows.
  Status connect(size_t stream) {
    remote = std::make_unique<RemoteFetch>(
        FetchedRows{rows, peerRows, rowBytes, inputStep, outputStep}, group,
        stream, self);
    return remote->connect();
  }

  /// Views: input, output, index.
  Status run(const Address *views, int64_t) override {
    ACCEL_RT_RETURN_IF_ERROR(wait());
    if (self.moves) {
      ACCEL_RT_RETURN_IF_ERROR(input.fetch(views[0]));
      ACCEL_RT_RETURN_IF_ERROR(index.fetch(views[2]));
      auto *wanted = reinterpret_cast<const int64_t *>(index.find(views[2]));
      copy(input.find(views[0]), output.find(views[1]), wanted);
      if (remote)
        ACCEL_RT_RETURN_IF_ERROR(
            remote->run(input.find(views[0]), output.find(views[1]), wanted));
      ACCEL_RT_RETURN_IF_ERROR(output.store(views[1]));
    }
    ACCEL_RT_RETURN_IF_ERROR(wait());
    if (int64_t wrong = outside.exchange(kNone); wrong != kNone)
      return Status::error("expected rows of " + std::to_string(peerRows) +
                           " of each of " + std::to_string(toInput.size()) +
                           " ranks, or -1 for none, found " +
                           std::to_string(wrong));
    return Status();
  }

private:
  static constexpr int64_t kNone = -1;

  Status wait() {
    self.control.self().progress.fetch_add(1);
    return waitAtBarrier(*group.barrier,
                         static_cast<uint32_t>(group.here.size()), self.spin,
                         self.control);
  }

  void copy(const char *from, char *to, const int64_t *wanted) {
    int64_t all = peerRows * static_cast<int64_t>(toInput.size());
    int64_t chunk =
        std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(rowBytes, 1));
    self.pool.parallelFor((rows + chunk - 1) / chunk, [&](int64_t number, int) {
      int64_t end = std::min(rows, (number + 1) * chunk);
      for (int64_t row = number * chunk; row < end; ++row) {
        char *target = to + row * outputStep;
        int64_t place = wanted[row];
        bool isThere = place >= 0 && place < all;
        if (isThere && !isHere[static_cast<size_t>(place / peerRows)])
          continue; // another machine has it
        if (isThere)
          std::memcpy(target,
                      from + toInput[static_cast<size_t>(place / peerRows)] +
                          place % peerRows * inputStep,
                      static_cast<size_t>(rowBytes));
        else
          std::memset(target, 0, static_cast<size_t>(rowBytes));
        if (!isThere && place != -1)
          outside.store(place);
      }
    });
  }

  Group group;
  HostRank &self;
  HostView input, output, index;
  int64_t peerRows, rows, rowBytes, inputStep, outputStep;
  std::vector<int64_t> toInput;        ///< Bytes to add for each peer's.
  std::vector<bool> isHere;            ///< Whether each is of this machine.
  std::unique_ptr<RemoteFetch> remote; ///< Null: all are.
  std::atomic<int64_t> outside{kNone};
};

/// Whether each row lies without gaps.
bool hasPlainRows(const View &view) {
  int64_t expected = 1;
  for (size_t dim = view.shape.size(); dim-- > 1;) {
    if (view.shape[dim] != 1 && view.strides[dim] != expected)
      return false;
    expected *= view.shape[dim];
  }
  return true;
}

} // namespace

Status prepareFetchRows(const Program &program, const Command &command,
                        HostRank &self, std::unique_ptr<HostTask> &task) {
  auto &fetch = std::get<CollectiveCommand>(command.what);
  if (fetch.inputs.size() != 1 || !fetch.index)
    return Status::error("expected one view to fetch rows from, and an index");
  const View &input = fetch.inputs[0], &output = fetch.outputs[0];
  if (fetch.wire && *fetch.wire != input.dtype)
    return Status::error("expected the views' own element type on the wire, "
                         "found " +
                         std::string(dtypeName(*fetch.wire)));
  std::vector<int64_t> expected = input.shape;
  if (!expected.empty() && fetch.index->shape.size() == 1)
    expected[0] = fetch.index->shape[0];
  if (input.shape.empty() || output.shape != expected ||
      output.dtype != input.dtype || fetch.index->dtype != DType::I64 ||
      (expected[0] != 1 && fetch.index->strides[0] != 1) ||
      !hasPlainRows(input) || !hasPlainRows(output))
    return Status::error("expected rows without gaps, as many as an index of "
                         "i64 names");
  Group group(self, fetch.axes, command.stream);
  if (group.ranks.size() > 1 && self.moves && !isShared(program, input))
    return Status::error("expected the input of a collective in space "
                         "'shared', found it in " +
                         inQuotes(program.buffers[input.buffer].space));
  bool isSpread = self.moves && group.isSpread;
  auto made =
      std::make_unique<FetchRowsTask>(fetch, std::move(group), program, self);
  if (isSpread)
    ACCEL_RT_RETURN_IF_ERROR(made->connect(wireOf(self, command.stream)));
  task = std::move(made);
  return Status();
}

} // namespace accel::rt
