// The rules of options, as tables where they can be.

#include "Run/CheckOptions.h"

#include "Device/Devices.h"
#include "Feed/InputOutput.h"
#include "Run/LookForDevice.h"
#include "State/Resume.h"
#include "State/SavedWeights.h"

namespace accel::rt {

Status readLastBatch(const std::string &text, SampleOrder::Last &last) {
  last = SampleOrder::Next;
  for (SampleOrder::Last each :
       {SampleOrder::Next, SampleOrder::Drop, SampleOrder::Keep})
    if (text == nameOf(each))
      last = each;
  if (!text.empty() && text != nameOf(last))
    return Status::error("expected next, drop or keep as --last-batch, found " +
                         inQuotes(text));
  return Status();
}

/// Options that only some entries have.
static Status checkKind(const Executable &plan, const RunOptions &options,
                        const std::string &entry) {
  bool trains = entry == "step";
  struct {
    const char *name;
    bool given, step, eval, forward;
  } rows[] = {
      {"--steps", options.steps > 0, true, false, false},
      {"--epochs", options.epochs > 0, true, false, false},
      {"--data", !options.data.empty(), true, true, false},
      {"--data-order", !options.dataOrder.empty(), true, false, false},
      {"--last-batch", !options.lastBatch.empty(), true, false, false},
      {"--seed", options.seed.has_value(), true, false, false},
      {"--save-weights", !options.saveWeights.empty(), true, false, false},
      {"--checkpoint", !options.checkpoint.empty(), true, false, false},
      {"--resume", !options.resume.empty(), true, false, false},
      {"--eval-every", options.evalEvery > 0, true, false, false},
      {"--eval-batches", options.evalBatches > 0, true, true, false},
      {options.tellsOfSteps.c_str(), !options.tellsOfSteps.empty(), true, false,
       false},
      {"--metrics", !options.metrics.empty(), true, false, false},
      {"--early-stopping-patience", options.earlyStoppingPatience > 0, true,
       false, false},
      {"--repeat", options.repeats > 0, false, true, true}};
  for (const auto &row : rows) {
    if (!row.given || (trains            ? row.step
                       : entry == "eval" ? row.eval
                                         : row.forward))
      continue;
    std::string text = std::string("option '") + row.name + "' is for ";
    if (!row.step)
      return Status::error(text + "forward programs, and " +
                           inQuotes(options.executable) +
                           " trains: give --steps");
    if (!plan.isTraining())
      return Status::error(text + "training programs, and " +
                           inQuotes(options.executable) + " does not train");
    return Status::error(
        text +
        (row.eval ? "the entries 'step' and 'eval'" : "the entry 'step'") +
        ", and this run calls " + inQuotes(entry));
  }
  if (options.evalEvery && !plan.hasEntry("eval"))
    return Status::error(
        "option '--eval-every' calls the entry 'eval', which " +
        inQuotes(options.executable) +
        " does not have: compile it with eval among --entries");
  bool hasEvalInputs = !options.evalInputs.empty() || !options.evalData.empty();
  if (hasEvalInputs != (options.evalEvery > 0))
    return Status::error(
        options.evalEvery
            ? "option '--eval-every' expects --eval-inputs or --eval-data"
            : "options '--eval-inputs' and '--eval-data' expect --eval-every");
  if (options.evalBatches && (trains ? options.evalData : options.data).empty())
    return Status::error(std::string("option '--eval-batches' expects ") +
                         (trains ? "--eval-data" : "--data"));
  for (auto [name, given] :
       {std::pair("--keep-best", !options.keepBest.empty()),
        std::pair("--early-stopping-patience",
                  options.earlyStoppingPatience > 0)})
    if (given && !options.evalEvery)
      return Status::error(std::string("option '") + name +
                           "' expects --eval-every, whose " +
                           kEvaluationMetric + " it goes by");
  if (!options.keepBest.empty() && options.keepBest != kEvaluationMetric)
    return Status::error(
        "expected a metric of this run (" + std::string(kEvaluationMetric) +
        ") for --keep-best, found " + inQuotes(options.keepBest));
  if (options.earlyStoppingThreshold > 0 && !options.earlyStoppingPatience)
    return Status::error("option '--early-stopping-threshold' expects "
                         "--early-stopping-patience");
  if (options.earlyStoppingPatience && !options.outputs.empty())
    return Status::error("cannot use option '--outputs' with "
                         "--early-stopping-patience: which step is the last is "
                         "known when its outputs are gone");
  if (!options.weights.empty() && !options.resume.empty())
    return Status::error("cannot use option '--weights' with --resume, which "
                         "has the checkpoint's");
  if (entry == "eval" && !options.data.empty() && !options.outputs.empty())
    return Status::error("cannot use option '--outputs' with --data in the "
                         "entry 'eval': there is one of each batch");
  if (!options.trace.empty() && options.comm == "mpi")
    return Status::error("cannot use option '--trace' with --comm=mpi: the "
                         "clocks of machines differ; trace fewer ranks, on "
                         "this machine alone");
  bool hasData = !options.data.empty() || !options.evalData.empty();
  for (auto [name, given] :
       {std::pair("--data-type", !options.dataType.empty() && !hasData),
        std::pair("--data-labels", !options.dataLabels.empty() && !hasData),
        std::pair("--data-split", !options.dataSplit.empty() && !hasData),
        std::pair("--last-batch",
                  !options.lastBatch.empty() && options.data.empty()),
        std::pair("--epochs", options.epochs > 0 && options.data.empty()),
        std::pair("--data-order",
                  !options.dataOrder.empty() && options.data.empty()),
        std::pair("--new-data", options.newData && options.data.empty()),
        std::pair("--seed", options.seed.has_value() && options.data.empty())})
    if (given)
      return Status::error(std::string("option '") + name + "' expects --data");
  if (!options.dataOrder.empty() && options.dataOrder != "shuffled" &&
      options.dataOrder != "file")
    return Status::error("expected shuffled or file as --data-order, found " +
                         inQuotes(options.dataOrder));
  SampleOrder::Last last;
  ACCEL_RT_RETURN_IF_ERROR(readLastBatch(options.lastBatch, last));
  if (options.epochs && options.steps)
    return Status::error("expected --steps or --epochs, found both");
  if (options.dataOrder == "file" && options.seed)
    return Status::error("cannot use option '--seed' with --data-order=file: "
                         "nothing is shuffled");
  if (options.newData && options.resume.empty())
    return Status::error("option '--new-data' expects --resume");
  if (!options.originalWeights.empty() && options.saveWeights.empty())
    return Status::error("option '--original-weights' expects --save-weights");
  if (options.averages && options.saveWeights.empty())
    return Status::error("option '--averages' expects --save-weights");
  if (!options.saveType.empty() && options.saveWeights.empty())
    return Status::error("option '--save-dtype' expects --save-weights");
  std::optional<DType> saved;
  ACCEL_RT_RETURN_IF_ERROR(readSaveType(options.saveType, saved));
  if (options.saveEvery && options.checkpoint.empty())
    return Status::error("option '--save-every' expects --checkpoint");
  if (options.keep && options.checkpoint.empty())
    return Status::error("option '--keep' expects --checkpoint");
  if (options.checkpointSync && options.checkpoint.empty())
    return Status::error("option '--checkpoint-sync' expects --checkpoint");
  if (!options.keepBest.empty() && options.checkpoint.empty())
    return Status::error("option '--keep-best' expects --checkpoint");
  if (!options.resume.empty() && !options.steps && !options.epochs &&
      options.caller < 0)
    return Status::error("option '--resume' expects --steps, the number of "
                         "steps in all: those that the checkpoint has seen "
                         "count; or --epochs, that of epochs in all");
  return Status();
}

/// Options of what a device that only counts does not do.
static Status checkCounted(const RunOptions &options,
                           const DeviceKind &device) {
  struct {
    const char *name;
    bool given;
    const char *why;
  } rows[] = {
      {"--inputs", !options.inputs.empty(), "reads no inputs"},
      {"--outputs", !options.outputs.empty(), "computes no outputs"},
      {"--data", !options.data.empty(), "reads no tokens"},
      {"--save-weights", !options.saveWeights.empty(), "trains no weights"},
      {"--checkpoint", !options.checkpoint.empty(), "has nothing to save"},
      {"--resume", !options.resume.empty(), "has nothing to go on with"},
      {"--threads", options.threads > 0, "has nothing for threads to do"},
      {"--weights", !options.weights.empty(), "reads no weights"},
      {"--eval-every", options.evalEvery > 0, "computes no losses"},
      {options.tellsOfSteps.c_str(), !options.tellsOfSteps.empty(),
       "computes no losses"},
      {"--trace", !options.trace.empty(), "takes no time"},
      {"--poison", options.poison, "has no bytes to overwrite"}};
  for (const auto &row : rows)
    if (row.given)
      return Status::error(std::string("cannot use option '") + row.name +
                           "' with device " + inQuotes(device.name) +
                           ", which counts commands and executes none: it " +
                           row.why);
  return Status();
}

/// Options of what a program that calls the ranks says itself.
static Status checkServed(const RunOptions &options, const DeviceKind &device) {
  struct {
    const char *name;
    bool given;
  } rows[] = {{"--comm", !options.comm.empty() && options.comm != "host"},
              {"--inputs", !options.inputs.empty()},
              {"--outputs", !options.outputs.empty()},
              {"--entry", !options.entry.empty()},
              {"--repeat", options.repeats > 0},
              {"--steps", options.steps > 0},
              {"--data", !options.data.empty()},
              {"--eval-every", options.evalEvery > 0},
              {"--save-weights", !options.saveWeights.empty()},
              {"--checkpoint", !options.checkpoint.empty()}};
  for (const auto &row : rows)
    if (row.given)
      return Status::error(std::string("cannot use option '") + row.name +
                           "' with --serve: the calling program says what is "
                           "called, on which batch, and what is saved");
  return device.executes
             ? Status()
             : Status::error("cannot use device " + inQuotes(device.name) +
                             " with --serve: it computes nothing that could "
                             "be answered");
}

/// Adds what executes the bodies of other engines than the file's own.
static Status addEngines(const Executable &plan, const RunOptions &options,
                         std::vector<EngineKind> &devices) {
  const DeviceKind &first = *devices.front().kind;
  for (const Program &program : plan.programs)
    for (const Body &body : program.bodies) {
      if (std::any_of(devices.begin(), devices.end(), [&](const auto &each) {
            return each.engine == body.engine;
          }))
        continue;
      // What counts for one counts for all.
      const DeviceKind *kind =
          first.executes ? findDevice(body.engine) : &first;
      if (!kind || kind->executes != first.executes)
        return Status::error(
            inQuotes(options.executable) + " has bodies of engine " +
            inQuotes(body.engine) +
            (kind ? ", which executes nothing, beside others"
                  : ", which this acc-run has not: it has " + deviceNames()));
      devices.push_back({body.engine, kind});
    }
  return Status();
}

static Status chooseDevices(const Executable &plan, const RunOptions &options,
                            std::vector<EngineKind> &devices) {
  std::string planned = deviceOf(plan);
  const DeviceKind *device =
      options.ownDevice
          ? options.ownDevice
          : findDevice(options.device.empty() ? planned : options.device);
  if (!device)
    return options.device.empty()
               ? Status::error(inQuotes(options.executable) +
                               " was compiled for device " + inQuotes(planned) +
                               ", which this acc-run has not: it has " +
                               deviceNames())
               : Status::error("expected a device (" + deviceNames() +
                               ") for --device, found " +
                               inQuotes(options.device));
  devices = {{planned, device}};
  if (options.caller >= 0)
    ACCEL_RT_RETURN_IF_ERROR(checkServed(options, *device));
  ACCEL_RT_RETURN_IF_ERROR(addEngines(plan, options, devices));
  if (!device->executes)
    return checkCounted(options, *device);
  if (planned != device->name)
    return Status::error(inQuotes(options.executable) +
                         " was compiled for device " + inQuotes(planned) +
                         ", found --device=" + device->name +
                         ": compile it with --target=" + device->name);
  for (const EngineKind &each : devices)
    ACCEL_RT_RETURN_IF_ERROR(
        lookForDevice(*each.kind, plan, options.executable));
  return Status();
}

Status checkOptions(const Executable &plan, const RunOptions &options,
                    std::vector<EngineKind> &devices) {
  int64_t ranks = plan.numRanks();
  if (options.ranks && options.ranks != ranks) {
    std::string mesh;
    for (const Axis &axis : plan.mesh)
      mesh += (mesh.empty() ? "" : ", ") + axis.name + "=" +
              std::to_string(axis.size);
    return Status::error("expected " + std::to_string(ranks) +
                         (ranks == 1 ? " rank" : " ranks") +
                         " as the mesh of " + inQuotes(options.executable) +
                         " has (" + (mesh.empty() ? "no axes" : mesh) +
                         "), found -n " + std::to_string(options.ranks));
  }
  ACCEL_RT_RETURN_IF_ERROR(chooseDevices(plan, options, devices));
  std::string entry;
  ACCEL_RT_RETURN_IF_ERROR(chooseEntry(plan, options, entry));
  ACCEL_RT_RETURN_IF_ERROR(checkKind(plan, options, entry));
  bool hasMetrics = std::any_of(
      plan.outputs.begin(), plan.outputs.end(),
      [](const TensorPlan &output) { return isMetric(output.name); });
  if (!options.metrics.empty() && !hasMetrics)
    return Status::error("option '--metrics' needs a step that measures "
                         "itself, and that of " +
                         inQuotes(options.executable) +
                         " does not: compile it with acc-opt "
                         "--metrics=precision");
  return Status();
}

Status chooseEntry(const Executable &plan, const RunOptions &options,
                   std::string &entry) {
  entry = options.entry;
  if (entry.empty()) {
    for (const char *name : {"eval", "forward", "step"})
      if (plan.hasEntry(name))
        entry = name;
    return Status();
  }
  bool isKnown = entry == "step" || entry == "eval" || entry == "forward";
  if (isKnown && plan.hasEntry(entry))
    return Status();
  std::string names;
  for (const char *name : {"step", "eval", "forward"})
    if (plan.hasEntry(name))
      names += (names.empty() ? "" : ", ") + std::string(name);
  return Status::error("expected an entry of " + inQuotes(options.executable) +
                       " (" + names + ") for --entry, found " +
                       inQuotes(entry));
}

std::string whyStopped(const BestEvaluation &best, const RunOptions &options) {
  auto text = [](double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", value);
    return std::string(digits);
  };
  double threshold = options.earlyStoppingThreshold;
  return std::string(kEvaluationMetric) + " got no better" +
         (threshold > 0 ? " by more than " + text(threshold) : "") + " in " +
         std::to_string(best.withoutGain) +
         (best.withoutGain == 1 ? " evaluation" : " evaluations") +
         (best.step ? "; the best is " + text(best.value) + ", of step " +
                          std::to_string(best.step)
                    : "; none was a number");
}

Status countRuns(const std::string &entry, const RunOptions &options,
                 const Resume *resume, int64_t &repeats) {
  repeats =
      std::max<int64_t>(1, entry == "step" ? options.steps : options.repeats);
  int64_t before = resume ? resume->step() : 0, end = repeats;
  repeats = std::max<int64_t>(0, end - before);
  const std::optional<BestEvaluation> *earlier =
      resume ? &resume->manifest().evaluations : nullptr;
  if (int64_t patience = options.earlyStoppingPatience;
      repeats && patience && earlier && *earlier &&
      (*earlier)->withoutGain >= patience) {
    repeats = 0;
    if (options.warn)
      options.warn("training has ended at the checkpoint " +
                   inQuotes(resume->path()) + ": " +
                   whyStopped(**earlier, options) +
                   "; to go on, give a greater --early-stopping-patience, or "
                   "none");
    return Status();
  }
  int64_t every = options.evalEvery;
  if (repeats && every && end / every == before / every && options.warn)
    options.warn("option '--eval-every' " + std::to_string(every) +
                 " evaluates nothing in a run of the steps " +
                 std::to_string(before + 1) + " to " + std::to_string(end));
  if (repeats)
    return Status();
  std::string text = "the checkpoint " + inQuotes(resume->path()) +
                     " has seen " + std::to_string(resume->step()) + " of " +
                     std::to_string(options.steps) + " steps: none is left";
  if (!options.outputs.empty())
    return Status::error(text + ", which '--outputs' would need");
  if (options.warn)
    options.warn(text);
  return Status();
}

} // namespace accel::rt
