// The rules of options, as tables where they can be.

#include "Run/CheckOptions.h"

#include "Device/Devices.h"
#include "State/Resume.h"

namespace accel::rt {

/// Options that only one kind of program has.
static Status checkKind(const Executable &plan, const RunOptions &options) {
  struct {
    const char *name;
    bool given, training;
  } rows[] = {{"--steps", options.steps > 0, true},
              {"--data", !options.data.empty(), true},
              {"--seed", options.seed.has_value(), true},
              {"--save-weights", !options.saveWeights.empty(), true},
              {"--checkpoint", !options.checkpoint.empty(), true},
              {"--resume", !options.resume.empty(), true},
              {"--repeat", options.repeats > 0, false}};
  for (const auto &row : rows)
    if (row.given && row.training != plan.isTraining())
      return Status::error(
          std::string("option '") + row.name + "' is for " +
          (row.training ? "training" : "forward") + " programs, and " +
          inQuotes(options.executable) +
          (plan.isTraining() ? " trains: give --steps" : " does not train"));
  if (options.data.empty())
    for (auto [name, given] :
         {std::pair("--data-type", !options.dataType.empty()),
          std::pair("--data-labels", !options.dataLabels.empty()),
          std::pair("--seed", options.seed.has_value())})
      if (given)
        return Status::error(std::string("option '") + name +
                             "' expects --data");
  if (!options.originalWeights.empty() && options.saveWeights.empty())
    return Status::error("option '--original-weights' expects --save-weights");
  if (options.saveEvery && options.checkpoint.empty())
    return Status::error("option '--save-every' expects --checkpoint");
  if (!options.resume.empty() && !options.steps)
    return Status::error("option '--resume' expects --steps, the number of "
                         "steps in all: those that the checkpoint has seen "
                         "count");
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
      {"--poison", options.poison, "has no bytes to overwrite"}};
  for (const auto &row : rows)
    if (row.given)
      return Status::error(std::string("cannot use option '") + row.name +
                           "' with device " + inQuotes(device.name) +
                           ", which counts commands and executes none: it " +
                           row.why);
  return Status();
}

static Status chooseDevice(const Executable &plan, const RunOptions &options,
                           const DeviceKind *&device) {
  std::string planned = deviceOf(plan);
  device = options.ownDevice
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
  if (!device->executes)
    return checkCounted(options, *device);
  if (planned != device->name)
    return Status::error(inQuotes(options.executable) +
                         " was compiled for device " + inQuotes(planned) +
                         ", found --device=" + device->name +
                         ": compile it with --target=" + device->name);
  return device->checkMachine(plan, options.executable);
}

Status checkOptions(const Executable &plan, const RunOptions &options,
                    const DeviceKind *&device) {
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
  ACCEL_RT_RETURN_IF_ERROR(chooseDevice(plan, options, device));
  return checkKind(plan, options);
}

Status countRuns(const Executable &plan, const RunOptions &options,
                 const Resume *resume, int64_t &repeats) {
  repeats =
      std::max<int64_t>(1, plan.isTraining() ? options.steps : options.repeats);
  if (!resume)
    return Status();
  repeats = std::max<int64_t>(0, repeats - resume->step());
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
