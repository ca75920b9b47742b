// The calls. A caller posts the next one when all ranks have finished the last,
// so that ranks meet between calls without a barrier of their own.

#include "Run/ServeCalls.h"

#include "Execute/Executor.h"
#include "Run/CallServer.h"
#include "Run/SharedWeights.h"
#include "Run/StepReports.h"
#include "State/BestEvaluation.h"
#include "State/CheckpointWriter.h"

#include <chrono>
#include <cstring>
#include <map>

namespace accel::rt {
namespace {

using Clock = std::chrono::steady_clock;

class ServedRank {
public:
  ServedRank(const RankParts &parts, ThreadPool &pool)
      : parts(parts), pool(pool), board(parts.job.server->board()),
        weights(parts, *parts.job.server),
        spin(spinLimit(parts.job.threads * parts.job.ranksHere + 1,
                       parts.job.coresHere)) {}

  Status serve() {
    if (parts.rank == 0)
      board.steps = parts.control.self().firstStep.load();
    for (uint32_t seen = 1;; ++seen) {
      finish(seen);
      ACCEL_RT_RETURN_IF_ERROR(waitForCall(seen));
      CallKind kind = static_cast<CallKind>(board.kind);
      if (kind == CallKind::End)
        return Status();
      auto start = Clock::now();
      ACCEL_RT_RETURN_IF_ERROR(answer(kind));
      parts.control.self().command[0] = RankControl::kBetweenRuns;
      parts.control.self().runsDone.fetch_add(1);
      noteTime(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   Clock::now() - start)
                   .count());
    }
  }

private:
  /// Waits for a call beyond the first `seen`.
  Status waitForCall(uint32_t seen) {
    for (int look = 0; board.posted.load() == seen; ++look) {
      if (look < spin) {
        pauseCore();
        continue;
      }
      if (parts.control.isAborted())
        return Status::error(kAbortedMessage);
      waitWhile(board.posted, seen, kSleepMilliseconds);
    }
    return Status();
  }

  void noteTime(int64_t nanoseconds) {
    int64_t known = board.nanoseconds.load();
    while (known < nanoseconds &&
           !board.nanoseconds.compare_exchange_weak(known, nanoseconds)) {
    }
  }

  /// Who comes last answers for all.
  void finish(uint32_t call) {
    if (board.finished.fetch_add(1) + 1 !=
        static_cast<uint32_t>(parts.control.numRanks()))
      return;
    board.finished = 0;
    if (static_cast<CallKind>(board.kind) == CallKind::Step)
      closeStep();
    board.answered.store(call);
    wakeWaiters(board.answered);
  }

  /// Counts the step, or says why it does not count.
  void closeStep() {
    if (board.verdict.load() != static_cast<uint32_t>(Verdict::Failed)) {
      board.steps.fetch_add(1);
      return;
    }
    double values[kMaxReports];
    for (size_t i = 0; i < kMaxReports; ++i)
      values[i] = board.reports[i].value;
    StepResult result;
    result.step = board.steps.load() + 1;
    fillReports(parts.job.file.plan(), values, result);
    refuse(failedStep(result).message());
  }

  /// Of several ranks' reasons one is told.
  void refuse(const std::string &why) {
    uint32_t done = static_cast<uint32_t>(CallOutcome::Done);
    if (!board.outcome.compare_exchange_strong(
            done, static_cast<uint32_t>(CallOutcome::Refused)))
      return;
    std::strncpy(board.message, why.c_str(), sizeof board.message - 1);
    board.message[sizeof board.message - 1] = '\0';
  }

  Status answer(CallKind kind) {
    InputOutput &io = parts.io;
    io.writing = kind == CallKind::Forward || (board.flags & kWantsOutputs);
    io.finishedSteps = board.steps.load();
    switch (kind) {
    case CallKind::Step:
      return step();
    case CallKind::Eval:
      return evaluate();
    case CallKind::Forward:
      return parts.executor.run("forward");
    case CallKind::GetWeights:
      return weights.get();
    case CallKind::SetWeights:
      return setWeights();
    case CallKind::Save:
      return save(board.text);
    case CallKind::Load:
    case CallKind::End:
      break;
    }
    return Status::error("expected a call of the program that has started "
                         "acc-run, found number " +
                         std::to_string(board.kind));
  }

