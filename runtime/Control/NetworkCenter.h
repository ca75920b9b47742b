// The parent's side of the control plane where ranks are on several machines:
// in the process that keeps rank 0. What other keepers tell it writes into the
// memory of its own machine, where all else reads it.

#ifndef ACCEL_RUNTIME_CONTROL_NETWORKCENTER_H
#define ACCEL_RUNTIME_CONTROL_NETWORKCENTER_H

#include "Control/Keeper.h"

namespace accel::rt {

class NetworkCenter : public ControlCenter {
public:
  /// Requires rank 0's keeper, which must outlive it.
  explicit NetworkCenter(Keeper &keeper);

  int64_t numRanks() const override { return keeper.places().numRanks(); }
  /// Of rank 0; the others are started by their keepers.
  Status start(int64_t rank,
               const std::function<int(ControlPlane &)> &life) override;
  std::optional<RankEnd> findEnd(int64_t rank) override;
  void kill(int64_t rank) override;
  pid_t process(int64_t rank) const override;
  const RankControl &rank(int64_t rank) override;
  double seconds(int64_t rank, int64_t call) override;
  StepRecord record(int64_t call) override;
  const Counts &counts(int64_t rank, size_t entry) override;
  void wantStop() override;
  bool isStopWanted() const override;
  void abort() override;
  bool isAborted() override;

private:
  void pump();
  void take(int64_t from, const std::vector<char> &bytes);

  Keeper &keeper;
  MachineControl &memory;
  std::vector<std::optional<RankEnd>> ends;
  std::vector<bool> told;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_NETWORKCENTER_H
