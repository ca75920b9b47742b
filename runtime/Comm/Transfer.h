// What a collective moves: for one view pair of a bucket, which bytes of which
// rank's input make which bytes of this rank's output.

#ifndef ACCEL_RUNTIME_COMM_TRANSFER_H
#define ACCEL_RUNTIME_COMM_TRANSFER_H

#include "Comm/HostComm.h"
#include "Comm/Reduce.h"

namespace accel::rt {

enum class CollectiveKind {
  AllReduce,
  ReduceScatter,
  AllGather,
  AllToAll,
  Broadcast,
  Permute
};

/// One view pair of a bucket, ready to move.
struct Transfer {
  Transfer(HostView input, HostView output)
      : input(std::move(input)), output(std::move(output)) {}
  HostView input, output;
  DType dtype;
  int64_t bytes;              ///< Of an element.
  std::vector<int64_t> piece; ///< The shape of what one peer gives to another.
  /// A: this rank's output, B: a peer's input (or, for the second half of an
  /// all_reduce, its output).
  PairLayout layout;
  PairLayout outputs;
  /// A: elements one after another, B: a peer's input; and the same the other
  /// way round with this rank's output as A.
  PairLayout pack, unpack;
  /// Bytes to add to this rank's address for a peer's, where that is on this
  /// machine.
  std::vector<int64_t> toInput, toOutput;
  /// Bytes to add to a peer's input for the piece that goes to a place in the
  /// group, for each place further.
  int64_t inputStep = 0;
  /// Bytes to add to this rank's output for what comes from a peer.
  std::vector<int64_t> outputPiece;
};

/// A collective with its views, of this rank.
struct Transfers {
  CollectiveKind kind;
  Combine combine = Combine::Sum;
  Group group;
  std::vector<int64_t> sources; ///< Of permute and broadcast, for each place.
  std::vector<Transfer> all;

  bool reduces() const {
    return kind == CollectiveKind::AllReduce ||
           kind == CollectiveKind::ReduceScatter;
  }
  /// Whether places of the group get the same of a peer's input.
  bool isCut() const {
    return kind == CollectiveKind::ReduceScatter ||
           kind == CollectiveKind::AllToAll;
  }
};

/// Errors: a kind, type or place of a view that host communication lacks.
Status makeTransfers(const Program &program, const Command &command,
                     HostRank &self, std::unique_ptr<Transfers> &made);

/// What to add to the address of `view` for that of each peer's on this
/// machine.
std::vector<int64_t> distances(const View &view, const Group &group,
                               HostRank &self);

/// Makes the task of a fetch_rows. Errors: an index or rows that are not as
/// they must be.
Status prepareFetchRows(const Program &program, const Command &command,
                        HostRank &self, std::unique_ptr<HostTask> &task);

/// Whether a view lies where the other ranks of its machine can read it.
bool isShared(const Program &program, const View &view);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_TRANSFER_H
