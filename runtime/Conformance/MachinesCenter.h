// The control plane of several machines as one center for tests: keepers are
// forked where a test starts their ranks, and are said to be on machines a, b,
// a.

#ifndef ACCEL_RUNTIME_CONFORMANCE_MACHINESCENTER_H
#define ACCEL_RUNTIME_CONFORMANCE_MACHINESCENTER_H

#include "Conformance/SocketNetwork.h"
#include "Control/NetworkCenter.h"

namespace accel::rt::conformance {

class MachinesCenter : public ControlCenter {
public:
  ~MachinesCenter() override;
  Status create(const ControlSize &size, int spin);

  int64_t numRanks() const override { return size.ranks; }
  /// Ranks in their order: with the last of them all begin.
  Status start(int64_t rank,
               const std::function<int(ControlPlane &)> &life) override;
  std::optional<RankEnd> findEnd(int64_t rank) override {
    return center->findEnd(rank);
  }
  void kill(int64_t rank) override { center->kill(rank); }
  pid_t process(int64_t rank) const override { return center->process(rank); }
  const RankControl &rank(int64_t rank) override { return center->rank(rank); }
  double seconds(int64_t rank, int64_t call) override {
    return center->seconds(rank, call);
  }
  StepRecord record(int64_t call) override { return center->record(call); }
  const Counts &counts(int64_t rank, size_t entry) override {
    return center->counts(rank, entry);
  }
  void wantStop() override { center->wantStop(); }
  bool isStopWanted() const override { return center->isStopWanted(); }
  void abort() override { center->abort(); }
  bool isAborted() override { return center->isAborted(); }

  /// The process that keeps a rank other than 0.
  pid_t keeperOf(int64_t rank) const {
    return keepers[static_cast<size_t>(rank)];
  }

private:
  Status join(int64_t rank);

  ControlSize size;
  int spin = 0;
  SocketMesh mesh;
  std::unique_ptr<Machines> machines;
  std::unique_ptr<Keeper> keeper;
  std::unique_ptr<NetworkCenter> center;
  std::vector<pid_t> keepers;
};

} // namespace accel::rt::conformance

#endif // ACCEL_RUNTIME_CONFORMANCE_MACHINESCENTER_H
