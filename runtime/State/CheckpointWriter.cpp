// The protocol of saving a checkpoint, and the thread that keeps to it.

#include "State/CheckpointWriter.h"

#include "Base/StagingBytes.h"
#include "Base/SystemError.h"
#include "Control/ControlPlane.h"
#include "Execute/Executor.h"
#include "State/SavedWeights.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace accel::rt {
namespace {

/// Written back to storage at a time: each is a sign of life.
constexpr int64_t kSyncBytes = int64_t(64) << 20;

/// How often a rank that waits for its thread looks whether the run is aborted,
/// and how long the thread sleeps between two looks for the others'.
constexpr std::chrono::milliseconds kLookAgain(20);
constexpr std::chrono::microseconds kFirstPause(50), kLongestPause(2000);

/// With errno as the reason.
Status cannotWrite(const char *name) {
  int error = errno;
  return Status::error("cannot write " + inQuotes(name) + ": " +
                       systemError(error));
}

/// A file system that cannot synchronise folders is no error.
Status syncFolder(int fd) {
  return fsync(fd) == 0 || errno == EINVAL ? Status() : cannotWrite(".");
}

} // namespace

struct CheckpointWriter::Hasher {
  XXH3_state_t state;
};

CheckpointWriter::CheckpointWriter(const Checkpoints &checkpoints,
                                   const Program &program,
                                   const Coordinates &coordinates,
                                   const Executor &executor, ThreadPool &pool,
                                   ControlPlane &control)
    : plan(checkpoints), executor(executor), pool(pool), control(control),
      progress(control.self().progress), staging(kStagingBytes),
      hasher(std::make_unique<Hasher>()), manifest(checkpoints.manifest),
      manifestPath(kManifestFile) {
  for (int i = 0; i < kNumCheckpointFiles; ++i)
    filePaths[i] = kCheckpointFiles[i];
  kept = plan.before;
  // As many as are kept, the best one, and that which is to be removed.
  kept.reserve(kept.size() + static_cast<size_t>(plan.keep) + 2);
  HeldStates held = findHeld(program);
  for (const Checkpoints::Saved &saved : plan.states) {
    auto found = held.find(saved.state->keptAs());
    if (found == held.end() || !isWriter(found->second->part, coordinates))
      continue;
    const ReadCommand &read = *found->second;
    std::optional<KeptPiece> kept =
        findKept(*saved.state, read.part, read.target, coordinates);
    if (!kept)
      continue;
    const std::vector<int64_t> &shape = saved.state->valueShape();
    TensorRange range{-1,           filePaths[saved.file],
                      saved.offset, saved.state->dtype,
                      shape,        rowMajorStrides(shape)};
    // A copy lies in memory of the host.
    Address start = executor.address(kept->view);
    Memory *memory =
        plan.background ? nullptr : executor.memory().ifRemote(start);
    pieces.push_back({saved.file,
                      PieceMover(range, kept->part, kept->view, coordinates,
                                 memory, &staging),
                      start});
    if (plan.background)
      copy.add(start, kept->view);
  }
}

CheckpointWriter::~CheckpointWriter() = default;

Status CheckpointWriter::prepare() {
  if (!plan.background)
    return Status();
  ACCEL_RT_RETURN_IF_ERROR(copy.allocate(&control.self().bytesPopulated));
  return background.open("the thread that writes checkpoints", [this] {
    Status status = write();
    if (status.ok())
      return;
    outcome = std::move(status);
    hasFailed = true;
  });
}

Status CheckpointWriter::save(int64_t atStep, const BestEvaluation &soFar) {
  RankControl &self = control.self();
  if (plan.background) {
    ACCEL_RT_RETURN_IF_ERROR(finish());
    self.command[0] = RankControl::kSaving;
    ACCEL_RT_RETURN_IF_ERROR(copy.copy(executor.memory(), pool));
    step = atStep;
    best = soFar;
    background.start();
  } else {
    self.command[0] = RankControl::kSaving;
    step = atStep;
    best = soFar;
    ACCEL_RT_RETURN_IF_ERROR(write());
  }
  self.command[0] = RankControl::kBetweenRuns;
  return Status();
}

Status CheckpointWriter::finish() {
  if (!plan.background)
    return Status();
  RankControl &self = control.self();
  self.command[0] = RankControl::kSaving;
  while (!background.waitFor(kLookAgain)) {
    self.waiting = awaitsOthers.load();
    if (control.isAborted())
      return Status::error(kAbortedMessage);
  }
  self.waiting = false;
  self.command[0] = RankControl::kBetweenRuns;
  return look();
}

Status CheckpointWriter::look() const { return hasFailed ? outcome : Status(); }

/// All of the work, in the thread that is to do it.
Status CheckpointWriter::write() {
  Status status = writeAll();
  for (FileHandle &file : files)
    file = FileHandle();
  temporary = FileHandle();
  if (status.ok() && control.rank() == 0)
    published = step;
  if (!status.ok() && status.message() != kAbortedMessage)
    return Status::error("cannot save the checkpoint " +
                         inQuotes(plan.folder.path() + "/" +
                                  CheckpointName(step, false).text()) +
                         ": " + status.message());
  return status;
}

