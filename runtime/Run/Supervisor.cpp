// The life of the ranks' processes, as their parent sees it.

#include "Run/Supervisor.h"

#include "Base/SystemError.h"
#include "Run/CallServer.h"
#include "Run/StepReports.h"
#include "Run/WhereIs.h"
#include "State/Checkpoint.h"
#include "accel-rt/NoMemory.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
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
constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr auto kFirstPoll = std::chrono::milliseconds(1);
constexpr auto kProgressInterval = std::chrono::seconds(2);

/// Says why this rank ends, and ends the others. Allocates nothing.
void tellFailure(ControlPlane &plane, const char *message) {
  RankControl &self = plane.self();
  std::strncpy(self.message, message, sizeof self.message - 1);
  self.state = RankControl::Failed;
  plane.abort();
  plane.close();
}

} // namespace

Supervisor::Supervisor(const Job &job)
    : job(job), plan(job.file.plan()), control(job.control) {}

Status Supervisor::run() {
  int64_t ranks = plan.numRanks();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    // A signal that comes before a rank has its own handlers back must wait:
    // the parent's would only note it there.
    interrupts.block(true);
    Status status = control.start(rank, [&](ControlPlane &plane) {
      return liveAsRank(job, interrupts, plane);
    });
    interrupts.block(false);
    if (!status.ok()) {
      fail(std::move(status));
      endAll();
      return failure;
    }
    lives.push_back(true);
    ++running;
  }
  return watch();
}

int liveAsRank(const Job &job, Interrupts &interrupts, ControlPlane &plane) {
  if (job.checkpoints)
    interrupts.ignore();
  else
    interrupts.restore();
  interrupts.block(false);
  // Memory may run out in any of the rank's threads, and in libraries.
  static ControlPlane *here;
  here = &plane;
  endWithoutMemory([] {
    tellFailure(*here, kNoMemory.c_str());
    _exit(1);
  });
  Status status = runRank(job, plane);
  if (!status.ok()) {
    tellFailure(plane, status.message().c_str());
    return 1;
  }
  plane.self().state = RankControl::Finished;
  plane.close();
  return 0;
}

Status Supervisor::watch() {
  HangWatch hang(plan, control, job.options.hangSeconds);
  Clock::duration poll = kFirstPoll;
  lastLine = Clock::now();
  while (running > 0) {
    // A terminal interrupts the ranks, too: what they say then is no news.
    if (int signal = Interrupts::received())
      stop(Status::error("interrupted by " + Interrupts::nameOf(signal)));
    else if (!untoldStep.ok())
      stop(untoldStep);
    reap();
    if (!failure.ok() || control.isAborted())
      break;
    if (job.server && !job.server->board().isCalled()) {
      hang.rest(); // it is the caller's turn
    } else if (hang.look()) {
      fail(Status::error(hang.describe(processes())));
      break;
    }
    reportProgress();
    reportSteps(/*waits=*/false);
    rest(poll);
    poll = std::min<Clock::duration>(poll * 5 / 4, kPoll);
  }
  endAll();
  // Who is interrupted waits for no reader any more.
  reportSteps(/*waits=*/!Interrupts::received());
  return failure;
}

/// Sleeps until the next look; who waits for a caller sees it go.
void Supervisor::rest(std::chrono::nanoseconds duration) {
  if (!job.server) {
    std::this_thread::sleep_for(duration);
    return;
  }
  auto whole = std::chrono::ceil<std::chrono::milliseconds>(duration);
  if (job.server->isCallerGone(static_cast<int>(whole.count())))
    fail(Status::error("the program that called the ranks is gone"));
}

/// Ends the run because of `why`: in order, if there is a step to finish and
/// a folder to save it in, and by force if not or if it is asked for twice.
void Supervisor::stop(Status why) {
  bool inOrder = job.checkpoints && Interrupts::count() <= 1;
  for (size_t rank = 0; rank < lives.size() && !control.isStopWanted(); ++rank)
    inOrder &= control.rank(static_cast<int64_t>(rank)).state.load() !=
               RankControl::Loading; // else nothing is worth saving
  if (!inOrder)
    return fail(std::move(why));
  if (control.isStopWanted())
    return;
  control.wantStop();
  if (!job.options.progress)
    return;
  job.options.progress(why.message() +
                       ": saving a checkpoint after this step; a second "
                       "signal ends the run at once");
}

/// Tells of the steps that all ranks have finished since the last call;
/// `waits` for whoever reads them.
void Supervisor::reportSteps(bool waits) {
  if (!job.trains() || !job.options.step)
    return;
  auto mayTell = [&] {
    return untoldStep.ok() &&
           (waits || !job.options.canTellStep || job.options.canTellStep());
  };
  int64_t done = job.repeats;
  for (size_t rank = 0; rank < lives.size(); ++rank)
    done = std::min(
        done, static_cast<int64_t>(
                  control.rank(static_cast<int64_t>(rank)).runsDone.load()));
  // A step that failed is an error, no step.
  if (int64_t stopped = control.stoppedAt())
    done = std::min(done, stopped - 1);
  for (; reported < done && mayTell(); ++reported) {
    StepResult step = stepResult(job, reported);
    warnOfRate(step);
    untoldStep = job.options.step(step);
  }
}

