// A control plane over sockets: ranks and parent share no memory, each word
// goes by a message through the parent. It shows that the interface asks for
// nothing that a network has not, and is as slow as the parent looks at its
// sockets.

#ifndef ACCEL_RUNTIME_CONFORMANCE_SOCKETCONTROL_H
#define ACCEL_RUNTIME_CONFORMANCE_SOCKETCONTROL_H

#include "Control/ForkedCenter.h"

#include <memory>
#include <vector>

namespace accel::rt::conformance {

class SocketControl : public ForkedCenter {
public:
  ~SocketControl() override;
  SocketControl() = default;
  SocketControl(const SocketControl &) = delete;
  SocketControl &operator=(const SocketControl &) = delete;

  Status create(const ControlSize &size, int spin);

  Status start(int64_t rank,
               const std::function<int(ControlPlane &)> &life) override;
  std::optional<RankEnd> findEnd(int64_t rank) override;
  const RankControl &rank(int64_t rank) override;
  double seconds(int64_t rank, int64_t call) override;
  StepRecord record(int64_t call) override;
  const Counts &counts(int64_t rank, size_t entry) override;
  void wantStop() override;
  bool isStopWanted() const override { return stopWanted; }
  void abort() override;
  bool isAborted() override;

protected:
  std::unique_ptr<ControlPlane> makePlane(int64_t rank) override;

private:
  class Plane;
  struct Message;
  /// What the parent knows of a rank.
  struct Peer {
    int socket = -1;
    std::unique_ptr<RankControl> signs = std::make_unique<RankControl>();
    std::vector<double> seconds;
    std::vector<Counts> counts;
  };
  void pump();
  void take(Peer &peer, const Message &message);
  void broadcast(const Message &message);

  std::vector<Peer> peers;
  std::vector<StepRecord> records;
  int childSocket = -1;
  int64_t arrived = 0, greatest = INT64_MIN;
  bool stopWanted = false, aborted = false;
};

} // namespace accel::rt::conformance

#endif // ACCEL_RUNTIME_CONFORMANCE_SOCKETCONTROL_H