/// Waits until all ranks have come. In the background by words of the board,
/// because barriers are for the threads that make the steps.
Status CheckpointWriter::meet() {
  if (!plan.background)
    return control.barrier();
  ++meetings;
  size_t first = CheckpointWriter::numWords(plan.executable()) -
                 static_cast<size_t>(control.numRanks());
  control.post(first + static_cast<size_t>(control.rank()), meetings);
  auto pause = kFirstPause;
  awaitsOthers = true;
  for (int64_t rank = 0; rank < control.numRanks();) {
    if (control.isAborted())
      return Status::error(kAbortedMessage);
    if (control.find(first + static_cast<size_t>(rank)) >= meetings) {
      ++rank;
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  awaitsOthers = false;
  return Status();
}

Status CheckpointWriter::writeAll() {
  ACCEL_RT_RETURN_IF_ERROR(writePieces());
  ACCEL_RT_RETURN_IF_ERROR(meet());
  ACCEL_RT_RETURN_IF_ERROR(hashShare());
  ACCEL_RT_RETURN_IF_ERROR(meet());
  return control.rank() == 0 ? publish() : Status();
}

Status CheckpointWriter::writePieces() {
  // Full size first: a full disk is found before a byte of state is written.
  if (control.rank() == 0)
    ACCEL_RT_RETURN_IF_ERROR(openFiles(/*create=*/true));
  ACCEL_RT_RETURN_IF_ERROR(meet());
  if (control.rank() != 0)
    ACCEL_RT_RETURN_IF_ERROR(openFiles(/*create=*/false));
  for (Piece &piece : pieces) {
    piece.mover.setFile(files[piece.file].get());
    ACCEL_RT_RETURN_IF_ERROR(
        plan.background ? piece.mover.write(copy.find(piece.address), 0)
                        : piece.mover.write(piece.address, 0));
    if (control.isAborted())
      return Status::error(kAbortedMessage);
    progress.fetch_add(1);
  }
  for (size_t i = 0; i < plan.states.size(); ++i)
    if (plan.states[i].source &&
        static_cast<int64_t>(i) % control.numRanks() == control.rank())
      ACCEL_RT_RETURN_IF_ERROR(copyValue(plan.states[i]));
  // Others see on their machines what has left this one.
  for (int i = 0; i < kNumCheckpointFiles && plan.isSpread; ++i)
    ACCEL_RT_RETURN_IF_ERROR(syncFile(i));
  return Status();
}

/// What was given to the run, and is in the memory of no rank, or not as it
/// was: without it, who goes on would have the model's own again.
Status CheckpointWriter::copyValue(const Checkpoints::Saved &saved) {
  const TensorRange &from = saved.source->range;
  XXH3_64bits_reset(&hasher->state);
  for (uint64_t done = 0; done < saved.bytes;) {
    uint64_t count = std::min<uint64_t>(staging.size(), saved.bytes - done);
    ACCEL_RT_RETURN_IF_ERROR(readRange(from.fd, from.path, from.offset + done,
                                       staging.data(), count));
    XXH3_64bits_update(&hasher->state, staging.data(), count);
    ACCEL_RT_RETURN_IF_ERROR(
        writeRange(files[saved.file].get(), filePaths[saved.file],
                   saved.offset + done, staging.data(), count));
    progress.fetch_add(1, std::memory_order_relaxed);
    done += count;
  }
  return XXH3_64bits_digest(&hasher->state) == saved.check->hash
             ? Status()
             : saved.check->changed(*saved.source);
}

Status CheckpointWriter::openFiles(bool create) {
  CheckpointName name(step, /*temporary=*/true);
  int folder = plan.folder.descriptor();
  if (create && mkdirat(folder, name.text(), 0777) != 0)
    return cannotWrite(name.text());
  temporary = FileHandle(
      openat(folder, name.text(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!temporary && !create && errno == ENOENT)
    return Status::error("expected " + inQuotes(name.text()) +
                         ", which rank 0 has made, found none: all machines "
                         "must share the folder");
  if (!temporary)
    return cannotWrite(name.text());
  for (int i = 0; i < kNumCheckpointFiles; ++i) {
    files[i] = FileHandle(
        openat(temporary.get(), kCheckpointFiles[i],
               O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0666));
    if (!files[i])
      return cannotWrite(kCheckpointFiles[i]);
    if (!create)
      continue;
    errno = posix_fallocate(files[i].get(), 0,
                            static_cast<off_t>(plan.fileBytes[i]));
    if (errno)
      return cannotWrite(kCheckpointFiles[i]);
    ACCEL_RT_RETURN_IF_ERROR(writeRange(files[i].get(), filePaths[i], 0,
                                        plan.headers[i].data(),
                                        plan.headers[i].size()));
  }
  return Status();
}

/// Each state is read back whole by one of the ranks.
Status CheckpointWriter::hashShare() {
  for (size_t i = 0; i < plan.states.size(); ++i) {
    if (static_cast<int64_t>(i) % control.numRanks() != control.rank())
      continue;
    const Checkpoints::Saved &saved = plan.states[i];
    XXH3_64bits_reset(&hasher->state);
    for (uint64_t done = 0; done < saved.bytes;) {
      uint64_t count = std::min<uint64_t>(staging.size(), saved.bytes - done);
      ACCEL_RT_RETURN_IF_ERROR(
          readRange(files[saved.file].get(), filePaths[saved.file],
                    saved.offset + done, staging.data(), count));
      XXH3_64bits_update(&hasher->state, staging.data(), count);
      progress.fetch_add(1, std::memory_order_relaxed);
      done += count;
    }
    control.post(i, XXH3_64bits_digest(&hasher->state));
  }
  return Status();
}

Status CheckpointWriter::syncFile(int file) {
  int64_t bytes = static_cast<int64_t>(plan.fileBytes[file]);
  for (int64_t at = 0; at < bytes; at += kSyncBytes) {
    // A failure shows again in fsync, which is what counts.
    (void)sync_file_range(files[file].get(), at,
                          std::min(kSyncBytes, bytes - at),
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                              SYNC_FILE_RANGE_WAIT_AFTER);
    progress.fetch_add(1, std::memory_order_relaxed);
    if (control.isAborted())
      return Status::error(kAbortedMessage);
  }
  return fsync(files[file].get()) == 0 ? Status()
                                       : cannotWrite(kCheckpointFiles[file]);
}

Status CheckpointWriter::publish() {
  manifest.setStep(step);
  if (plan.hasEvaluations)
    manifest.setEvaluations(best);
  for (size_t i = 0; i < plan.states.size(); ++i)
    manifest.setHash(i, control.find(i));
  manifest.seal();
  for (int i = 0; i < kNumCheckpointFiles; ++i)
    ACCEL_RT_RETURN_IF_ERROR(syncFile(i));
  FileHandle text(openat(temporary.get(), kManifestFile,
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!text)
    return cannotWrite(kManifestFile);
  ACCEL_RT_RETURN_IF_ERROR(writeRange(text.get(), manifestPath, 0,
                                      manifest.text().data(),
                                      manifest.text().size()));
  if (fsync(text.get()) != 0)
    return cannotWrite(kManifestFile);
  ACCEL_RT_RETURN_IF_ERROR(syncFolder(temporary.get()));
  CheckpointName from(step, true), to(step, false);
  int folder = plan.folder.descriptor();
  if (renameat(folder, from.text(), folder, to.text()) != 0)
    return cannotWrite(to.text());
  ACCEL_RT_RETURN_IF_ERROR(syncFolder(folder));
  if (!plan.keep && !plan.keepsBest)
    return Status();
  kept.push_back(step); // there is room
  int64_t bestStep = plan.keepsBest ? best.step : 0;
  if (bestStep && bestStep != linkedBest &&
      std::find(kept.begin(), kept.end(), bestStep) != kept.end())
    ACCEL_RT_RETURN_IF_ERROR(linkBest(bestStep));
  return plan.keep ? removeOldest() : Status();
}

/// For people, and for --weights: the manifest says it, too, so that a file
/// system without links loses nothing.
Status CheckpointWriter::linkBest(int64_t step) {
  int folder = plan.folder.descriptor();
  CheckpointName name(step, false);
  unlinkat(folder, kBestTemporary, 0); // a killed run's
  if (symlinkat(name.text(), folder, kBestTemporary) != 0)
    return errno == EPERM || errno == EOPNOTSUPP ? Status()
                                                 : cannotWrite(kBestLink);
  if (renameat(folder, kBestTemporary, folder, kBestLink) != 0)
    return cannotWrite(kBestLink);
  linkedBest = step;
  return syncFolder(folder);
}

/// What is removed becomes a temporary first, which is no checkpoint, and which
/// the next run clears away if this one is killed meanwhile.
Status CheckpointWriter::removeOldest() {
  int64_t bestStep = plan.keepsBest ? best.step : 0;
  int folder = plan.folder.descriptor();
  auto cannotRemove = [](const CheckpointName &name) {
    int error = errno;
    return Status::error(
        "cannot remove " + inQuotes(name.text()) +
        ", which is older than those that --keep keeps: " + systemError(error));
  };
  for (size_t first = 0;
       kept.size() > first + static_cast<size_t>(plan.keep);) {
    if (kept[first] == bestStep) {
      ++first;
      continue;
    }
    CheckpointName from(kept[first], false), to(kept[first], true);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(first));
    if (renameat(folder, from.text(), folder, to.text()) != 0) {
      if (errno == ENOENT)
        continue; // somebody else has
      return cannotRemove(from);
    }
    FileHandle old(
        openat(folder, to.text(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!old)
      return cannotRemove(from);
    for (const char *file : {kManifestFile, kCheckpointFiles[kModel],
                             kCheckpointFiles[kOptimizer]})
      if (unlinkat(old.get(), file, 0) != 0 && errno != ENOENT)
        return cannotRemove(from);
    if (unlinkat(folder, to.text(), AT_REMOVEDIR) != 0)
      return cannotRemove(from);
  }
  return syncFolder(folder);
}

} // namespace accel::rt