/// A schedule that is over leaves the parameters as they are. The first update
/// of a warm-up has the rate 0, too.
void Supervisor::warnOfRate(const StepResult &step) {
  bool isFirst = !hasUpdated && control.firstStep() == 0;
  hasUpdated |= step.verdict == Verdict::Done;
  const Report *rate = step.find("lr");
  if (warnedOfRate || isFirst || !rate || rate->value != 0 || !job.options.warn)
    return;
  warnedOfRate = true;
  job.options.warn("the learning rate is 0 from step " +
                   std::to_string(step.step) +
                   " on, so that nothing more is learned: is "
                   "'scheduler.total_steps' of the compilation over?");
}

void Supervisor::reportProgress() {
  if (Clock::now() - lastLine <= kProgressInterval)
    return;
  lastLine = Clock::now();
  if (std::string line = progressLine();
      job.options.progress && !line.empty() && line != toldLast)
    job.options.progress(toldLast = line);
}

std::string Supervisor::progressLine() const {
  uint64_t read = 0, populated = 0, done = UINT64_MAX;
  bool loading = false;
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    const RankControl &self = control.rank(static_cast<int64_t>(rank));
    loading |= self.state.load() == RankControl::Loading;
    read += self.weightBytesRead;
    populated += self.bytesPopulated;
    done = std::min<uint64_t>(done, self.runsDone);
  }
  if (loading)
    return "loading: " + std::to_string(populated >> 20) +
           " MiB of memory filled, " + std::to_string(read >> 20) +
           " MiB of weights read";
  if ((job.trains() && job.device.executes) || job.server)
    return ""; // its steps, or answers, speak for themselves
  return "running: " + std::to_string(done) + " of " +
         std::to_string(job.repeats) + " done";
}

std::optional<RankEnd> Supervisor::findEnd(size_t rank) {
  std::optional<RankEnd> end;
  if (lives[rank])
    end = control.findEnd(static_cast<int64_t>(rank));
  if (end) {
    lives[rank] = false;
    --running;
  }
  return end;
}

std::vector<pid_t> Supervisor::processes() const {
  std::vector<pid_t> found;
  for (size_t rank = 0; rank < lives.size(); ++rank)
    found.push_back(control.process(static_cast<int64_t>(rank)));
  return found;
}

/// Collects the ranks that have ended; the first bad end is the failure, and of
/// those that ranks give reasons for the first in the program.
void Supervisor::reap() {
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    std::optional<RankEnd> end = findEnd(rank);
    if (!end || (!end->bySignal && end->code == 0))
      continue;
    const RankControl &self = control.rank(static_cast<int64_t>(rank));
    if (end->bySignal) {
      std::string text = whereIs(plan, self, static_cast<int64_t>(rank)) +
                         ": ended by signal " + std::to_string(end->code) +
                         " (" + strsignal(end->code) + ")";
      // A SIGKILL of nobody's is the kernel's.
      if (end->isOutOfTime)
        text +=
            ", as the kernel does where a process has had the CPU time that "
            "'ulimit -t' grants it";
      else if (end->code == SIGKILL)
        text += ", as the kernel does where memory runs out";
      fail(Status::error(text));
    } else if (self.state.load() != RankControl::Failed) {
      fail(Status::error(whereIs(plan, self, static_cast<int64_t>(rank)) +
                         ": ended with exit code " +
                         std::to_string(end->code)));
    } else {
      failAsSaid(rank);
    }
  }
}

/// Fails for the reason that a rank gave before it ended.
void Supervisor::failAsSaid(size_t rank) {
  const RankControl &self = control.rank(static_cast<int64_t>(rank));
  std::string why = self.message;
  if (why == kAbortedMessage)
    return;
  std::tuple place(self.runsDone.load(), self.command[0].load(), rank);
  if (failedAt && place < *failedAt)
    failure = Status();
  if (failure.ok())
    failedAt = place;
  fail(Status::error(
      (lives.size() > 1 ? "rank " + std::to_string(rank) + ": " : "") + why));
}

void Supervisor::fail(Status status) {
  if (failure.ok())
    failure = std::move(status);
  control.abort();
}

/// Ends every rank: by the abort word, and by force when the grace is over.
void Supervisor::endAll() {
  auto deadline = Clock::now() + kGrace;
  if (running > 0 || !failure.ok())
    control.abort();
  while (running > 0 && Clock::now() < deadline) {
    reap();
    std::this_thread::sleep_for(kPoll / 4);
  }
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    if (lives[rank])
      control.kill(static_cast<int64_t>(rank));
  }
  deadline = Clock::now() + kKillGrace;
  while (running > 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(kPoll / 4);
    collectKilled();
  }
  if (failure.ok() && control.isAborted())
    failure = Status::error("a rank ended without saying why");
  for (size_t rank = 0; rank < lives.size(); ++rank)
    if (lives[rank])
      failure = Status::error(
          failure.message() + "; rank " + std::to_string(rank) + " (" +
          whyItLives(control.process(static_cast<int64_t>(rank))) +
          ") did not end by SIGKILL");
}

/// Collects the ranks that SIGKILL has ended, which is no news. But one may
/// have said why it ends, and been slow to do so.
void Supervisor::collectKilled() {
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    if (!findEnd(rank))
      continue;
    if (control.rank(static_cast<int64_t>(rank)).state.load() ==
        RankControl::Failed)
      failAsSaid(rank);
  }
}

} // namespace accel::rt
