// What a run reads: opened and held against its options, before anything is
// made.

#include "Run/CheckOptions.h"
#include "Run/Launch.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace accel::rt {

Status Launch::open() {
  ACCEL_RT_RETURN_IF_ERROR(ExecutableFile::open(options.executable, file));
  const Executable &plan = file->plan();
  int64_t ranks = plan.numRanks();
  ACCEL_RT_RETURN_IF_ERROR(checkOptions(plan, options, devices));
  device = devices.front().kind;
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
  if (plan.rowMask)
    source.rowMask = plan.rowMask->input;
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
  addCount("--metrics", !options.metrics.empty());
  add("--save-weights", options.saveWeights);
  addCount("--averages", options.averages);
  add("--save-dtype", options.saveType);
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

} // namespace accel::rt
