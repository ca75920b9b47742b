// A run as its parent process has it: what is opened for it, and made by it.

#ifndef ACCEL_RUNTIME_RUN_LAUNCH_H
#define ACCEL_RUNTIME_RUN_LAUNCH_H

#include "Run/CallServer.h"
#include "Run/Fleet.h"
#include "Run/OpenCall.h"
#include "Run/Supervisor.h"
#include "Run/Trace.h"
#include "State/CheckpointWriter.h"
#include "State/GivenWeights.h"
#include "State/Resume.h"
#include "State/SavedWeights.h"

namespace accel::rt {

/// What a process opens of a run, and makes for it. On one machine there is one
/// process; of a fleet each has its own.
class Launch {
public:
  Launch(const RunOptions &given, Fleet *fleet) : options(given), fleet(fleet) {
    if (!fleet || fleet->leads())
      return;
    // One process speaks for all.
    options.progress = nullptr;
    options.warn = nullptr;
    options.begin = nullptr;
    options.step = nullptr;
  }

  /// Opens what is read. Errors: it cannot run.
  Status open();
  /// What must be the same for all processes of a fleet.
  Status identify(Identity &identity) const;
  /// Makes what is written, and the memory that ranks share.
  Status make();
  /// Runs the ranks, and finishes what they have written.
  Status run(RunResult &result);
  /// The same in a process that does not oversee.
  Status follow(RunResult &result);

private:
  Status openCalls(const Executable &plan);
  void orderData(const Executable &plan, DataSource &source);
  Status countEpochs();
  Status checkDataOptions() const;
  Status checkTargets() const;
  Status finish(const Job &job, const Supervisor &supervisor, Status ended,
                RunResult &result);
  Status makeFiles();
  void serve();
  Job job(ControlCenter &control);
  ControlSize controlSize() const;
  Status withLast(Status status) const;
  std::string whyDataEnd(ControlCenter &control) const;

  RunOptions options;
  Fleet *fleet;
  std::unique_ptr<ExecutableFile> file;
  std::vector<EngineKind> devices;
  const DeviceKind *device = nullptr; ///< The first of them.
  Call call, eval;
  Resume resume;
  bool resumes = false, evaluates = false, checkpointed = false, saves = false;
  int64_t repeats = 0, threads = 0, ranksHere = 0, coresHere = 1;
  DataCursor cursor;
  bool hasData = false;
  GivenWeights givenWeights;
  Weights weights;
  HostMemory memory;
  std::unique_ptr<CallServer> server;
  Outputs outputs;
  SavedWeights saved;
  Checkpoints checkpoints;
  Trace trace;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_LAUNCH_H
