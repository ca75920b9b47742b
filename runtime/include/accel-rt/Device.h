// What executes commands; runtime/Device has a folder for each, and a table of
// them. A command is prepared once, at load, into a task, and run by being
// enqueued on a stream (accel-rt/Streams.h); after load neither allocates.

#ifndef ACCEL_RT_DEVICE_H
#define ACCEL_RT_DEVICE_H

#include "accel-rt/Streams.h"

#include <atomic>

namespace accel::rt {

class ThreadPool;

class Device : public Memory {
public:
  virtual const char *name() const = 0;

  /// Makes a task of a gemm, attention, kernel, copy, fill or pack. Errors: a
  /// kind, type or form that the device does not have.
  virtual Status prepare(const Command &command,
                         std::unique_ptr<Task> &task) = 0;

  /// Whether captures of its streams may hold tasks of the host: as the list of
  /// a thread does, or a graph with nodes that call the host.
  virtual bool capturesHostTasks() const { return false; }

  /// How many of a plan's commands one capture holds at most, so that segments
  /// and the turns of loops are joined up to there. 0: nothing is joined, since
  /// a capture saves as much of each turn as of all. Called as the target's
  /// answer is (Target::getMostCaptured).
  virtual size_t mostCaptured() const { return 0; }

  /// Makes the streams of a program; `watcher` must outlive them, they must end
  /// before the device.
  virtual Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                             std::unique_ptr<Streams> &streams) = 0;
};

} // namespace accel::rt

#endif // ACCEL_RT_DEVICE_H
