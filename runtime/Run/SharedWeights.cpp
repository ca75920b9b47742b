// Finds the pieces once, and moves them.

#include "Run/SharedWeights.h"

#include "Base/StagingBytes.h"
#include "Execute/Executor.h"
#include "State/SavedWeights.h"

namespace accel::rt {
SharedWeights::SharedWeights(const RankParts &parts, const CallServer &server)
    : parts(parts), staging(kStagingBytes) {
  const Executable &executable = parts.job.file.plan();
  HeldStates anywhere, here = findHeld(parts.program);
  for (const Program &program : executable.programs)
    anywhere.merge(findHeld(program));
  for (size_t i = 0; i < executable.states.size(); ++i) {
    const StatePlan &state = executable.states[i];
    const TensorRange *shared = server.weight(i);
    if (!shared)
      continue;
    if (!anywhere.count(state.keptAs())) {
      if (static_cast<int64_t>(i) % executable.numRanks() == parts.rank)
        unheld.push_back({&state, &parts.job.weights.values()[i], shared});
      continue;
    }
    auto found = here.find(state.keptAs());
    if (found == here.end())
      continue;
    const ReadCommand &read = *found->second;
    std::optional<KeptPiece> kept =
        findKept(state, read.part, read.target, parts.coordinates);
    if (!kept)
      continue;
    Address at = parts.executor.address(kept->view);
    pieces.push_back(
        {PieceMover(*shared, kept->part, kept->view, parts.coordinates,
                    parts.executor.memory().ifRemote(at), &staging),
         at, isWriter(read.part, parts.coordinates)});
  }
}

Status SharedWeights::readWhole(const TensorRange &range,
                                const StatePlan &state,
                                std::vector<char> &bytes) const {
  const std::vector<int64_t> &shape = state.valueShape();
  View view;
  view.dtype = state.dtype;
  view.shape = shape;
  view.strides = rowMajorStrides(shape);
  Part part{shape, {}};
  part.axes.resize(shape.size());
  bytes.resize(
      static_cast<size_t>(numElements(shape) * dtypeBytes(state.dtype)));
  return PieceMover(range, part, view, {}).read(bytes.data(), 0);
}

Status SharedWeights::get() {
  RankControl &self = parts.control.self();
  for (Piece &piece : pieces) {
    if (piece.isWriter)
      ACCEL_RT_RETURN_IF_ERROR(piece.mover.write(piece.address, 0));
    self.progress.fetch_add(1);
  }
  std::vector<char> bytes;
  for (const Unheld &each : unheld) {
    ACCEL_RT_RETURN_IF_ERROR(readWhole(each.value->range, *each.state, bytes));
    ACCEL_RT_RETURN_IF_ERROR(writeRange(each.shared->fd, each.shared->path,
                                        each.shared->offset, bytes.data(),
                                        bytes.size()));
    self.progress.fetch_add(1);
  }
  return Status();
}

Status SharedWeights::checkUnheld(const Unheld &each,
                                  std::string &refused) const {
  std::vector<char> own, given;
  ACCEL_RT_RETURN_IF_ERROR(readWhole(each.value->range, *each.state, own));
  ACCEL_RT_RETURN_IF_ERROR(readWhole(*each.shared, *each.state, given));
  if (own != given)
    refused = "expected the value that it has of the " + each.state->role +
              " " + inQuotes(each.state->name) +
              ", which is frozen and no rank keeps as it was (it is packed for "
              "products, or nothing uses it), found another: load the "
              "executable with these weights instead";
  return Status();
}

Status SharedWeights::set(bool &isTaken, std::string &refused) {
  RankControl &self = parts.control.self();
  for (const Unheld &each : unheld) {
    ACCEL_RT_RETURN_IF_ERROR(checkUnheld(each, refused));
    self.progress.fetch_add(1);
    if (!refused.empty())
      break;
  }
  int64_t isRefused = !refused.empty();
  ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(isRefused));
  isTaken = !isRefused;
  if (!isTaken)
    return Status();
  for (Piece &piece : pieces) {
    ACCEL_RT_RETURN_IF_ERROR(piece.mover.read(piece.address, 0));
    self.progress.fetch_add(1);
  }
  return Status();
}

} // namespace accel::rt
