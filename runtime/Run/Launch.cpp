// The parent: opens and checks everything, lets the Supervisor run the ranks,
// and finishes what they have written.

#include "Base/UniqueName.h"
#include "Control/NetworkCenter.h"
#include "Control/SharedControl.h"
#include "Run/CallServer.h"
#include "Run/CheckOptions.h"
#include "Run/FilesInUse.h"
#include "Run/Fleet.h"
#include "Run/OpenCall.h"
#include "Run/StepReports.h"
#include "Run/Supervisor.h"
#include "Run/Trace.h"
#include "State/CheckpointWriter.h"
#include "State/GivenWeights.h"
#include "State/Resume.h"
#include "State/SavedWeights.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace accel::rt {
namespace {

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
  const DeviceKind *device = nullptr;
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

Status Launch::open() {
  ACCEL_RT_RETURN_IF_ERROR(ExecutableFile::open(options.executable, file));
  const Executable &plan = file->plan();
  int64_t ranks = plan.numRanks();
  ACCEL_RT_RETURN_IF_ERROR(checkOptions(plan, options, device));
  // A file may be compiled where it will not be run.
  constexpr int64_t mostHere = 4096;
  if (ranks > mostHere)
    return Status::error("expected at most " + std::to_string(mostHere) +
                         " ranks, which are processes of this machine, found " +
                         std::to_string(ranks));
  if (fleet && fleet->places().numRanks() != ranks)
    return Status::error("expected " + std::to_string(ranks) +
                         (ranks == 1 ? " process" : " processes") +
                         " for --comm=mpi, one for "
                         "each rank of " +
                         inQuotes(options.executable) + ", found " +
                         std::to_string(fleet->places().numRanks()) +
                         ": start it with mpirun -n " + std::to_string(ranks) +
                         ", or srun -n " + std::to_string(ranks));
  ACCEL_RT_RETURN_IF_ERROR(chooseEntry(plan, options, call.entry));
  resumes = !options.resume.empty();
  if (resumes)
    ACCEL_RT_RETURN_IF_ERROR(
        resume.open(options.resume, plan, Resume::Wanted::All, options.warn));
  if (options.caller >= 0) {
    call.tensors = tensorsOf(plan, call.entry);
    repeats = 1; // they are not counted
  } else {
    ACCEL_RT_RETURN_IF_ERROR(openCalls(plan));
  }
  SavedStates savedStates;
  if (resumes)
    savedStates = [&](auto &name) { return resume.find(name); };
  if (!options.weights.empty()) {
    ACCEL_RT_RETURN_IF_ERROR(givenWeights.open(options, plan));
    savedStates = [&](auto &name) { return givenWeights.find(name); };
  }
  bool executes = device->executes;
  if (executes)
    ACCEL_RT_RETURN_IF_ERROR(weights.open(*file, savedStates));
  ranksHere = fleet
                  ? static_cast<int64_t>(
                        fleet->places().ranksOf(fleet->places().here()).size())
                  : ranks;
  coresHere =
      std::max<int64_t>(1, fleet ? fleet->places().coresHere()
                                 : countCores(placeOfThisProcess().cores));
  threads = options.threads ? options.threads
            : executes      ? std::max<int64_t>(1, coresHere / ranksHere)
                            : 1;
  return Status();
}

/// What is called, on which inputs, and how often.
Status Launch::openCalls(const Executable &plan) {
  DataSource source{options.data, options.dataType, options.dataLabels},
      held{options.evalData, options.dataType, options.dataLabels};
  if (!options.dataSplit.empty()) {
    std::array<DataSplit, 3> splits;
    ACCEL_RT_RETURN_IF_ERROR(readSplit(options.dataSplit, splits));
    source.split = splits[call.entry == "step" ? 0 : 1];
    held.split = splits[1];
  }
  if (call.entry == "step")
    orderData(plan, source);
  bool executes = device->executes;
  hasData = !options.data.empty();
  (call.entry == "eval" ? call : eval).mostBatches = options.evalBatches;
  ACCEL_RT_RETURN_IF_ERROR(
      openCall(plan, options.inputs.empty() && !hasData ? "." : options.inputs,
               source, executes, options.warn, call));
  ACCEL_RT_RETURN_IF_ERROR(checkLastBatch(plan, source, executes, call));
  ACCEL_RT_RETURN_IF_ERROR(countEpochs());
  ACCEL_RT_RETURN_IF_ERROR(
      countRuns(call.entry, options, resumes ? &resume : nullptr, repeats));
  evaluates = options.evalEvery > 0;
  eval.entry = "eval";
  if (evaluates)
    ACCEL_RT_RETURN_IF_ERROR(
        openCall(plan, options.evalInputs, held, executes, options.warn, eval));
  ACCEL_RT_RETURN_IF_ERROR(checkDataOptions());
  checkpointed = !options.checkpoint.empty();
  saves = !options.saveWeights.empty();
  if (hasData)
    ACCEL_RT_RETURN_IF_ERROR(
        call.data.getCursor(checkpointed || resumes || fleet, options, cursor));
  if (resumes && !options.newData)
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
  return Status();
}

/// In which order training reads its samples: as it is told, or else as a
/// checkpoint's data began.
void Launch::orderData(const Executable &plan, DataSource &source) {
  const DataCursor *saved = nullptr;
  if (resumes && !options.newData && resume.manifest().data)
    saved = &*resume.manifest().data;
  if (saved && options.dataOrder.empty())
    options.dataOrder = saved->isShuffled ? "shuffled" : "file";
  if (saved && !options.seed)
    options.seed = saved->seed;
  if (saved && options.lastBatch.empty())
    options.lastBatch = nameOf(saved->last);
  (void)readLastBatch(options.lastBatch, source.last); // checked
  if (source.last == SampleOrder::Keep)
    source.ignoredIn = plan.unshiftedLabels;
  source.order =
      options.dataOrder == "file" ? SampleOrder::InFile : SampleOrder::Shuffled;
  source.seed = static_cast<uint64_t>(options.seed.value_or(plan.seed));
  if (resumes)
    source.firstStep = saved             ? saved->firstStep
                       : options.newData ? resume.step()
                                         : 0;
}

/// Says epochs in steps, of which those before the data began are some.
Status Launch::countEpochs() {
  if (!options.epochs)
    return Status();
  const SampleOrder &order = call.data.sampleOrder();
  if (call.data.isBlend())
    return Status::error("cannot use option '--epochs' with the blend " +
                         inQuotes(options.data) +
                         ", whose files begin again at different steps: give "
                         "--steps");
  auto epochs = static_cast<uint64_t>(options.epochs);
  if (static_cast<double>(epochs) * static_cast<double>(order.samples) >
      static_cast<double>(kMaxSteps) * static_cast<double>(order.batch))
    return Status::error(
        "expected at most " + std::to_string(kMaxSteps) +
        " steps, found --epochs=" + std::to_string(options.epochs) + " of " +
        std::to_string(order.samples) + " samples");
  options.steps = static_cast<int64_t>(order.firstStep + order.stepsOf(epochs));
  return Status();
}

/// What is said of data and files must be read by some call.
Status Launch::checkDataOptions() const {
  for (auto [name, folder, one] :
       {std::tuple("--inputs", &options.inputs, &call),
        std::tuple("--eval-inputs", &options.evalInputs, &eval)})
    if (!folder->empty() && one->hasData &&
        one->data.feedsAll(one->tensors.inputs))
      return Status::error(std::string("cannot use option '") + name +
                           "' with data that feed all inputs of the entry " +
                           inQuotes(one->entry) + ": nothing is read from " +
                           inQuotes(*folder));
  if (!options.dataLabels.empty() &&
      !(call.hasData && call.data.feedsLabels()) &&
      !(eval.hasData && eval.data.feedsLabels()))
    return Status::error("option '--data-labels' expects an input that is "
                         "called *label* or *target* and gets its tokens from "
                         "the data, found none");
  for (const Call *each : {&call, &eval})
    if (!options.dataType.empty() && each->hasData && !each->data.readsTokens())
      return Status::error("option '--data-type' is for one file of tokens: "
                           "files of inputs say their type themselves");
  return Status();
}

Status Launch::identify(Identity &identity) const {
  auto add = [&](const char *name, std::string value) {
    std::replace(value.begin(), value.end(), '\n', ' ');
    identity.push_back({name, std::move(value)});
  };
  auto addCount = [&](const char *name, int64_t value) {
    add(name, std::to_string(value));
  };
  std::string hash;
  ACCEL_RT_RETURN_IF_ERROR(hashFile(file->descriptor(), file->path(), hash));
  addCount("build of acc-run (the format of executables)", kFormatVersion);
  add("executable (its hash)", hash);
  add("device", device->name);
  add("entry", call.entry);
  addCount("--steps or --repeat, and steps that are left", repeats);
  addCount("--threads", options.threads);
  addCount("--poison", options.poison || options.poisonIfExecuted);
  addCount("--save-every", options.saveEvery);
  addCount("--checkpoint-sync", options.checkpointSync);
  addCount("--keep", options.keep);
  addCount("--eval-every", options.evalEvery);
  add("--keep-best", options.keepBest);
  addCount("--early-stopping-patience", options.earlyStoppingPatience);
  add("--early-stopping-threshold",
      std::to_string(options.earlyStoppingThreshold));
  add("--checkpoint", options.checkpoint);
  add("--outputs", options.outputs);
  add("--save-weights", options.saveWeights);
  addCount("--averages", options.averages);
  add("--data-labels", options.dataLabels);
  add("--data-order", options.dataOrder);
  add("--last-batch", options.lastBatch);
  addCount("--new-data", options.newData);
  addCount("--seed", options.seed.value_or(-1));
  addCount("data (how many samples)", cursor.samples);
  for (const Call *each : {&call, &eval})
    if (each->hasData && each->entry == "eval")
      addCount("data of the evaluation (how many samples count)",
               each->numBatches() * each->data.batchSize() + each->numRest());
  addCount("data (their hash)", static_cast<int64_t>(cursor.hash.value_or(0)));
  for (auto [name, one] :
       {std::pair("inputs (their hash)", &call.inputs),
        std::pair("--eval-inputs (their hash)", &eval.inputs)}) {
    uint64_t sum = 0;
    ACCEL_RT_RETURN_IF_ERROR(one->hash(sum));
    addCount(name, static_cast<int64_t>(sum));
  }
  addCount("checkpoint to go on from (its step)", resumes ? resume.step() : -1);
  std::string known;
  for (size_t i = 0; i < weights.values().size(); ++i)
    known += std::to_string(weights.checkOf(i).bytes) + " " +
             std::to_string(weights.checkOf(i).hash.value_or(0)) + " ";
  addCount("weights (what they must hash to)",
           static_cast<int64_t>(hashBytes(known.data(), known.size())));
  return Status();
}

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
  if (saves)
    ACCEL_RT_RETURN_IF_ERROR(saved.create(
        *file, weights, options.saveWeights, options.originalWeights,
        options.averages, options.warn, shared));
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
  return options.begin({before, before + repeats, resumes});
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
    return withLast(badStep(job));
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
      if (output.name == kStepReports[StepRecord::Loss])
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

} // namespace

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
