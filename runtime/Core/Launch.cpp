// The parent: opens and checks everything, forks the ranks, watches them, and
// ends all of them when one ends badly or hangs. Ranks die with the parent.

#include "Core/CheckOptions.h"
#include "Core/Checkpoint.h"
#include "Core/DataFeed.h"
#include "Core/Interrupts.h"
#include "Core/Rank.h"
#include "Core/Resume.h"
#include "Core/SavedWeights.h"
#include "Core/StepReports.h"
#include "Core/WhereIs.h"
#include "Format/SystemError.h"
#include "accel-rt/NoMemory.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Made before anything can need it.
const std::string kNoMemory = "an allocation failed: " + systemError(ENOMEM);

using Clock = std::chrono::steady_clock;

/// How long ranks may take to end by themselves once one has failed.
constexpr auto kGrace = std::chrono::milliseconds(1000);
/// How long they may take to end by SIGKILL: one that is traced, or stuck in
/// the kernel, may never.
constexpr auto kKillGrace = std::chrono::seconds(5);
/// What one look counts for at most towards a hang: while all of the run is
/// stopped (Ctrl-Z), nobody fails to make progress.
constexpr std::chrono::duration<double> kLongestLook(0.2);
constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr auto kFirstPoll = std::chrono::milliseconds(1);
constexpr auto kProgressInterval = std::chrono::seconds(2);

int64_t coresHere() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

class Supervisor {
public:
  explicit Supervisor(const Job &job)
      : job(job), plan(job.file.plan()), control(job.memory.control()) {}

  Status run() {
    int64_t ranks = plan.numRanks();
    pid_t parent = getpid();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      // A signal that comes before a rank has its own handlers back must wait:
      // the parent's would only note it there.
      interrupts.block(true);
      pid_t child = fork();
      if (child == 0)
        rankProcess(rank, parent);
      interrupts.block(false);
      if (child < 0) {
        fail(Status::error("cannot start rank " + std::to_string(rank) + ": " +
                           systemError(errno)));
        endAll();
        return failure;
      }
      children.push_back(child);
    }
    running = children.size();
    lastProgress.assign(children.size(), 0);
    return watch();
  }

  /// Why a step could not be told; then no later one was.
  const Status &untold() const { return untoldStep; }

