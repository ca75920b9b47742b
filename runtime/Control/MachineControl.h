// The control plane's memory on one of several machines: what its ranks write
// for the processes that keep them, and wait for. The keepers carry it to the
// other machines (Control/Keeper.h); a rank itself knows no network. The
// memory has room for all ranks: on rank 0's machine it holds what is known of
// each.

#ifndef ACCEL_RUNTIME_CONTROL_MACHINECONTROL_H
#define ACCEL_RUNTIME_CONTROL_MACHINECONTROL_H

#include "Control/ControlPlane.h"
#include "Network/Machines.h"

namespace accel::rt {

class MachineControl {
public:
  ~MachineControl();
  MachineControl() = default;
  MachineControl(const MachineControl &) = delete;
  MachineControl &operator=(const MachineControl &) = delete;

  /// Maps what is needed, on all machines together; `spin` is for waits.
  /// Errors: no memory, on any of them.
  Status create(Machines &machines, const ControlSize &size, int spin);

  /// A rank's side, in its own process.
  std::unique_ptr<ControlPlane> makePlane(int64_t rank);

  /// What a keeper adds to the rank's own words.
  struct alignas(64) Kept {
    std::atomic<int32_t> process{0};  ///< While it lives.
    std::atomic<int64_t> reported{0}; ///< Calls whose seconds are there.
    Word bell{0};                     ///< The keeper's.
  };
  struct Head {
    Word abort{0}; ///< Waits look at it at least ten times a second.
    std::atomic<bool> stopWanted{false};
    /// Ranks of this machine that came to the meeting; its number, once all
    /// have, with what they came with; and the last that all machines came to.
    Word arrived{0};
    alignas(64) Word here{0};
    alignas(64) Word everywhere{0};
    std::atomic<int64_t> came[2] = {}, agreed[2] = {};
    std::atomic<uint64_t> logged{0}; ///< Words that were ever posted.
  };

  Head &head() { return *top; }
  RankControl &rank(int64_t rank) { return ranks[rank]; }
  Kept &kept(int64_t rank) { return keeping[rank]; }
  double &seconds(int64_t rank, int64_t call) {
    return times[rank * size.calls + call];
  }
  StepRecord &record(int64_t call) { return records[call]; }
  Counts &counts(int64_t rank, size_t entry) {
    return entryCounts[static_cast<size_t>(rank) * size.entries + entry];
  }
  std::atomic<uint64_t> &word(size_t number) { return board[number]; }
  const ControlSize &sizes() const { return size; }

  /// Takes the next word that a rank of this machine has posted; of one keeper.
  bool takePosted(size_t &number);
  /// Lets the ranks of this machine go on from meeting `turn`.
  void open(uint32_t turn, int64_t value);
  void abort();

private:
  class Plane;
  /// Wakes the keeper of a rank.
  void ring(int64_t rank);

  ControlSize size;
  int64_t members = 1, leader = 0;
  bool isOnly = true; ///< The ranks of this machine are all.
  int spin = 0;
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  Head *top = nullptr;
  RankControl *ranks = nullptr;
  Kept *keeping = nullptr;
  double *times = nullptr;
  StepRecord *records = nullptr;
  Counts *entryCounts = nullptr;
  std::atomic<uint64_t> *board = nullptr;
  /// Numbers of words that were posted, + 1, until a keeper takes them. Each is
  /// written once between two meetings, and taken at each.
  std::atomic<uint64_t> *log = nullptr;
  uint64_t logRoom = 0, taken = 0;
  std::atomic<int64_t> *votes = nullptr;
  std::vector<int64_t> here;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_MACHINECONTROL_H
