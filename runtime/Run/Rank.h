// The life of one rank, in its own process.

#ifndef ACCEL_RUNTIME_RUN_RANK_H
#define ACCEL_RUNTIME_RUN_RANK_H

#include "Comm/HostMemory.h"
#include "Control/ControlPlane.h"
#include "Device/Devices.h"
#include "Feed/DataFeed.h"
#include "Feed/InputOutput.h"
#include "Format/EntryTensors.h"
#include "Network/Lanes.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class CallServer;
class SavedWeights;
class Checkpoints;
class Resume;
class Trace;

/// An entry that is called, and what it is called on.
struct Call {
  std::string entry;
  EntryTensors tensors;
  Inputs inputs;
  DataFeed data;
  bool hasData = false; ///< Else the inputs are files alone.

  /// Whether an evaluation counts the samples that make no whole batch, too
  /// (Feed/SeparateRows.h).
  bool countsRest = false;
  /// The batches after which an evaluation ends; 0: after all.
  int64_t mostBatches = 0;

  /// Whether an evaluation ends before it comes to the samples that make no
  /// whole batch.
  bool isCutShort() const {
    return mostBatches && mostBatches <= data.numBatches();
  }
  /// The whole batches of an evaluation, and the samples behind them that it
  /// counts.
  int64_t numBatches() const {
    return !hasData ? 1 : isCutShort() ? mostBatches : data.numBatches();
  }
  int64_t numRest() const {
    return countsRest && !isCutShort() ? data.numLeft() : 0;
  }
};

/// What the parent has opened and every rank inherits.
struct Job {
  const RunOptions &options;
  const DeviceKind &device; ///< The first of `devices`.
  const std::vector<EngineKind> &devices;
  const ExecutableFile &file;
  ControlCenter &control;
  HostMemory &memory; ///< Through which ranks exchange data.
  const Call &call;
  const Call *eval; ///< Between steps; null: never.
  const Weights &weights;
  const Outputs *outputs;         ///< Null: not written.
  const SavedWeights *saved;      ///< Null: not written.
  const Checkpoints *checkpoints; ///< Null: not written.
  const Resume *resumed;          ///< Null: from the first values.
  const Trace *trace;             ///< Null: not written.
  int64_t threads;                ///< Of each rank.
  int64_t repeats;                ///< Calls, of eval evaluations.
  int64_t ranksHere;              ///< On this machine.
  int64_t coresHere;              ///< That these share.
  Word *keeperBell;               ///< Null: there is one machine.
  Lanes *lanes;                   ///< Null: messages go by the keeper.
  CallServer
      *server; ///< Of a program that calls the ranks; null: there is none.

  bool trains() const { return call.entry == "step"; }
};

/// Loads and runs; it tells of itself by `control`.
Status runRank(const Job &job, ControlPlane &control);

/// The program whose stage is the rank's coordinate on pp: every file that
/// opens has one for each.
const Program *programOf(const Executable &executable, int64_t rank);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_RANK_H
