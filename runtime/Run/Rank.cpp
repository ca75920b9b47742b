// Loading, running and measuring one rank.

#include "Run/Rank.h"

#include "Base/Now.h"
#include "Base/SystemError.h"
#include "Comm/HostComm.h"
#include "Execute/Executor.h"
#include "Run/Evaluate.h"
#include "Run/ServeCalls.h"
#include "Run/Trace.h"
#include "Run/Train.h"
#include "State/CheckpointWriter.h"
#include "State/SavedWeights.h"
#include "Storage/StoredArenas.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>

namespace accel::rt {
namespace {

/// Pages of this process alone: its anonymous memory and the files it maps, and
/// its own piece of the shared arena (peers' pages that it read are theirs).
uint64_t residentBytes(uint64_t sharedBytes) {
  uint64_t total = sharedBytes;
  if (FILE *status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    unsigned long kilobytes;
    while (std::fgets(line, sizeof line, status))
      if (std::sscanf(line, "RssAnon: %lu", &kilobytes) == 1 ||
          std::sscanf(line, "RssFile: %lu", &kilobytes) == 1)
        total += uint64_t(kilobytes) << 10;
    std::fclose(status);
  }
  return total;
}

/// Libraries do not check their allocations: under 'ulimit -v' they would end
/// the rank by a signal. So what the plan grants of the process's own memory
/// must be there beforehand.
Status checkAddressSpace(const Program &program, const DeviceKind &device) {
  uint64_t bytes = 0;
  for (const ArenaPlan &arena : program.arenas)
    if (device.isOfProcess(arena.space))
      bytes += static_cast<uint64_t>(arena.reserve) +
               static_cast<uint64_t>(arena.bytes);
  if (bytes == 0)
    return Status();
  void *room = mmap(nullptr, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return Status::error("cannot set aside the " + std::to_string(bytes) +
                         " bytes of arenas and libraries that the plan counts "
                         "with: " +
                         systemError(errno));
  munmap(room, bytes);
  return Status();
}

/// Tells a preloaded allocation counter (test/Unit/Runtime) that the steady
/// state begins or ends; without one it does nothing.
void markSteadyState(bool begins) {
  using Mark = void (*)(int);
  static const Mark mark =
      reinterpret_cast<Mark>(dlsym(RTLD_DEFAULT, "accelMarkSteadyState"));
  if (mark)
    mark(begins);
}

/// Calls forward or eval as often as the job says.
Status runForward(const RankParts &parts) {
  const Call &call = parts.job.call;
  RankControl &self = parts.control.self();
  for (int64_t repeat = 0; repeat < parts.job.repeats; ++repeat) {
    // Outputs reach their files in the last run; the time of that is not the
    // model's.
    parts.io.writing = repeat + 1 == parts.job.repeats;
    parts.io.writeSeconds = 0;
    ACCEL_RT_RETURN_IF_ERROR(parts.control.barrier());
    double start = now();
    StepRecord record;
    if (call.entry == "eval" && parts.job.device.executes)
      ACCEL_RT_RETURN_IF_ERROR(evaluate(parts, call, parts.io, record));
    else
      ACCEL_RT_RETURN_IF_ERROR(parts.executor.run(call.entry));
    ACCEL_RT_RETURN_IF_ERROR(parts.noteCall(call.entry, /*first=*/repeat == 0));
    parts.control.report(repeat, now() - start - parts.io.writeSeconds, record);
    self.runsDone.fetch_add(1);
    self.command[0] = RankControl::kBetweenRuns;
  }
  return Status();
}

} // namespace

const Program *programOf(const Executable &executable, int64_t rank) {
  int64_t stage = Coordinates::of(executable.mesh, rank).at("pp");
  for (const Program &program : executable.programs)
    if (program.stage == stage)
      return &program;
  return nullptr;
}

Status runRank(const Job &job, ControlPlane &control) {
  const Executable &plan = job.file.plan();
  int64_t rank = control.rank();
  RankControl &self = control.self();
  double begin = now();
  // Others may be ready before this rank is.
  if (job.lanes)
    ACCEL_RT_RETURN_IF_ERROR(job.lanes->serve(
        static_cast<uint32_t>(job.memory.streams().size() * Staging::kRings)));
  const Program *program = programOf(plan, rank);
  bool executes = job.device.executes;
  uint64_t inherited = job.keeperBell ? residentBytes(0) : 0;
  if (executes)
    ACCEL_RT_RETURN_IF_ERROR(checkAddressSpace(*program, job.device));
  ThreadPool pool(static_cast<int>(job.threads),
                  spinLimit(job.threads * job.ranksHere, job.coresHere));
  if (!pool.status().ok())
    return Status::error(pool.status().message() + "; give fewer --threads");
  self.threads = pool.size();
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Executor::Engine> engines;
  for (const EngineKind &each : job.devices) {
    ACCEL_RT_RETURN_IF_ERROR(each.kind->make(
        job.file, pool, &self.bytesPopulated, devices.emplace_back()));
    if (executes && devices.size() == 1)
      devices.back() = addStorage(
          std::move(devices.back()), *program,
          {&self.progress, &self.storageRead, &self.storageWritten,
           [&](const std::string &sentence) {
             // Of the ranks of a machine one tells.
             if (rank % job.ranksHere == 0)
               std::fprintf(stderr, "acc-run: warning: %s\n", sentence.c_str());
           }});
    engines.push_back({each.engine, devices.back().get()});
  }
  std::unique_ptr<Device> &device = devices.front();
  std::unique_ptr<Comm> comm =
      makeHostComm(job.memory, pool, plan, control,
                   /*moves=*/executes, *device, job.keeperBell, job.lanes);
  // What this rank's pieces of states must hash to: words of the board, after
  // those of checkpoints.
  size_t states = plan.states.size();
  std::vector<uint64_t> pieceHashes(states);
  auto wordOf = [&](int64_t other, size_t state) {
    return CheckpointWriter::numWords(plan) +
           static_cast<size_t>(other) * states + state;
  };
  auto makeIo = [&](const Call *call, const Outputs *outputs) {
    InputOutput io{plan,         call ? &call->inputs : nullptr,
                   &job.weights, pieceHashes.data(),
                   outputs,      call && call->hasData ? &call->data : nullptr};
    io.memory = device.get();
    io.moves = executes && call;
    return io;
  };
  MetricsLog metrics;
  if (rank == 0 && executes && !job.options.metrics.empty())
    ACCEL_RT_RETURN_IF_ERROR(
        metrics.open(job.options.metrics, job.resumed != nullptr));
  InputOutput io = makeIo(&job.call, job.outputs),
              evalIo = makeIo(job.eval, nullptr),
              idle = makeIo(nullptr, nullptr); // of entries that nobody calls
  io.metrics = &metrics;
  Coordinates coordinates = Coordinates::of(plan.mesh, rank);
  auto transfer = [&](const Command &command, Work &work) {
    const auto *read = std::get_if<ReadCommand>(&command.what);
    bool isOfCall = (read && read->source == "state") ||
                    job.call.tensors.commands.count(&command);
    bool isOfEval = job.eval && job.eval->tensors.commands.count(&command);
    // A caller's calls take turns, and all of them find their tensors in one
    // place.
    InputOutput &own = isOfCall || job.server ? io : isOfEval ? evalIo : idle;
    return own.prepare(command, coordinates, self, work);
  };
  Executor executor(*program, coordinates,
                    {engines, comm.get(), transfer, &control,
                     job.trace ? &job.trace->tape(rank) : nullptr},
                    job.options.poison ||
                        (executes && job.options.poisonIfExecuted));
  ACCEL_RT_RETURN_IF_ERROR(executor.prepare(job.file));
  if (job.lanes) {
    self.waiting = true;
    ACCEL_RT_RETURN_IF_ERROR(job.lanes->stand([&] {
      return control.isAborted() ? Status::error(kAbortedMessage) : Status();
    }));
    self.waiting = false;
  }
  self.arenaBytes = executor.arenaBytes();
  uint64_t sharedBytes = 0;
  // What the network has taken before the rank was forked is no plan's.
  self.reservedBytes = job.memory.stagingBytes() + inherited;
  for (const ArenaPlan &arena : program->arenas) {
    self.reservedBytes += static_cast<uint64_t>(arena.reserve);
    if (arena.space == "shared")
      sharedBytes += static_cast<uint64_t>(arena.bytes);
  }
  if (executes)
    ACCEL_RT_RETURN_IF_ERROR(job.weights.checkSplit(
        plan, rank,
        [&](int64_t other, size_t state, uint64_t hash) {
          control.post(wordOf(other, state), hash);
        },
        self.progress));
  ACCEL_RT_RETURN_IF_ERROR(control.barrier());
  for (size_t state = 0; state < states; ++state)
    pieceHashes[state] = control.find(wordOf(rank, state));
  ACCEL_RT_RETURN_IF_ERROR(executor.run("load"));
  io.staging = {};
  std::unique_ptr<CheckpointWriter> writer;
  if (job.checkpoints) {
    writer = std::make_unique<CheckpointWriter>(
        *job.checkpoints, *program, coordinates, executor, pool, control);
    ACCEL_RT_RETURN_IF_ERROR(writer->prepare());
    self.reservedBytes += writer->copyBytes();
  }
  RankParts parts{job,     rank,    *program, coordinates, executor,
                  *device, control, io,       evalIo,      writer.get()};
  ACCEL_RT_RETURN_IF_ERROR(parts.noteCall("load", /*first=*/true));
  int64_t finished = rank == 0 && job.trains() ? finishedSteps(parts) : 0;
  if (finished < 0 || finished > kMaxSteps)
    return Status::error("expected a counter of steps from 0 to " +
                         std::to_string(kMaxSteps) + ", found " +
                         std::to_string(finished));
  ACCEL_RT_RETURN_IF_ERROR(control.agree(finished));
  self.firstStep = finished;
  self.loadSeconds = now() - begin;
  self.state = RankControl::Running;
  (void)residentBytes(0); // reading /proc allocates: once now, not after load

  markSteadyState(true);
  ACCEL_RT_RETURN_IF_ERROR(job.server     ? serveCalls(parts, pool)
                           : job.trains() ? trainSteps(parts)
                                          : runForward(parts));
  markSteadyState(false);
  self.touchedBytes = executor.touchedBytes();
  self.residentBytes = residentBytes(sharedBytes);
  bool isWhole = self.interruptedAt == RankControl::kNever;
  if (job.saved && isWhole)
    ACCEL_RT_RETURN_IF_ERROR(
        job.saved->writePieces(*program, coordinates, executor, self.progress));
  return Status();
}

} // namespace accel::rt
