// The part of a control plane that is about processes: each rank is one, forked
// from the parent.

#ifndef ACCEL_RUNTIME_CONTROL_FORKEDCENTER_H
#define ACCEL_RUNTIME_CONTROL_FORKEDCENTER_H

#include "Control/ControlPlane.h"

namespace accel::rt {

class ForkedCenter : public ControlCenter {
public:
  int64_t numRanks() const override { return size.ranks; }
  Status start(int64_t rank,
               const std::function<int(ControlPlane &)> &life) override;
  std::optional<RankEnd> findEnd(int64_t rank) override;
  void kill(int64_t rank) override;
  pid_t process(int64_t rank) const override {
    return processes[static_cast<size_t>(rank)];
  }

protected:
  /// The plane of a rank, made in its own process.
  virtual std::unique_ptr<ControlPlane> makePlane(int64_t rank) = 0;

  void resize(const ControlSize &wanted) {
    size = wanted;
    processes.assign(static_cast<size_t>(wanted.ranks), 0);
  }

  ControlSize size;

private:
  std::vector<pid_t> processes; ///< 0: not started, or ended.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CONTROL_FORKEDCENTER_H
