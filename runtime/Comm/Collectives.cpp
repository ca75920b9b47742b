// The collectives. Every one starts with a barrier (all inputs are there) and
// ends with one (nobody reads any more: law 4's release from every reader).

#include "Comm/RemoteTask.h"
#include "Comm/Transfer.h"

namespace accel::rt {
namespace {

/// Elements in a chunk of work.
constexpr int64_t kChunkElements = 1 << 15;

using Kind = CollectiveKind;

class CollectiveTask : public HostTask {
public:
  CollectiveTask(Transfers &&all, bool twoSteps, HostRank &self)
      : kind(all.kind), group(std::move(all.group)), combine(all.combine),
        twoSteps(twoSteps), transfers(std::move(all.all)), self(self),
        sources(group.ranks.size()) {
    if (!all.sources.empty())
      peers = {all.sources[static_cast<size_t>(group.index)]};
    else
      for (size_t peer = 0; peer < group.ranks.size(); ++peer)
        peers.push_back(static_cast<int64_t>(peer));
  }

  Status run(const Address *views, int64_t) override {
    ACCEL_RT_RETURN_IF_ERROR(wait());
    for (size_t t = 0; t < transfers.size() && self.moves; ++t) {
      ACCEL_RT_RETURN_IF_ERROR(transfers[t].input.fetch(views[t]));
      char *input = transfers[t].input.find(views[t]);
      char *output = transfers[t].output.find(views[transfers.size() + t]);
      if (kind == Kind::AllReduce || kind == Kind::ReduceScatter)
        reduce(transfers[t], input, output);
      else
        gather(transfers[t], input, output);
      ACCEL_RT_RETURN_IF_ERROR(
          transfers[t].output.store(views[transfers.size() + t]));
    }
    if (twoSteps) {
      ACCEL_RT_RETURN_IF_ERROR(wait());
      for (size_t t = 0; t < transfers.size() && self.moves; ++t)
        collect(transfers[t],
                transfers[t].output.find(views[transfers.size() + t]));
    }
    return wait();
  }

private:
  Status wait() {
    self.control.self().progress.fetch_add(1);
    return waitAtBarrier(*group.barrier,
                         static_cast<uint32_t>(group.here.size()), self.spin,
                         self.control);
  }

  /// The elements that rank `index` of the group reduces.
  std::pair<int64_t, int64_t> share(int64_t elements, int64_t index) const {
    if (!twoSteps)
      return {0, elements};
    int64_t members = static_cast<int64_t>(group.ranks.size());
    // Multiples of a cache line, so that no two ranks write one.
    int64_t step = (elements + members - 1) / members;
    step = (step + 63) / 64 * 64;
    return {std::min(index * step, elements),
            std::min((index + 1) * step, elements)};
  }

  template <class F> void inChunks(int64_t begin, int64_t end, F &&f) {
    self.pool.parallelFor((end - begin + kChunkElements - 1) / kChunkElements,
                          [&](int64_t chunk, int) {
                            int64_t from = begin + chunk * kChunkElements;
                            f(from, std::min(from + kChunkElements, end));
                          });
  }

  void reduce(const Transfer &transfer, char *input, char *output) {
    for (size_t peer = 0; peer < sources.size(); ++peer)
      sources[peer] =
          input + transfer.toInput[peer] + group.index * transfer.inputStep;
    auto [begin, end] = share(transfer.layout.elements(), group.index);
    inChunks(begin, end, [&](int64_t from, int64_t to) {
      reduceElements(transfer.layout, transfer.dtype, combine, output,
                     sources.data(), sources.size(), from, to);
    });
  }

  void collect(const Transfer &transfer, char *output) {
    for (size_t peer = 0; peer < sources.size(); ++peer) {
      if (static_cast<int64_t>(peer) == group.index)
        continue;
      auto [begin, end] =
          share(transfer.layout.elements(), static_cast<int64_t>(peer));
      inChunks(begin, end, [&](int64_t from, int64_t to) {
        copyElements(transfer.outputs, transfer.bytes, output,
                     output + transfer.toOutput[peer], from, to);
      });
    }
  }

  void gather(const Transfer &transfer, char *input, char *output) {
    for (int64_t peer : peers) {
      size_t at = static_cast<size_t>(peer);
      char *target = output + transfer.outputPiece[at];
      const char *source =
          input + transfer.toInput[at] + group.index * transfer.inputStep;
      if (target == source)
        continue; // gathered in place
      inChunks(0, transfer.layout.elements(), [&](int64_t from, int64_t to) {
        copyElements(transfer.layout, transfer.bytes, target, source, from, to);
      });
    }
  }

  Kind kind;
  Group group;
  Combine combine;
  /// all_reduce into shared outputs: each rank reduces its part of the
  /// elements, then reads the others' parts. Into private outputs every rank
  /// reduces all.
  bool twoSteps;
  std::vector<Transfer> transfers;
  std::vector<int64_t> peers; ///< Places in the group that are read from.
  HostRank &self;
  std::vector<const void *> sources;
};

} // namespace

Status prepareCollective(const Program &program, const Command &command,
                         HostRank &self, std::unique_ptr<HostTask> &task) {
  auto &collective = std::get<CollectiveCommand>(command.what);
  if (collective.kind == "fetch_rows")
    return prepareFetchRows(program, command, self, task);
  std::unique_ptr<Transfers> made;
  ACCEL_RT_RETURN_IF_ERROR(makeTransfers(program, command, self, made));
  if (self.moves && made->group.isSpread)
    return prepareRemoteCollective(std::move(made), command.stream, self, task);
  bool twoSteps = made->kind == Kind::AllReduce;
  for (const View &output : collective.outputs)
    twoSteps &= isShared(program, output);
  task = std::make_unique<CollectiveTask>(std::move(*made), twoSteps, self);
  return Status();
}

} // namespace accel::rt
