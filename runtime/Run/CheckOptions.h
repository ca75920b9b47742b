// Whether a run's options fit the executable, the machine and each other:
// asked before anything is opened for writing.

#ifndef ACCEL_RUNTIME_RUN_CHECKOPTIONS_H
#define ACCEL_RUNTIME_RUN_CHECKOPTIONS_H

#include "Data/SampleOrder.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class Resume;
struct BestEvaluation;
struct EngineKind;

/// Finds the devices to run on, by the engines of the file's bodies. Errors:
/// another number of ranks, no such device, one that cannot run the file, a
/// machine that lacks what the code needs, options that only one kind of
/// program or device has, or that need others.
Status checkOptions(const Executable &plan, const RunOptions &options,
                    std::vector<EngineKind> &devices);

/// What --last-batch says; empty: Next. Errors: another word than next, drop or
/// keep.
Status readLastBatch(const std::string &text, SampleOrder::Last &last);

/// The entry that the options call, or what the file is for. Errors: it has no
/// such entry.
Status chooseEntry(const Executable &plan, const RunOptions &options,
                   std::string &entry);

/// Why early stopping ends a run: a clause.
std::string whyStopped(const BestEvaluation &best, const RunOptions &options);

/// How often `entry` is to be called: with `resume` (or null),
/// the steps that are left. Errors: none is left, but outputs are asked for;
/// without outputs, that is a warning. So is an evaluation that no step is due
/// for, and a checkpoint at which early stopping has ended training.
Status countRuns(const std::string &entry, const RunOptions &options,
                 const Resume *resume, int64_t &repeats);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_CHECKOPTIONS_H