private:
  [[noreturn]] void rankProcess(int64_t rank, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (job.checkpoints)
      interrupts.ignore();
    else
      interrupts.restore();
    interrupts.block(false);
    if (getppid() != parent)
      _exit(1); // the parent ended before the line above
    RankControl &self = job.memory.rank(rank);
    // Memory may run out in any of the rank's threads, and in libraries.
    static Supervisor *here;
    static RankControl *rankHere;
    here = this;
    rankHere = &self;
    endWithoutMemory([] { here->endRank(*rankHere, kNoMemory.c_str()); });
    Status status = runRank(job, rank);
    if (!status.ok())
      endRank(self, status.message().c_str());
    self.state = RankControl::Finished;
    _exit(0);
  }

  /// Ends this process, a rank's. Allocates nothing.
  [[noreturn]] void endRank(RankControl &self, const char *message) {
    std::strncpy(self.message, message, sizeof self.message - 1);
    self.state = RankControl::Failed;
    control.abort.store(1);
    _exit(1);
  }

  Status watch() {
    auto lastLook = Clock::now(), lastLine = lastLook;
    std::chrono::duration<double> silent(0);
    Clock::duration poll = kFirstPoll;
    while (running > 0) {
      // A terminal interrupts the ranks, too: what they say then is no news.
      if (int signal = Interrupts::received())
        stop(Status::error(std::string("interrupted by ") + strsignal(signal)));
      else if (!untoldStep.ok())
        stop(untoldStep);
      reap();
      if (!failure.ok() || control.aborted())
        break;
      auto now = Clock::now();
      silent +=
          std::min<std::chrono::duration<double>>(now - lastLook, kLongestLook);
      lastLook = now;
      if (sawProgress())
        silent = {};
      if (silent.count() > job.options.hangSeconds) {
        reportHang(silent.count());
        break;
      }
      if (Clock::now() - lastLine > kProgressInterval) {
        lastLine = Clock::now();
        if (std::string line = progressLine();
            job.options.progress && !line.empty() && line != toldLast)
          job.options.progress(toldLast = line);
      }
      reportSteps(/*waits=*/false);
      std::this_thread::sleep_for(poll);
      poll = std::min<Clock::duration>(poll * 5 / 4, kPoll);
    }
    endAll();
    // Who is interrupted waits for no reader any more.
    reportSteps(/*waits=*/!Interrupts::received());
    return failure;
  }

  /// Ends the run because of `why`: in order, if there is a step to finish and
  /// a folder to save it in, and by force if not or if it is asked for twice.
  void stop(Status why) {
    bool inOrder = job.checkpoints && Interrupts::count() <= 1;
    for (size_t rank = 0; rank < children.size() && !control.stopWanted; ++rank)
      inOrder &= job.memory.rank(static_cast<int64_t>(rank)).state.load() !=
                 RankControl::Loading; // else nothing is worth saving
    if (!inOrder)
      return fail(std::move(why));
    if (control.stopWanted.exchange(true) || !job.options.progress)
      return;
    job.options.progress(why.message() +
                         ": saving a checkpoint after this step; a second "
                         "signal ends the run at once");
  }

  /// Tells of the steps that all ranks have finished since the last call;
  /// `waits` for whoever reads them.
  void reportSteps(bool waits) {
    if (!plan.isTraining() || !job.options.step)
      return;
    auto mayTell = [&] {
      return untoldStep.ok() &&
             (waits || !job.options.canTellStep || job.options.canTellStep());
    };
    int64_t done = job.repeats;
    for (size_t rank = 0; rank < children.size(); ++rank)
      done = std::min(
          done,
          static_cast<int64_t>(
              job.memory.rank(static_cast<int64_t>(rank)).runsDone.load()));
    // A step that ended badly is an error, no step.
    if (int64_t stopped = control.stoppedAt.load())
      done = std::min(done, stopped - 1);
    for (; reported < done && mayTell(); ++reported) {
      StepResult step = stepResult(job, reported);
      warnOfRate(step);
      untoldStep = job.options.step(step);
    }
  }

  /// A schedule that is over leaves the parameters as they are. Step 1 of a
  /// warm-up has the rate 0, too.
  void warnOfRate(const StepResult &step) {
    if (warnedOfRate || step.step == 1 || step.learningRate != 0 ||
        !job.options.warn)
      return;
    warnedOfRate = true;
    job.options.warn("the learning rate is 0 from step " +
                     std::to_string(step.step) +
                     " on, so that nothing more is learned: is "
                     "'scheduler.total_steps' of the compilation over?");
  }

  /// Collects the ranks that have ended; the first bad end is the failure.
  void reap() {
    for (size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (children[rank] <= 0 ||
          waitpid(children[rank], &status, WNOHANG) != children[rank])
        continue;
      children[rank] = 0;
      --running;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        continue;
      RankControl &self = job.memory.rank(static_cast<int64_t>(rank));
      if (WIFSIGNALED(status)) {
        std::string text = whereIs(plan, self, static_cast<int64_t>(rank)) +
                           ": ended by signal " +
                           std::to_string(WTERMSIG(status)) + " (" +
                           strsignal(WTERMSIG(status)) + ")";
        // A SIGKILL of nobody's is the kernel's.
        if (WTERMSIG(status) == SIGKILL)
          text += ", as the kernel does where memory runs out";
        fail(Status::error(text));
      } else if (self.state.load() != RankControl::Failed) {
        fail(Status::error(whereIs(plan, self, static_cast<int64_t>(rank)) +
                           ": ended with exit code " +
                           std::to_string(WEXITSTATUS(status))));
      } else {
        failAsSaid(rank);
      }
    }
  }

  /// Fails for the reason that a rank gave before it ended.
  void failAsSaid(size_t rank) {
    std::string why = job.memory.rank(static_cast<int64_t>(rank)).message;
    if (why != kAbortedMessage)
      fail(Status::error(
          (children.size() > 1 ? "rank " + std::to_string(rank) + ": " : "") +
          why));
  }

  void fail(Status status) {
    if (failure.ok())
      failure = std::move(status);
    control.abort.store(1);
  }

  bool sawProgress() {
    bool seen = false;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      RankControl &self = job.memory.rank(static_cast<int64_t>(rank));
      uint64_t progress = self.progress.load() + self.runsDone +
                          self.bytesPopulated + self.weightBytesRead;
      seen |= progress != lastProgress[rank];
      lastProgress[rank] = progress;
    }
    return seen;
  }

  void reportHang(double seconds) {
    std::string text = "no rank made progress for " +
                       std::to_string(static_cast<int64_t>(seconds)) + " s: ";
    // A rank that is behind the others is not waiting for them, even if it was
    // stopped in a wait that is over.
    uint64_t least =
                 *std::min_element(lastProgress.begin(), lastProgress.end()),
             most = *std::max_element(lastProgress.begin(), lastProgress.end());
    for (size_t rank = 0; rank < children.size(); ++rank) {
      RankControl &self = job.memory.rank(static_cast<int64_t>(rank));
      bool waits =
          self.waiting.load() && (lastProgress[rank] > least || least == most);
      text += (rank ? "; " : "") +
              whereIs(plan, self, static_cast<int64_t>(rank), waits);
    }
    fail(Status::error(text));
  }

  std::string progressLine() {
    uint64_t read = 0, populated = 0, done = UINT64_MAX;
    bool loading = false;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      RankControl &self = job.memory.rank(static_cast<int64_t>(rank));
      loading |= self.state.load() == RankControl::Loading;
      read += self.weightBytesRead;
      populated += self.bytesPopulated;
      done = std::min<uint64_t>(done, self.runsDone);
    }
    if (loading)
      return "loading: " + std::to_string(populated >> 20) +
             " MiB of memory filled, " + std::to_string(read >> 20) +
             " MiB of weights read";
    if (plan.isTraining())
      return ""; // its steps speak for themselves
    return "running: " + std::to_string(done) + " of " +
           std::to_string(job.repeats) + " done";
  }

  /// Ends every rank: by the abort word, and by force when the grace is over.
  void endAll() {
    auto deadline = Clock::now() + kGrace;
    if (running > 0 || !failure.ok())
      control.abort.store(1);
    while (running > 0 && Clock::now() < deadline) {
      reap();
      std::this_thread::sleep_for(kPoll / 4);
    }
    for (size_t rank = 0; rank < children.size(); ++rank) {
      if (children[rank] <= 0)
        continue;
      kill(children[rank], SIGKILL);
    }
    deadline = Clock::now() + kKillGrace;
    while (running > 0 && Clock::now() < deadline) {
      std::this_thread::sleep_for(kPoll / 4);
      collectKilled();
    }
    if (failure.ok() && control.aborted())
      failure = Status::error("a rank ended without saying why");
    for (size_t rank = 0; rank < children.size(); ++rank)
      if (children[rank] > 0)
        failure = Status::error(
            failure.message() + "; rank " + std::to_string(rank) + " (" +
            whyItLives(children[rank]) + ") did not end by SIGKILL");
  }

  /// Collects the ranks that SIGKILL has ended, which is no news. But one may
  /// have said why it ends, and been slow to do so.
  void collectKilled() {
    for (size_t rank = 0; rank < children.size(); ++rank) {
      if (children[rank] <= 0 ||
          waitpid(children[rank], nullptr, WNOHANG) != children[rank])
        continue;
      children[rank] = 0;
      --running;
      if (job.memory.rank(static_cast<int64_t>(rank)).state.load() ==
          RankControl::Failed)
        failAsSaid(rank);
    }
  }

  const Job &job;
  const Executable &plan;
  Control &control;
  Interrupts interrupts;
  std::vector<pid_t> children;
  size_t running = 0;
  int64_t reported = 0;
  bool warnedOfRate = false;
  std::string toldLast; ///< What stays the same is said once.
  std::vector<uint64_t> lastProgress;
  Status failure, untoldStep;
};

