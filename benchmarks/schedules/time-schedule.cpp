// Runs the steps of an executable in which every product takes a given time,
// asleep, so that tasks are as long as they have products and ranks need no
// processor of their own; and plays the schedule that it was compiled with, of
// tasks of one product a chunk:
//
//   acc-time-schedule FILE.accx INPUTS SECONDS STEPS NAME RANKS MICRO-BATCHES
//
// Prints {"times_s": [seconds of each step], "simulated_s": ..., "bubble": the
// part of all ranks' time that the simulation has idle}.

#include "Device/CPU/CpuDevice.h"
#include "Device/Devices.h"
#include "accel-rt/Runtime.h"
#include "lib/Pipeline/Synthesise.h"

#include <chrono>
#include <cstdio>
#include <sys/prctl.h>
#include <thread>

using namespace accel;
using namespace accel::rt;

namespace {

double productSeconds = 0;

/// A product, and the rest of the time that it is to take.
class SlowProduct : public HostTask {
public:
  explicit SlowProduct(std::unique_ptr<Task> task) : task(std::move(task)) {}

  Status run(const Address *views, int64_t microBatch) override {
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration<double>(productSeconds);
    Status status = static_cast<HostTask &>(*task).run(views, microBatch);
    std::this_thread::sleep_until(end);
    return status;
  }

private:
  std::unique_ptr<Task> task;
};

class SlowDevice : public Device {
public:
  std::unique_ptr<Device> cpu;

  const char *name() const override { return cpu->name(); }
  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    if (Status status = cpu->prepare(command, task); !status.ok())
      return status;
    if (std::holds_alternative<GemmCommand>(command.what))
      task = std::make_unique<SlowProduct>(std::move(task));
    return Status();
  }
  bool capturesHostTasks() const override { return true; }
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override {
    return cpu->makeStreams(plan, watcher, streams);
  }
  Status allocate(const ArenaPlan &arena, Address &address) override {
    return cpu->allocate(arena, address);
  }
  uint64_t allocatedBytes() const override { return cpu->allocatedBytes(); }
  Status share(void *host, uint64_t bytes, Address &address) override {
    return cpu->share(host, bytes, address);
  }
  Status upload(Address to, const void *from, const Rows &rows) override {
    return cpu->upload(to, from, rows);
  }
  Status download(void *to, Address from, const Rows &rows) override {
    return cpu->download(to, from, rows);
  }
  Status fill(Address at, int byte, const Rows &rows) override {
    return cpu->fill(at, byte, rows);
  }
};

Status makeSlow(const ExecutableFile &file, ThreadPool &pool,
                std::atomic<uint64_t> *populated,
                std::unique_ptr<Device> &device) {
  // Else a sleeper is woken up to 50 microseconds late.
  prctl(PR_SET_TIMERSLACK, 1);
  auto slow = std::make_unique<SlowDevice>();
  Status status = cpu::makeDevice(file, pool, populated, slow->cpu);
  device = std::move(slow);
  return status;
}

const DeviceKind kSlow = {"cpu", /*executes=*/true, cpu::isOfProcess,
                          cpu::checkMachine, makeSlow};

pipeline::Synthesis play(llvm::StringRef name, int64_t ranks,
                         int64_t microBatches) {
  llvm::ExitOnError check("acc-time-schedule: error: ");
  pipeline::Choice choice = check(pipeline::parseChoice(name));
  if (!choice.named)
    check(llvm::createStringError("expected the name of a schedule"));
  pipeline::Schedule schedule = check(pipeline::generate(
      *choice.named, {ranks, choice.chunksPerRank, microBatches}));
  int64_t chunks = schedule.placement.countChunks();
  pipeline::Problem problem{
      ranks, microBatches, pipeline::makeChain(chunks), {}, {}};
  problem.costs = pipeline::Costs::makeEven(chunks, productSeconds,
                                            productSeconds, productSeconds);
  // A message goes when its value is made, whatever else its task makes.
  for (pipeline::ChunkCost &cost : problem.costs.chunks)
    cost.backwardToGradient = productSeconds;
  return pipeline::evaluate(name.str(), std::move(schedule), problem);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: acc-time-schedule FILE.accx INPUTS SECONDS "
                         "STEPS NAME RANKS MICRO-BATCHES\n");
    return 1;
  }
  productSeconds = std::atof(argv[3]);
  RunOptions options;
  options.executable = argv[1];
  options.inputs = argv[2];
  options.steps = std::atoll(argv[4]);
  options.threads = 1;
  options.ownDevice = &kSlow;
  RunResult result;
  if (Status status = runExecutable(options, result); !status.ok()) {
    std::fprintf(stderr, "acc-time-schedule: error: %s\n",
                 status.message().c_str());
    return 1;
  }
  pipeline::Synthesis played =
      play(argv[5], std::atoll(argv[6]), std::atoll(argv[7]));
  std::printf("{\"times_s\": [");
  for (size_t step = 0; step < result.seconds.size(); ++step)
    std::printf("%s%.6f", step ? ", " : "", result.seconds[step]);
  std::printf("], \"simulated_s\": %.6f, \"bubble\": %.4f}\n",
              played.simulation.seconds, played.simulation.getBubbleFraction());
  return 0;
}
