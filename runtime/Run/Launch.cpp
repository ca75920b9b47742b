// The parent: opens and checks everything, lets the Supervisor run the ranks,
// and finishes what they have written.

#include "Control/SharedControl.h"
#include "Feed/DataFeed.h"
#include "Run/CheckOptions.h"
#include "Run/StepReports.h"
#include "Run/Supervisor.h"
#include "State/Checkpoint.h"
#include "State/GivenWeights.h"
#include "State/Resume.h"
#include "State/SavedWeights.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sched.h>

namespace accel::rt {
namespace {

int64_t coresHere() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// What each entry of a rank that was called comes to.
std::map<std::string, EntryCounts> countsOf(const Job &job, int64_t rank) {
  std::map<std::string, EntryCounts> counts;
  const Program &program = *programOf(job.file.plan(), rank);
  for (size_t i = 0; i < program.entries.size(); ++i)
    if (EntryCounts found = nameCounts(job.control.counts(rank, i));
        !found.empty() || program.entries[i].name == "load")
      counts[program.entries[i].name] = std::move(found);
  return counts;
}

void collect(const Job &job, RunResult &result) {
  const Executable &plan = job.file.plan();
  result.device = job.device.name;
  result.ranks = plan.numRanks();
  result.seconds.assign(static_cast<size_t>(job.repeats), 0);
  for (int64_t rank = 0; rank < result.ranks; ++rank) {
    const RankControl &self = job.control.rank(rank);
    uint64_t planned = 0;
    for (const ArenaPlan &arena : programOf(plan, rank)->arenas)
      planned += static_cast<uint64_t>(arena.bytes);
    result.threads = self.threads;
    result.plannedPeakBytes = std::max(result.plannedPeakBytes, planned);
    result.measuredPeakBytes =
        std::max(result.measuredPeakBytes, self.arenaBytes);
    result.touchedPeakBytes =
        std::max(result.touchedPeakBytes, self.touchedBytes);
    result.residentBytes = std::max(result.residentBytes, self.residentBytes);
    result.reservedBytes = std::max(result.reservedBytes, self.reservedBytes);
    if (!job.device.executes)
      result.counts.push_back(countsOf(job, rank));
    else if (self.residentBytes > planned + self.reservedBytes)
      std::fprintf(stderr,
                   "acc-run: warning: rank %lld holds %.1f MiB beside its "
                   "arenas, more than the %.1f MiB reserved in the plan\n",
                   static_cast<long long>(rank),
                   double(self.residentBytes - planned) / (1 << 20),
                   double(self.reservedBytes) / (1 << 20));
    result.loadSeconds = std::max(result.loadSeconds, self.loadSeconds);
    for (int64_t repeat = 0; repeat < job.repeats; ++repeat)
      result.seconds[repeat] =
          std::max(result.seconds[repeat], job.control.seconds(rank, repeat));
  }
}

/// Opens what an entry is called on: files of a folder (none if its name is
/// empty), or tokens and files.
Status openCall(const Executable &plan, const std::string &folder,
                const DataSource &source, bool executes, Call &call) {
  call.tensors = tensorsOf(plan, call.entry);
  call.hasData = !source.path.empty();
  if (call.hasData)
    ACCEL_RT_RETURN_IF_ERROR(call.data.open(call.tensors.inputs, source));
  if (call.entry == "eval" && call.numBatches() < 1)
    return Status::error("expected at least one batch of samples to evaluate "
                         "on in " +
                         inQuotes(source.path) + ", found less");
  return executes ? call.inputs.open(plan.inputs, call.tensors.inputs, folder,
                                     call.hasData ? &call.data : nullptr)
                  : Status();
}

} // namespace

Status runExecutable(const RunOptions &given, RunResult &result) {
  std::unique_ptr<ExecutableFile> file;
  ACCEL_RT_RETURN_IF_ERROR(ExecutableFile::open(given.executable, file));
  const Executable &plan = file->plan();
  int64_t ranks = plan.numRanks();
  const DeviceKind *device = nullptr;
  ACCEL_RT_RETURN_IF_ERROR(checkOptions(plan, given, device));
  // A file may be compiled where it will not be run.
  constexpr int64_t mostHere = 4096;
  if (ranks > mostHere)
    return Status::error("expected at most " + std::to_string(mostHere) +
                         " ranks, which are processes of this machine, found " +
                         std::to_string(ranks));
  Call call, eval;
  ACCEL_RT_RETURN_IF_ERROR(chooseEntry(plan, given, call.entry));
  Resume resume;
  bool resumes = !given.resume.empty();
  if (resumes)
    ACCEL_RT_RETURN_IF_ERROR(
        resume.open(given.resume, plan, Resume::Wanted::All, given.warn));
  int64_t repeats;
  ACCEL_RT_RETURN_IF_ERROR(
      countRuns(call.entry, given, resumes ? &resume : nullptr, repeats));
  RunOptions options = given;
  // The data go on in the order in which they began.
  if (resumes && !options.seed && resume.manifest().data)
    options.seed = resume.manifest().data->seed;
  DataSource source{options.data, options.dataType, options.dataLabels, {}};
  if (call.entry == "step")
    source.seed = options.seed.value_or(plan.seed);
  bool executes = device->executes, hasData = !options.data.empty();
  ACCEL_RT_RETURN_IF_ERROR(
      openCall(plan, options.inputs.empty() && !hasData ? "." : options.inputs,
               source, executes, call));
  bool evaluates = options.evalEvery > 0;
  eval.entry = "eval";
  if (evaluates)
    ACCEL_RT_RETURN_IF_ERROR(
        openCall(plan, options.evalInputs,
                 {options.evalData, options.dataType, options.dataLabels, {}},
                 executes, eval));
  DataCursor cursor;
  bool checkpointed = !options.checkpoint.empty();
  if (hasData)
    ACCEL_RT_RETURN_IF_ERROR(
        call.data.getCursor(checkpointed || resumes, options, cursor));
  if (resumes)
    ACCEL_RT_RETURN_IF_ERROR(
        resume.checkData(hasData ? &cursor : nullptr, options.warn));
  if (!executes)
    options.step = nullptr; // nothing was learned that it could tell
  for (const Call *each : {&call, &eval}) {
    std::string text;
    if (each->hasData && options.warn)
      text = each->data.labelWarning(plan, options, each->inputs);
    if (text.empty())
      continue;
    options.warn(text);
    break; // one option is for both
  }
  GivenWeights givenWeights;
  SavedStates savedStates;
  if (resumes)
    savedStates = [&](auto &name) { return resume.find(name); };
  if (!options.weights.empty()) {
    ACCEL_RT_RETURN_IF_ERROR(givenWeights.open(options, plan));
    savedStates = [&](auto &name) { return givenWeights.find(name); };
  }
  Weights weights;
  if (executes)
    ACCEL_RT_RETURN_IF_ERROR(weights.open(*file, savedStates));
  HostMemory memory;
  ACCEL_RT_RETURN_IF_ERROR(memory.create(plan, device->executes));
  Outputs outputs;
  if (!options.outputs.empty())
    ACCEL_RT_RETURN_IF_ERROR(
        outputs.create(plan, call.tensors.outputs, options.outputs));
  SavedWeights saved;
  bool saves = !options.saveWeights.empty();
  if (saves)
    ACCEL_RT_RETURN_IF_ERROR(saved.create(*file, weights, options.saveWeights,
                                          options.originalWeights,
                                          options.warn));
  Checkpoints checkpoints;
  if (checkpointed)
    ACCEL_RT_RETURN_IF_ERROR(checkpoints.open(*file, options, weights,
                                              resumes ? &resume : nullptr,
                                              hasData ? &cursor : nullptr));
  int64_t threads = options.threads ? options.threads
                    : device->executes
                        ? std::max<int64_t>(1, coresHere() / ranks)
                        : 1;
  ControlSize size;
  size.ranks = ranks;
  size.calls = repeats;
  size.words = CheckpointWriter::numWords(plan) +
               static_cast<size_t>(ranks) * plan.states.size();
  for (const Program &program : plan.programs)
    size.entries = std::max(size.entries, program.entries.size());
  SharedControl shared;
  if (!options.ownControl)
    ACCEL_RT_RETURN_IF_ERROR(shared.create(size, spinLimit(ranks * threads)));
  std::unique_ptr<ControlCenter> own;
  if (options.ownControl)
    ACCEL_RT_RETURN_IF_ERROR(options.ownControl(size, own));
  ControlCenter &control = own ? *own : shared;
  Job job{options,
          *device,
          *file,
          control,
          memory,
          call,
          evaluates ? &eval : nullptr,
          weights,
          options.outputs.empty() ? nullptr : &outputs,
          saves ? &saved : nullptr,
          checkpointed ? &checkpoints : nullptr,
          resumes ? &resume : nullptr,
          threads,
          repeats};
  // What a user who has to run it again wants to know.
  auto withLast = [&](Status status) {
    return checkpointed
               ? Status::error(status.message() + checkpoints.whereIsTheLast())
               : status;
  };
  Supervisor supervisor(job);
  Status ended = supervisor.run();
  if (!ended.ok()) {
    result.interruptedBy = Interrupts::received();
    if (checkpointed)
      checkpoints.discard();
    return withLast(std::move(ended));
  }
  if (int64_t at = control.interruptedAt(); at != RankControl::kNever) {
    result.interruptedBy = Interrupts::received();
    std::string why = result.interruptedBy ? std::string("interrupted by ") +
                                                 strsignal(result.interruptedBy)
                                           : supervisor.untold().message();
    return withLast(Status::error(
        why + " after step " + std::to_string(control.firstStep() + at) +
        " of " + std::to_string(control.firstStep() + repeats)));
  }
  if (saves)
    if (Status status = saved.finish(); !status.ok())
      return withLast(std::move(status));
  if (control.stoppedAt())
    return withLast(badStep(job));
  if (!options.outputs.empty())
    ACCEL_RT_RETURN_IF_ERROR(outputs.finish());
  if (!supervisor.untold().ok())
    return withLast(supervisor.untold());
  collect(job, result);
  if (call.entry == "eval" && executes) {
    result.evalLoss = control.record(0).evalLoss;
    for (const TensorPlan &output : call.tensors.outputs)
      if (output.name == kStepReports[StepRecord::Loss])
        result.evalLossType = output.dtype;
  }
  if (checkpointed)
    result.lastCheckpoint = checkpoints.whereIsTheLast();
  return Status();
}

} // namespace accel::rt
