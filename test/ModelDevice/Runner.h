// Runs what was enqueued between two joins, in an order that its edges allow.

#ifndef ACCEL_TEST_MODELDEVICE_RUNNER_H
#define ACCEL_TEST_MODELDEVICE_RUNNER_H

#include "CommandInfo.h"
#include "Order.h"
#include "Timeline.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace accel::rt::model {

class Runner {
public:
  using FindInfo = std::function<const CommandInfo *(const Work &)>;
  Runner(const std::vector<Node> &nodes, size_t streams, Order &order,
         StreamWatcher &watcher, FindInfo findInfo);
  ~Runner();

  /// Runs all, or until the first failure.
  Failure run();

private:
  void start(size_t number);
  void carryOut(size_t number);
  void end(size_t number, Status status);
  /// Takes note of what threads have ended; waits for one if `waits`.
  void collect(bool waits);

  const std::vector<Node> &nodes;
  Order &order;
  StreamWatcher &watcher;
  FindInfo findInfo;
  std::vector<std::vector<size_t>> after; ///< Of each node.
  std::vector<size_t> open;               ///< That each stands behind.
  std::vector<Ready> ready;
  std::vector<std::thread> threads; ///< Of each stream.
  size_t numRunning = 0;            ///< In threads.
  Failure failure;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<size_t, Status>> ended; ///< By threads, under `mutex`.
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_RUNNER_H
