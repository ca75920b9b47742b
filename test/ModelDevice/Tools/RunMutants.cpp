// Loses one thing after another of an executable's plan and counts who finds
// it:
//
//   accel-model-mutants FILE INPUTS WORK [--every=N] [--order=ORDER] [--blind]
//
// FILE is run on the CPU for two steps (or once, where it trains nothing) on
// INPUTS, then each Nth mutant on the model device, in folders of WORK. A
// mutant is found by the device, which names a command, or leaves other bits.
// Of a lost wait it is counted which pairs of commands nothing orders any more:
// none, where others imply it; or none that touch the same bytes, where it
// orders nothing. Both are the plan itself, and must not be found. Exits with 1
// if any other is missed. Beside it, whether the checks of files refuse it.
// --blind: the device does not look at bytes, so that the order and poison
// alone tell.

#include "accel-rt/FeatureFormat.h"
#include "accel-rt/Runtime.h"
#include "test/ModelDevice/ModelDevice.h"
#include "test/ModelDevice/Mutants.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/mman.h>

using namespace accel::rt;
using namespace accel::rt::model;

namespace {

struct Settings {
  std::string file, inputs, work, order = "seed:1";
  size_t every = 1;
  bool isBlind = false;
};

/// What a run leaves: the files of a folder by name, and the losses.
using Left = std::map<std::string, std::string>;

Status run(const Settings &settings, bool trains, const DeviceKind *device,
           Left &left) {
  std::string folder = settings.work + "/left";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  RunOptions options;
  options.executable = settings.file;
  options.inputs = settings.inputs;
  options.outputs = folder + "/outputs";
  options.ownDevice = device;
  options.poison = true;
  options.threads = 1;
  options.hangSeconds = 20;
  if (trains) {
    options.steps = 2;
    // Counters are in checkpoints alone.
    options.checkpoint = folder + "/checkpoint";
    options.saveWeights = folder + "/weights.safetensors";
    options.step = [&](const StepResult &step) {
      char text[64];
      std::snprintf(text, sizeof text, "%a %a\n", step.find("loss")->value,
                    step.find("grad_norm")->value);
      left["losses"] += text;
      return Status();
    };
  }
  RunResult result;
  ACCEL_RT_RETURN_IF_ERROR(runExecutable(options, result));
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) {
      std::ifstream stream(entry.path(), std::ios::binary);
      left[entry.path().string()] =
          std::string(std::istreambuf_iterator<char>(stream), {});
    }
  return Status();
}

struct Tally {
  size_t mutants = 0, implied = 0, idle = 0, refused = 0, found = 0, bits = 0,
         missed = 0;
};

int runMutants(const Settings &settings) {
  std::unique_ptr<ExecutableFile> file;
  Left expected;
  Status status = ExecutableFile::open(settings.file, file);
  bool trains = status.ok() && file->plan().isTraining();
  if (status.ok())
    status = run(settings, trains, nullptr, expected);
  ModelOptions options;
  if (status.ok())
    status = Order::parse(settings.order, options.order);
  if (!status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return 1;
  }
  options.inspects = !settings.isBlind;
  const bool isOwn = isMadeFor(file->plan(), kName);
  void *shared = mmap(nullptr, sizeof(LostWaits), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 1;
  options.lostWaits = new (shared) LostWaits;
  std::map<Mutant::Kind, Tally> tallies;
  const std::vector<Mutant> mutants = mutantsOf(file->plan());
  for (size_t i = 0; i < mutants.size(); i += settings.every) {
    const Mutant &mutant = mutants[i];
    Tally &tally = tallies[mutant.kind];
    options.program = file->plan().programs[mutant.program].name;
    options.lost = mutant.lost;
    LostWaits &waits = *options.lostWaits;
    waits.seen = waits.freed = waits.conflicts = 0;
    DeviceKind device = modelDevice(options, isOwn ? kName : cpu::kName);
    Left left;
    Status found = run(settings, trains, &device, left);
    Status refused = validate(without(file->plan(), mutant));
    // What the waits alone order, pair by pair: nothing of the history of bytes
    // has a part in it.
    bool isSame = waits.seen > 0 && waits.conflicts == 0;
    const char *verdict = !found.ok()        ? (isSame ? "DISAGREES" : "found")
                          : left != expected ? "bits"
                          : !isSame          ? "MISSED"
                          : waits.freed == 0 ? "implied"
                                             : "orders nothing";
    std::printf("%s: %s%s%s\n", mutant.what.c_str(), verdict,
                !found.ok() ? ": " : "",
                !found.ok() ? printable(found.message()).c_str() : "");
    if (!refused.ok())
      std::printf("  the file: %s\n", printable(refused.message()).c_str());
    ++tally.mutants;
    tally.implied += std::strcmp(verdict, "implied") == 0;
    tally.idle += std::strcmp(verdict, "orders nothing") == 0;
    tally.found += !found.ok();
    tally.bits += std::strcmp(verdict, "bits") == 0;
    tally.refused += !refused.ok();
    tally.missed += std::strcmp(verdict, "MISSED") == 0 ||
                    std::strcmp(verdict, "DISAGREES") == 0;
  }
  size_t missed = 0;
  for (const auto &[kind, tally] : tallies) {
    std::printf("%s: %zu mutants, %zu implied by others, %zu that order "
                "nothing, %zu found by the device, %zu by other bits, %zu "
                "refused by the checks of files, %zu missed\n",
                nameOf(kind), tally.mutants, tally.implied, tally.idle,
                tally.found, tally.bits, tally.refused, tally.missed);
    missed += tally.missed;
  }
  return missed ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  std::vector<std::string> given;
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    if (text.rfind("--every=", 0) == 0)
      settings.every =
          std::max(1ul, std::strtoul(text.c_str() + 8, nullptr, 10));
    else if (text.rfind("--order=", 0) == 0)
      settings.order = text.substr(8);
    else if (text == "--blind")
      settings.isBlind = true;
    else
      given.push_back(text);
  }
  if (given.size() != 3) {
    std::fprintf(stderr, "usage: accel-model-mutants FILE INPUTS WORK "
                         "[--every=N] [--order=ORDER] [--blind]\n");
    return 2;
  }
  settings.file = given[0];
  settings.inputs = given[1];
  settings.work = given[2];
  return runMutants(settings);
}