void collect(const Job &job, RunResult &result) {
  const Executable &plan = job.file.plan();
  result.ranks = plan.numRanks();
  result.seconds.assign(static_cast<size_t>(job.repeats), 0);
  for (int64_t rank = 0; rank < result.ranks; ++rank) {
    RankControl &self = job.memory.rank(rank);
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
    if (self.residentBytes > planned + self.reservedBytes)
      std::fprintf(stderr,
                   "acc-run: warning: rank %lld holds %.1f MiB beside its "
                   "arenas, more than the %.1f MiB reserved in the plan\n",
                   static_cast<long long>(rank),
                   double(self.residentBytes - planned) / (1 << 20),
                   double(self.reservedBytes) / (1 << 20));
    result.loadSeconds = std::max(result.loadSeconds, self.loadSeconds);
    for (int64_t repeat = 0; repeat < job.repeats; ++repeat)
      result.seconds[repeat] =
          std::max(result.seconds[repeat], job.memory.seconds(rank, repeat));
  }
}

} // namespace

Status runExecutable(const RunOptions &given, RunResult &result) {
  std::unique_ptr<ExecutableFile> file;
  ACCEL_RT_RETURN_IF_ERROR(ExecutableFile::open(given.executable, file));
  const Executable &plan = file->plan();
  int64_t ranks = plan.numRanks();
  ACCEL_RT_RETURN_IF_ERROR(checkOptions(plan, given));
  Resume resume;
  bool resumes = !given.resume.empty();
  if (resumes)
    ACCEL_RT_RETURN_IF_ERROR(resume.open(given.resume, plan));
  int64_t repeats;
  ACCEL_RT_RETURN_IF_ERROR(
      countRuns(plan, given, resumes ? &resume : nullptr, repeats));
  RunOptions options = given;
  // The data go on in the order in which they began.
  if (resumes && !options.seed && resume.manifest().data)
    options.seed = resume.manifest().data->seed;
  DataFeed data;
  bool hasData = !options.data.empty();
  if (hasData)
    ACCEL_RT_RETURN_IF_ERROR(data.open(plan, options));
  DataCursor cursor;
  bool checkpointed = !options.checkpoint.empty();
  if (hasData)
    ACCEL_RT_RETURN_IF_ERROR(
        data.getCursor(checkpointed || resumes, options, cursor));
  if (resumes)
    ACCEL_RT_RETURN_IF_ERROR(
        resume.checkData(hasData ? &cursor : nullptr, options.warn));
  Inputs inputs;
  ACCEL_RT_RETURN_IF_ERROR(inputs.open(
      plan, options.inputs.empty() && !hasData ? "." : options.inputs,
      hasData ? &data : nullptr));
  if (hasData && options.warn)
    if (std::string text = data.labelWarning(plan, options, inputs);
        !text.empty())
      options.warn(text);
  Weights weights;
  ACCEL_RT_RETURN_IF_ERROR(weights.open(*file, resumes ? &resume : nullptr));
  HostMemory memory;
  ACCEL_RT_RETURN_IF_ERROR(memory.create(plan, repeats));
  Outputs outputs;
  if (!options.outputs.empty())
    ACCEL_RT_RETURN_IF_ERROR(outputs.create(plan, options.outputs));
  SavedWeights saved;
  bool saves = !options.saveWeights.empty();
  if (saves)
    ACCEL_RT_RETURN_IF_ERROR(saved.create(*file, weights, options.saveWeights,
                                          options.originalWeights,
                                          options.warn));
  Checkpoints checkpoints;
  if (checkpointed)
    ACCEL_RT_RETURN_IF_ERROR(checkpoints.open(*file, options,
                                              resumes ? &resume : nullptr,
                                              hasData ? &cursor : nullptr));
  int64_t threads = options.threads ? options.threads
                                    : std::max<int64_t>(1, coresHere() / ranks);
  memory.control().spin =
      ranks * threads <= coresHere() ? 2000 : 50; // as spinLimit says
  Job job{options,
          *file,
          memory,
          inputs,
          weights,
          options.outputs.empty() ? nullptr : &outputs,
          hasData ? &data : nullptr,
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
  if (int64_t at = memory.control().interruptedAt; at != Control::kNever) {
    result.interruptedBy = Interrupts::received();
    std::string why = result.interruptedBy ? std::string("interrupted by ") +
                                                 strsignal(result.interruptedBy)
                                           : supervisor.untold().message();
    return withLast(Status::error(
        why + " after step " + std::to_string(memory.control().firstStep + at) +
        " of " + std::to_string(memory.control().firstStep + repeats)));
  }
  if (saves)
    if (Status status = saved.finish(); !status.ok())
      return withLast(std::move(status));
  if (memory.control().stoppedAt.load())
    return withLast(badStep(job));
  if (!options.outputs.empty())
    ACCEL_RT_RETURN_IF_ERROR(outputs.finish());
  if (!supervisor.untold().ok())
    return withLast(supervisor.untold());
  collect(job, result);
  if (checkpointed)
    result.lastCheckpoint = checkpoints.whereIsTheLast();
  return Status();
}

} // namespace accel::rt