  Status step() {
    ACCEL_RT_RETURN_IF_ERROR(parts.executor.run("step"));
    // A rank whose program reports nothing takes it for done.
    if (Verdict verdict = parts.io.verdict(); verdict != Verdict::Done)
      board.verdict = static_cast<uint32_t>(verdict);
    if (parts.rank != 0)
      return Status();
    board.loss = parts.io.loss();
    for (uint32_t i = 0; i < board.numReports; ++i)
      board.reports[i].value = parts.io.record.values[i];
    return Status();
  }

  Status evaluate() {
    InputOutput &io = parts.io;
    if (!(board.flags & kGoesOn))
      io.losses.clear();
    ACCEL_RT_RETURN_IF_ERROR(parts.executor.run("eval"));
    io.losses.add(io.loss(), 1);
    if (parts.rank == 0)
      board.loss = io.losses.value(1);
    return Status();
  }

  Status setWeights() {
    std::string refused;
    bool isTaken = false;
    ACCEL_RT_RETURN_IF_ERROR(weights.set(isTaken, refused));
    if (!refused.empty())
      refuse(refused);
    given += isTaken;
    return Status();
  }

  /// A folder that this run saves checkpoints into.
  struct Folder {
    Checkpoints checkpoints;
    std::unique_ptr<CheckpointWriter> writer;
    int64_t step = -1;     ///< Of the newest checkpoint; -1: none.
    int64_t givenThen = 0; ///< What `given` was then.
  };

  Status save(const std::string &path) {
    if (!folders.count(path))
      ACCEL_RT_RETURN_IF_ERROR(open(path));
    auto found = folders.find(path);
    if (found == folders.end())
      return Status(); // refused
    Folder &folder = found->second;
    int64_t number = board.steps.load();
    if (number == folder.step) {
      if (folder.givenThen != given)
        refuse("expected a step after the checkpoint of step " +
               std::to_string(number) + " in " + inQuotes(path) +
               ", found other weights of that step");
      return Status(); // it is there
    }
    ACCEL_RT_RETURN_IF_ERROR(folder.writer->save(number, BestEvaluation()));
    folder.step = number;
    folder.givenThen = given;
    return Status();
  }

  /// Opens a folder that was not named before: on rank 0, which has it for
  /// itself, and then on the others.
  Status open(const std::string &path) {
    using Writers = Checkpoints::Writers;
    RunOptions options = parts.job.options;
    options.checkpoint = path;
    options.checkpointSync = true; // the caller waits for what it has asked for
    Folder &folder = folders[path];
    for (Writers turn : {Writers::Here, Writers::Joined}) {
      Status status;
      if ((parts.rank == 0) == (turn == Writers::Here))
        status = folder.checkpoints.open(parts.job.file, options,
                                         parts.job.weights, parts.job.resumed,
                                         /*cursor=*/nullptr, turn);
      int64_t isRefused = !status.ok();
      if (isRefused)
        refuse(status.message());
      ACCEL_RT_RETURN_IF_ERROR(parts.control.agree(isRefused));
      if (isRefused) {
        folders.erase(path);
        return Status();
      }
    }
    folder.writer = std::make_unique<CheckpointWriter>(
        folder.checkpoints, parts.program, parts.coordinates, parts.executor,
        pool, parts.control);
    return Status();
  }

  const RankParts &parts;
  ThreadPool &pool;
  CallBoard &board;
  SharedWeights weights;
  int spin;
  int64_t given = 0; ///< How often the caller has set the weights.
  std::map<std::string, Folder> folders;
};

} // namespace

Status serveCalls(const RankParts &parts, ThreadPool &pool) {
  return ServedRank(parts, pool).serve();
}

} // namespace accel::rt
