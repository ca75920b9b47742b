// Checking a collective's views, and laying out what moves between them.

#include "Comm/Transfer.h"

namespace accel::rt {

bool isShared(const Program &program, const View &view) {
  return program.buffers[view.buffer].space == "shared";
}

namespace {

using Kind = CollectiveKind;

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
  transfer.outputPiece.assign(group.ranks.size(), 0);
  std::vector<int64_t> piece = input.shape;
  auto dimension = [&](int64_t dim) {
    return dim >= 0 && dim < static_cast<int64_t>(piece.size());
  };
  auto step = [&](const View &view, int64_t dim) {
    return piece[static_cast<size_t>(dim)] *
           view.strides[static_cast<size_t>(dim)] * transfer.bytes;
  };
  auto placeOutputs = [&] {
    for (int64_t peer = 0; peer < members; ++peer)
      transfer.outputPiece[static_cast<size_t>(peer)] =
          peer * step(output, command.dim);
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
    transfer.inputStep = step(input, command.dim);
    break;
  case Kind::AllGather:
    if (!dimension(command.dim))
      return wrongShape("all_gather");
    expected[command.dim] *= members;
    if (output.shape != expected)
      return wrongShape("all_gather");
    placeOutputs();
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
    transfer.inputStep = step(input, command.splitDim);
    placeOutputs();
    break;
  }
  if (output.shape != expected || output.dtype != input.dtype)
    return wrongShape(command.kind.c_str());
  transfer.piece = piece;
  transfer.layout = PairLayout(piece, output.strides, input.strides);
  std::vector<int64_t> plain = rowMajorStrides(piece);
  transfer.pack = PairLayout(piece, plain, input.strides);
  transfer.unpack = PairLayout(piece, output.strides, plain);
  if (kind == Kind::AllReduce)
    transfer.outputs = PairLayout(piece, output.strides, output.strides);
  return Status();
}

} // namespace

std::vector<int64_t> distances(const View &view, const Group &group,
                               HostRank &self) {
  std::vector<int64_t> result;
  for (int64_t peer : group.ranks) {
    if (!self.memory.isHere(peer)) {
      result.push_back(0);
      continue;
    }
    Coordinates other = Coordinates::of(self.coordinates.axes, peer);
    int64_t bytes = self.memory.shared(peer) - self.memory.shared(self.rank);
    for (const AxisStride &stride : view.axes)
      bytes += (other.at(stride.axis) - self.coordinates.at(stride.axis)) *
               stride.bytes;
    result.push_back(bytes);
  }
  return result;
}

Status makeTransfers(const Program &program, const Command &command,
                     HostRank &self, std::unique_ptr<Transfers> &made) {
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
  made = std::make_unique<Transfers>(
      Transfers{*kind,
                Combine::Sum,
                Group(self, collective.axes, command.stream),
                {},
                {}});
  const Group &group = made->group;
  int64_t members = static_cast<int64_t>(group.ranks.size());

  bool reduces = made->reduces();
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
    made->sources = permutation;
  } else if (*kind == Kind::Broadcast) {
    made->sources.assign(static_cast<size_t>(members),
                         permutation.empty() ? 0 : permutation[0]);
  }
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
    Transfer &transfer = made->all.emplace_back(
        HostView(input, isShared(program, input), self),
        HostView(output, isShared(program, output), self));
    ACCEL_RT_RETURN_IF_ERROR(
        fillTransfer(collective, *kind, input, output, group, transfer));
    transfer.toInput = distances(input, group, self);
    transfer.toOutput = distances(output, group, self);
  }
  return Status();
}

} // namespace accel::rt
