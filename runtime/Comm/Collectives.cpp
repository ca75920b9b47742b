// The collectives. Every one starts with a barrier (all inputs are there) and
// ends with one (nobody reads any more: law 4's release from every reader).

#include "Comm/HostComm.h"
#include "Comm/Reduce.h"

namespace accel::rt {
namespace {

/// Elements in a chunk of work.
constexpr int64_t kChunkElements = 1 << 15;

enum class Kind {
  AllReduce,
  ReduceScatter,
  AllGather,
  AllToAll,
  Broadcast,
  Permute
};

std::optional<Kind> kindFromName(const std::string &name) {
  static const std::pair<const char *, Kind> names[] = {
      {"all_reduce", Kind::AllReduce}, {"reduce_scatter", Kind::ReduceScatter},
      {"all_gather", Kind::AllGather}, {"all_to_all", Kind::AllToAll},
      {"broadcast", Kind::Broadcast},  {"permute", Kind::Permute}};
  for (auto [text, kind] : names)
    if (name == text)
      return kind;
  return std::nullopt;
}

/// One view pair of a bucket, ready to move.
struct Transfer {
  Transfer(HostView input, HostView output)
      : input(std::move(input)), output(std::move(output)) {}
  HostView input, output;
  DType dtype;
  int64_t bytes; ///< Of an element.
  /// A: this rank's output, B: a peer's input (or, for the second half of an
  /// all_reduce, its output).
  PairLayout layout;
  PairLayout outputs;
  /// Bytes to add to this rank's address for a peer's.
  std::vector<int64_t> toInput, toOutput;
  /// Bytes to add to a peer's input or to this rank's output for the piece that
  /// goes from the peer to this rank.
  std::vector<int64_t> inputPiece, outputPiece;
};

class CollectiveTask : public HostTask {
public:
  CollectiveTask(Kind kind, Group group, HostRank &self)
      : kind(kind), group(std::move(group)), self(self),
        sources(this->group.ranks.size()) {}

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

  Kind kind;
  Group group;
  Combine combine = Combine::Sum;
  /// all_reduce into shared outputs: each rank reduces its part of the
  /// elements, then reads the others' parts. Into private outputs every rank
  /// reduces all.
  bool twoSteps = false;
  std::vector<Transfer> transfers;
  std::vector<int64_t> peers; ///< Places in the group that are read from.

private:
  Status wait() {
    self.control.self().progress.fetch_add(1);
    return waitAtBarrier(*group.barrier,
                         static_cast<uint32_t>(group.ranks.size()), self.spin,
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
          input + transfer.toInput[peer] + transfer.inputPiece[peer];
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
          input + transfer.toInput[at] + transfer.inputPiece[at];
      if (target == source)
        continue; // gathered in place
      inChunks(0, transfer.layout.elements(), [&](int64_t from, int64_t to) {
        copyElements(transfer.layout, transfer.bytes, target, source, from, to);
      });
    }
  }

