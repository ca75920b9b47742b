// The parent: opens and checks everything (OpenLaunch.cpp), lets the Supervisor
// run the ranks, and finishes what they have written.

#include "Run/Launch.h"

#include "Base/UniqueName.h"
#include "Control/NetworkCenter.h"
#include "Control/SharedControl.h"
#include "Run/FilesInUse.h"
#include "Run/StepReports.h"

namespace accel::rt {

/// Nothing that is written takes the place of what is read.
Status Launch::checkTargets() const {
  FilesInUse files;
  files.reads(file->descriptor(), "the executable");
  for (const Call *each : {&call, &eval}) {
    for (const DataFile *data : each->data.files())
      files.reads(data->descriptor(), "data");
    for (const TensorPlan &input : each->tensors.inputs)
      if (const TensorRange *range = each->inputs.find(input.name))
        files.reads(range->fd, "input " + inQuotes(input.name));
  }
  for (const OpenTensor &value : weights.values())
    files.reads(value.range.fd, "weights");
  std::string folder = folderOf(options.executable);
  for (const StatePlan &state : file->plan().states)
    if (!state.first.path.empty())
      files.reads((folder == "." ? "" : folder) + state.first.path,
                  "weights of the executable");
  for (const std::string *given : {&options.weights, &options.originalWeights})
    if (!given->empty())
      files.reads(*given, "weights");
  if (resumes)
    files.reads(resume.path() + "/" + kManifestFile, "a checkpoint");
  for (const std::string &path : outputs.paths())
    ACCEL_RT_RETURN_IF_ERROR(files.writes(path, "--outputs"));
  for (auto [path, option] : {std::pair(&options.saveWeights, "--save-weights"),
                              std::pair(&options.trace, "--trace")})
    if (!path->empty())
      ACCEL_RT_RETURN_IF_ERROR(files.writes(*path, option));
  return Status();
}

/// Of a fleet rank 0's process makes files, and the others open them.
Status Launch::makeFiles() {
  const Executable &plan = file->plan();
  SharedName shared = fleet ? fleet->sharedName() : SharedName();
  if (!options.outputs.empty())
    ACCEL_RT_RETURN_IF_ERROR(
        outputs.create(plan, call.tensors.outputs, options.outputs, shared));
  if (saves) {
    std::optional<DType> type;
    ACCEL_RT_RETURN_IF_ERROR(readSaveType(options.saveType, type));
    ACCEL_RT_RETURN_IF_ERROR(saved.create(
        *file, weights, options.saveWeights, options.originalWeights,
        options.averages, type, options.warn, shared));
  }
  if (!options.trace.empty())
    ACCEL_RT_RETURN_IF_ERROR(trace.create(options.trace, plan.numRanks()));
  ACCEL_RT_RETURN_IF_ERROR(checkTargets());
  using Writers = Checkpoints::Writers;
  if (checkpointed)
    ACCEL_RT_RETURN_IF_ERROR(
        checkpoints.open(*file, options, weights, resumes ? &resume : nullptr,
                         hasData ? &cursor : nullptr,
                         !fleet           ? Writers::Here
                         : fleet->leads() ? Writers::Led
                                          : Writers::Joined));
  constexpr uint64_t kWorthALine = uint64_t(256) << 20;
  if (uint64_t bytes = checkpoints.heldBytes();
      checkpoints.isInBackground() && bytes >= kWorthALine && options.progress)
    options.progress("checkpoints are written from a copy of the states, " +
                     std::to_string(bytes >> 20) +
                     " MiB of all ranks together, beside the plan; "
                     "--checkpoint-sync does without, and steps wait");
  if (call.entry != "step" || !device->executes || !options.begin)
    return Status();
  int64_t before = resumes ? resume.step() : 0;
  RunStart start{before, before + repeats, resumes, {}};
  for (const ReportPlan &report : file->plan().reports)
    if (report.name != kVerdictReport)
      start.reports.push_back(report.name);
  return options.begin(start);
}

Status Launch::make() {
  ACCEL_RT_RETURN_IF_ERROR(memory.create(file->plan(), device->executes,
                                         fleet ? &fleet->places() : nullptr));
  if (options.caller >= 0) {
    server = std::make_unique<CallServer>(options.caller);
    ACCEL_RT_RETURN_IF_ERROR(server->create(file->plan(), threads));
    call.inputs.place(server->inputs());
    outputs.place(server->outputs());
    server->tellBoard();
  }
  if (!fleet)
    return makeFiles();
  ACCEL_RT_RETURN_IF_ERROR(
      fleet->agree(fleet->leads() ? makeFiles() : Status()));
  return fleet->agree(fleet->leads() ? Status() : makeFiles());
}

/// Lets the keeper move what its rank asks for.
void Launch::serve() {
  Keeper &keeper = fleet->keeper();
  if (!memory.streams().empty())
    keeper.network().serve(memory.base(), memory.wires(keeper.rank()),
                           memory.streams().size(), memory.dataTimes());
}

ControlSize Launch::controlSize() const {
  const Executable &plan = file->plan();
  ControlSize size;
  size.ranks = plan.numRanks();
  size.calls = std::max<int64_t>(1, repeats);
  size.words = CheckpointWriter::numWords(plan) +
               static_cast<size_t>(size.ranks) * plan.states.size();
  for (const Program &program : plan.programs)
    size.entries = std::max(size.entries, program.entries.size());
  return size;
}

Job Launch::job(ControlCenter &control) {
  return {options,
          *device,
          devices,
          *file,
          control,
          memory,
          call,
          evaluates ? &eval : nullptr,
          weights,
          options.outputs.empty() && !server ? nullptr : &outputs,
          saves ? &saved : nullptr,
          checkpointed ? &checkpoints : nullptr,
          resumes ? &resume : nullptr,
          options.trace.empty() ? nullptr : &trace,
          threads,
          repeats,
          ranksHere,
          coresHere,
          fleet ? &fleet->keeper().memory().kept(fleet->keeper().rank()).bell
                : nullptr,
          fleet ? fleet->lanes() : nullptr,
          server.get()};
}

/// What a user who has to run it again wants to know.
Status Launch::withLast(Status status) const {
  return checkpointed
             ? Status::error(status.message() + checkpoints.whereIsTheLast())
             : status;
}

Status Launch::run(RunResult &result) {
  ControlSize size = controlSize();
  std::unique_ptr<ControlCenter> center;
  if (fleet) {
    ACCEL_RT_RETURN_IF_ERROR(fleet->keeper().create(
        size, spinLimit(ranksHere * (threads + 1), coresHere)));
    serve();
    center = std::make_unique<NetworkCenter>(fleet->keeper());
    result.networkBytes = memory.stagingBytes();
    result.machines = fleet->places().describe();
    if (options.progress && fleet->places().numMachines() > 1)
      options.progress(result.machines + ": " +
                       std::to_string(memory.stagingBytes() >> 10) +
                       " KiB on each rank for messages between machines, "
                       "beside the plan; they go " +
                       fleet->describeLanes());
  } else if (options.ownControl) {
    ACCEL_RT_RETURN_IF_ERROR(options.ownControl(size, center));
  } else {
    auto shared = std::make_unique<SharedControl>();
    ACCEL_RT_RETURN_IF_ERROR(
        shared->create(size, spinLimit(size.ranks * threads, coresHere)));
    center = std::move(shared);
  }
  ControlCenter &control = *center;
  Job job = this->job(control);
  Supervisor supervisor(job);
  Status ended = finish(job, supervisor, supervisor.run(), result);
  if (options.trace.empty())
    return ended;
  // The last of all that is written: what the run made does not depend on it.
  Status traced = trace.write(file->plan(), control.firstStep(), options.warn);
  if (ended.ok() && !traced.ok())
    return Status::error(traced.message() + "; all else of the run is done");
  if (!traced.ok() && options.warn)
    options.warn(traced.message());
  return ended;
}

/// Why the ranks ended a run for which nobody asked them to.
std::string Launch::whyDataEnd(ControlCenter &control) const {
  if (Status status = call.data.check(); !status.ok())
    return status.message();
  // On another machine, or where a rank alone cannot look.
  for (int64_t rank = 0; rank < control.numRanks(); ++rank)
    if (const char *why = control.rank(rank).message; *why)
      return "rank " + std::to_string(rank) + ": " + why;
  return "the data were changed on another machine while they were read";
}

Status Launch::finish(const Job &job, const Supervisor &supervisor,
                      Status ended, RunResult &result) {
  ControlCenter &control = job.control;
  if (!ended.ok()) {
    result.interruptedBy = Interrupts::received();
    if (fleet && result.interruptedBy) // by mpirun, perhaps
      ended = Status::error(ended.message() + fleet->keeper().whoIsSilent());
    if (checkpointed)
      checkpoints.discard();
    return withLast(std::move(ended));
  }
  if (int64_t at = control.interruptedAt(); at != RankControl::kNever) {
    result.interruptedBy = Interrupts::received();
    std::string why = supervisor.untold().ok() ? whyDataEnd(control)
                                               : supervisor.untold().message();
    if (result.interruptedBy)
      why = "interrupted by " + Interrupts::nameOf(result.interruptedBy);
    return withLast(Status::error(
        why + " after step " + std::to_string(control.firstStep() + at) +
        " of " + std::to_string(control.firstStep() + repeats)));
  }
  if (saves)
    if (Status status = saved.finish(); !status.ok())
      return withLast(std::move(status));
  if (control.stoppedAt())
    return withLast(failedStep(job));
  if (!options.outputs.empty())
    ACCEL_RT_RETURN_IF_ERROR(outputs.finish());
  if (!supervisor.untold().ok())
    return withLast(supervisor.untold());
  if (server)
    return Status(); // the caller has ended it, and asks for nothing more
  collectResult(job, result);
  if (call.entry == "eval" && device->executes) {
    result.evalLoss = control.record(0).evalLoss;
    for (const TensorPlan &output : call.tensors.outputs)
      if (output.name == kLossReport)
        result.evalLossType = output.dtype;
  }
  if (checkpointed)
    result.lastCheckpoint = checkpoints.whereIsTheLast();
  return Status();
}

Status Launch::follow(RunResult &result) {
  Keeper &keeper = fleet->keeper();
  ACCEL_RT_RETURN_IF_ERROR(keeper.create(
      controlSize(), spinLimit(ranksHere * (threads + 1), coresHere)));
  serve();
  NetworkCenter control(keeper);
  Job job = this->job(control);
  Interrupts interrupts; // rank 0's process decides what they mean
  interrupts.block(true);
  Status error = keeper.startRank(
      [&](ControlPlane &plane) { return liveAsRank(job, interrupts, plane); });
  interrupts.block(false);
  // What this machine has written is in its own memory yet.
  result.silentExit = keeper.follow(error, [&] {
    if (saves)
      ACCEL_RT_RETURN_IF_ERROR(saved.synchronise());
    return options.outputs.empty() ? Status() : outputs.synchronise();
  });
  return error;
}

Status runExecutable(const RunOptions &given, RunResult &result) {
  std::shared_ptr<Fleet> fleet;
  {
    std::unique_ptr<Fleet> joined;
    ACCEL_RT_RETURN_IF_ERROR(Fleet::join(given, joined));
    fleet = std::move(joined);
  }
  // It stays, for what is to be told at the end.
  auto launch = std::make_shared<Launch>(given, fleet.get());
  if (!fleet) {
    ACCEL_RT_RETURN_IF_ERROR(launch->open());
    ACCEL_RT_RETURN_IF_ERROR(launch->make());
    return launch->run(result);
  }
  if (!fleet->leads())
    result.silentExit = 1;
  else
    result.leave = [fleet, launch](int code) { fleet->finish(code); };
  Identity identity;
  Status opened = launch->open();
  if (opened.ok())
    opened = launch->identify(identity);
  Status status = fleet->compare(opened, identity);
  if (status.ok())
    status = launch->make();
  if (status.ok())
    return fleet->leads() ? launch->run(result) : launch->follow(result);
  // All know it, one says it.
  return fleet->leads() ? status : Status();
}

} // namespace accel::rt
