// A control plane over memory that the ranks of one machine share: mapped
// before they are forked, without a name, so that nothing of it can outlive
// them.

#ifndef ACCEL_RUNTIME_CONTROL_SHAREDCONTROL_H
#define ACCEL_RUNTIME_CONTROL_SHAREDCONTROL_H

#include "Control/ForkedCenter.h"

namespace accel::rt {

/// A barrier of one group of ranks. All zero at the start.
struct alignas(64) BarrierCell {
  Word arrived{0}, generation{0};
};

/// Waits until all `members` of the group are at `cell`, with `spin` looks
/// before it sleeps. Errors: the run is aborted.
Status waitAtBarrier(BarrierCell &cell, uint32_t members, int spin,
                     ControlPlane &control);

class SharedControl : public ForkedCenter {
public:
  ~SharedControl() override;
  SharedControl() = default;
  SharedControl(const SharedControl &) = delete;
  SharedControl &operator=(const SharedControl &) = delete;

  /// Maps what is needed; `spin` is for waits at barriers.
  Status create(const ControlSize &size, int spin);

  const RankControl &rank(int64_t rank) override { return ranks[rank]; }
  double seconds(int64_t rank, int64_t call) override {
    return times[rank * size.calls + call];
  }
  StepRecord record(int64_t call) override { return records[call]; }
  const Counts &counts(int64_t rank, size_t entry) override {
    return entryCounts[static_cast<size_t>(rank) * size.entries + entry];
  }
  void wantStop() override { head->stopWanted = true; }
  bool isStopWanted() const override { return head->stopWanted; }
  void abort() override { head->abort.store(1); }
  bool isAborted() override { return head->abort.load() != 0; }

  /// A rank's side; a test may have several in one process.
  std::unique_ptr<ControlPlane> makePlane(int64_t rank) override;

private:
  class Plane;
  struct Head {
    /// Not 0: everybody ends. Waits look at it at least ten times a second.
    Word abort{0};
    std::atomic<bool> stopWanted{false};
    BarrierCell barrier;
  };
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  int spin = 0;
  Head *head = nullptr;
  RankControl *ranks = nullptr;
  double *times = nullptr;
  StepRecord *records = nullptr;
  Counts *entryCounts = nullptr;
  std::atomic<uint64_t> *board = nullptr;
  /// What ranks came with, two of each: a rank may be at the next agreement
  /// while another still reads the last.
  std::atomic<int64_t> *votes = nullptr;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_SHAREDCONTROL_H