  HostRank &self;
  std::vector<const void *> sources;
};

bool isShared(const Program &program, const View &view) {
  return program.buffers[view.buffer].space == "shared";
}

/// What to add to the address of `view` for that of each peer's.
std::vector<int64_t> distances(const View &view, const Group &group,
                               HostRank &self) {
  std::vector<int64_t> result;
  for (int64_t peer : group.ranks) {
    Coordinates other = Coordinates::of(self.coordinates.axes, peer);
    int64_t bytes = self.memory.shared(peer) - self.memory.shared(self.rank);
    for (const AxisStride &stride : view.axes)
      bytes += (other.at(stride.axis) - self.coordinates.at(stride.axis)) *
               stride.bytes;
    result.push_back(bytes);
  }
  return result;
}

Status wrongShape(const char *what) {
  return Status::error(std::string("expected views whose shapes fit a ") +
                       what);
}

/// Fills a transfer: what one rank's output takes from each peer's input.
Status fillTransfer(const CollectiveCommand &command, Kind kind,
                    const View &input, const View &output, const Group &group,
                    Transfer &transfer) {
  int64_t members = static_cast<int64_t>(group.ranks.size());
  transfer.dtype = input.dtype;
  transfer.bytes = dtypeBytes(input.dtype);
  transfer.inputPiece.assign(group.ranks.size(), 0);
  transfer.outputPiece.assign(group.ranks.size(), 0);
  std::vector<int64_t> piece = input.shape;
  auto dimension = [&](int64_t dim) {
    return dim >= 0 && dim < static_cast<int64_t>(piece.size());
  };
  auto place = [&](std::vector<int64_t> &pieces, const View &view, int64_t dim,
                   bool mine) {
    for (int64_t peer = 0; peer < members; ++peer)
      pieces[static_cast<size_t>(peer)] =
          (mine ? group.index : peer) * piece[static_cast<size_t>(dim)] *
          view.strides[static_cast<size_t>(dim)] * transfer.bytes;
  };
  std::vector<int64_t> expected = input.shape;
  switch (kind) {
  case Kind::AllReduce:
  case Kind::Broadcast:
  case Kind::Permute:
    break;
  case Kind::ReduceScatter:
    if (!dimension(command.dim) || piece[command.dim] % members)
      return wrongShape("reduce_scatter");
    piece[command.dim] /= members;
    expected = piece;
    place(transfer.inputPiece, input, command.dim, /*mine=*/true);
    break;
  case Kind::AllGather:
    if (!dimension(command.dim))
      return wrongShape("all_gather");
    expected[command.dim] *= members;
    if (output.shape != expected)
      return wrongShape("all_gather");
    place(transfer.outputPiece, output, command.dim, /*mine=*/false);
    break;
  case Kind::AllToAll:
    if (!dimension(command.dim) || !dimension(command.splitDim) ||
        piece[command.splitDim] % members)
      return wrongShape("all_to_all");
    piece[command.splitDim] /= members;
    expected = piece;
    expected[command.dim] *= members;
    if (output.shape != expected)
      return wrongShape("all_to_all");
    place(transfer.inputPiece, input, command.splitDim, /*mine=*/true);
    place(transfer.outputPiece, output, command.dim, /*mine=*/false);
    break;
  }
  if (output.shape != expected || output.dtype != input.dtype)
    return wrongShape(command.kind.c_str());
  transfer.layout = PairLayout(piece, output.strides, input.strides);
  if (kind == Kind::AllReduce)
    transfer.outputs = PairLayout(piece, output.strides, output.strides);
  return Status();
}

} // namespace

Status prepareCollective(const Program &program, const Command &command,
                         HostRank &self, std::unique_ptr<HostTask> &task) {
  auto &collective = std::get<CollectiveCommand>(command.what);
  std::optional<Kind> kind = kindFromName(collective.kind);
  if (!kind)
    return Status::error("found a collective of unknown kind " +
                         inQuotes(collective.kind));
  if (collective.wire)
    for (const View &view : collective.inputs)
      if (*collective.wire != view.dtype)
        return Status::error(
            std::string("expected the views' own element type on the wire, "
                        "found ") +
            dtypeName(*collective.wire));
  auto made = std::make_unique<CollectiveTask>(
      *kind, Group(self, collective.axes, command.stream), self);
  const Group &group = made->group;
  int64_t members = static_cast<int64_t>(group.ranks.size());

  bool reduces = *kind == Kind::AllReduce || *kind == Kind::ReduceScatter;
  if (reduces) {
    std::optional<Combine> combine = combineFromName(collective.combine);
    if (!combine)
      return Status::error("expected 'sum', 'max' or 'min', found " +
                           inQuotes(collective.combine));
    made->combine = *combine;
  }
  const std::vector<int64_t> &permutation = collective.permutation;
  for (int64_t source : permutation)
    if (source < 0 || source >= members)
      return Status::error("expected sources below " + std::to_string(members) +
                           ", found " + std::to_string(source));
  if (*kind == Kind::Permute) {
    if (static_cast<int64_t>(permutation.size()) != members)
      return Status::error("expected " + std::to_string(members) +
                           " sources, found " +
                           std::to_string(permutation.size()));
    made->peers = {permutation[static_cast<size_t>(group.index)]};
  } else if (*kind == Kind::Broadcast) {
    made->peers = {permutation.empty() ? 0 : permutation[0]};
  } else {
    for (int64_t peer = 0; peer < members; ++peer)
      made->peers.push_back(peer);
  }

  made->twoSteps = *kind == Kind::AllReduce;
  for (const View &output : collective.outputs)
    made->twoSteps &= isShared(program, output);
  for (size_t i = 0; i < collective.inputs.size(); ++i) {
    const View &input = collective.inputs[i], &output = collective.outputs[i];
    if (members > 1 && self.moves && !isShared(program, input))
      return Status::error("expected the input of a collective in space "
                           "'shared', found it in " +
                           inQuotes(program.buffers[input.buffer].space));
    if (reduces && !canReduce(input.dtype))
      return Status::error(std::string("expected elements that can be "
                                       "combined, found ") +
                           dtypeName(input.dtype));
    Transfer &transfer = made->transfers.emplace_back(
        HostView(input, isShared(program, input), self),
        HostView(output, isShared(program, output), self));
    ACCEL_RT_RETURN_IF_ERROR(
        fillTransfer(collective, *kind, input, output, group, transfer));
    transfer.toInput = distances(input, group, self);
    transfer.toOutput = distances(output, group, self);
  }
  task = std::move(made);
  return Status();
}

} // namespace accel::rt
