// Laying checkpoints out, and the protocol of saving one.

#include "State/Checkpoint.h"

#include "Base/SystemError.h"
#include "Control/ControlPlane.h"
#include "Data/Safetensors.h"
#include "Execute/Executor.h"
#include "State/Resume.h"
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

/// Between a file and scattered views, and of one read for hashing.
constexpr size_t kStagingBytes = 1 << 20;
/// Written back to storage at a time: each is a sign of life.
constexpr int64_t kSyncBytes = int64_t(64) << 20;

int fileOf(const StatePlan &state) {
  return state.role == "parameter" || state.role == "buffer" ? kModel
                                                             : kOptimizer;
}

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

Status sameFolder(const std::string &a, const std::string &b, bool &same) {
  struct stat first, second;
  for (auto [path, info] : {std::pair(&a, &first), std::pair(&b, &second)})
    if (stat(path->c_str(), info) != 0)
      return Status::error("cannot look at the checkpoint " + inQuotes(*path) +
                           ": " + systemError(errno));
  same = first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  return Status();
}

} // namespace

//===----------------------------------------------------------------------===//
// The parent
//===----------------------------------------------------------------------===//

Status Checkpoints::open(const ExecutableFile &file, const RunOptions &options,
                         const Weights &weights, const Resume *resumed,
                         const DataCursor *cursor, Writers writers) {
  const Executable &executable = file.plan();
  every = options.saveEvery;
  keep = options.keep;
  keepsBest = !options.keepBest.empty();
  hasEvaluations = keepsBest || options.earlyStoppingPatience;
  isSpread = writers != Writers::Here;
  resumedPath = resumed ? resumed->path() : "";
  ACCEL_RT_RETURN_IF_ERROR(writers == Writers::Joined
                               ? folder.join(options.checkpoint)
                               : folder.open(options.checkpoint));
  // Checkpoints of two runs in one folder would be one history that neither
  // had; and none is ever written over.
  std::vector<FoundCheckpoint> found;
  ACCEL_RT_RETURN_IF_ERROR(listCheckpoints(folder.path(), found));
  if (!found.empty() && writers != Writers::Joined) {
    const std::string &newest = found.back().path;
    if (!resumed)
      return Status::error("expected a folder without checkpoints, found " +
                           inQuotes(newest) + ": go on from it with --resume " +
                           folder.path() + ", or give another --checkpoint");
    bool same = false;
    ACCEL_RT_RETURN_IF_ERROR(sameFolder(newest, resumed->path(), same));
    if (!same)
      return Status::error("expected no checkpoint in " +
                           inQuotes(folder.path()) +
                           " that is newer than, or no part of the run of, " +
                           inQuotes(resumed->path()) + ", found " +
                           inQuotes(newest) + ": give another --checkpoint");
  }

  for (const FoundCheckpoint &each : found)
    if (each.isWhole)
      before.push_back(each.step);

  Manifest contents;
  std::vector<SafetensorsEntry> entries[kNumCheckpointFiles];
  HeldStates held;
  for (const Program &program : executable.programs)
    held.merge(findHeld(program));
  std::unordered_map<std::string_view, size_t> numbers; // in `states`
  for (size_t i = 0; i < executable.states.size(); ++i) {
    const StatePlan &state = executable.states[i];
    if (state.role == "accumulator")
      continue; // zero between steps
    bool isHeld = held.count(state.keptAs());
    if (!isHeld && state.frozen && weights.checkOf(i).isFirst)
      continue; // it stays what the model's file says
    if (!isHeld && !state.frozen)
      return Status::error("expected a buffer that keeps state " +
                           inQuotes(state.name) +
                           ", found none: its value cannot be saved");
    int index = fileOf(state);
    const OpenTensor *source = isHeld ? nullptr : &weights.values()[i];
    entries[index].push_back({state.name,
                              source ? source->range.dtype : state.dtype,
                              state.valueShape()});
    numbers.emplace(state.name, states.size());
    states.push_back({&state, index, 0, 0, source, &weights.checkOf(i)});
    contents.states.push_back({state.name, state.role, state.aliases, index});
  }
  for (int i = 0; i < kNumCheckpointFiles; ++i) {
    headers[i] = safetensorsHeader(entries[i]);
    contents.headerHashes[i] = hashBytes(headers[i].data(), headers[i].size());
    fileBytes[i] = headers[i].size();
    for (const SafetensorsEntry &entry : entries[i]) {
      fileBytes[i] += entry.bytes;
      Saved &saved = states[numbers[entry.name]];
      saved.offset = headers[i].size() + entry.begin;
      saved.bytes = entry.bytes;
    }
  }
  contents.seed = executable.seed;
  if (cursor)
    contents.data = *cursor;
  if (hasEvaluations)
    contents.evaluations.emplace();
  contents.mesh = executable.mesh;
  contents.microBatches = executable.microBatches;
  manifest.prepare(contents);
  return Status();
}

std::string Checkpoints::whereIsTheLast() const {
  // A rank that was killed may have named one without having said so.
  std::string now = folder.whereNow();
  if (now.empty())
    return "; the folder " + inQuotes(folder.path()) +
           " of the checkpoints is gone";
  std::vector<FoundCheckpoint> found;
  if (Status status = listCheckpoints(now, found); !status.ok())
    return "; " + status.message() + ", so the last checkpoint is not known";
  std::string last = resumedPath;
  for (const FoundCheckpoint &each : found)
    if (each.isWhole)
      last = each.path;
  return last.empty() ? "; no checkpoint was saved"
                      : "; the last checkpoint is " + inQuotes(last);
}

//===----------------------------------------------------------------------===//
// The ranks
//===----------------------------------------------------------------------===//

struct CheckpointWriter::Hasher {
  XXH3_state_t state;
};

CheckpointWriter::CheckpointWriter(const Checkpoints &checkpoints,
                                   const Program &program,
                                   const Coordinates &coordinates,
                                   const Executor &executor,
                                   ControlPlane &control)
    : plan(checkpoints), control(control), progress(control.self().progress),
      staging(kStagingBytes), hasher(std::make_unique<Hasher>()),
      manifest(checkpoints.manifest), manifestPath(kManifestFile) {
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
    pieces.push_back({saved.file,
                      PieceMover(range, kept->part, kept->view, coordinates,
                                 &executor.memory(), &staging),
                      executor.address(kept->view)});
  }
}

CheckpointWriter::~CheckpointWriter() = default;

Status CheckpointWriter::save(int64_t step, const BestEvaluation &best) {
  RankControl &self = control.self();
  self.command[0] = RankControl::kSaving;
  Status status = writeAll(step, best);
  for (FileHandle &file : files)
    file = FileHandle();
  temporary = FileHandle();
  if (!status.ok() && status.message() != kAbortedMessage)
    return Status::error("cannot save the checkpoint " +
                         inQuotes(plan.folder.path() + "/" +
                                  CheckpointName(step, false).text()) +
                         ": " + status.message());
  self.command[0] = RankControl::kBetweenRuns;
  return status;
}

Status CheckpointWriter::writeAll(int64_t step, const BestEvaluation &best) {
  ACCEL_RT_RETURN_IF_ERROR(writePieces(step));
  ACCEL_RT_RETURN_IF_ERROR(control.barrier());
  ACCEL_RT_RETURN_IF_ERROR(hashShare());
  ACCEL_RT_RETURN_IF_ERROR(control.barrier());
  if (control.rank() != 0)
    return Status();
  return publish(step, best);
}

Status CheckpointWriter::writePieces(int64_t step) {
  // Full size first: a full disk is found before a byte of state is written.
  if (control.rank() == 0)
    ACCEL_RT_RETURN_IF_ERROR(openFiles(step, /*create=*/true));
  ACCEL_RT_RETURN_IF_ERROR(control.barrier());
  if (control.rank() != 0)
    ACCEL_RT_RETURN_IF_ERROR(openFiles(step, /*create=*/false));
  for (Piece &piece : pieces) {
    piece.mover.setFile(files[piece.file].get());
    ACCEL_RT_RETURN_IF_ERROR(piece.mover.write(piece.address, 0));
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

Status CheckpointWriter::openFiles(int64_t step, bool create) {
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

Status CheckpointWriter::publish(int64_t step, const BestEvaluation &best) {
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
  return plan.keep ? removeOldest(bestStep) : Status();
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
Status CheckpointWriter::removeOldest(int64_t best) {
  int folder = plan.folder.descriptor();
  auto cannotRemove = [](const CheckpointName &name) {
    int error = errno;
    return Status::error(
        "cannot remove " + inQuotes(name.text()) +
        ", which is older than those that --keep keeps: " + systemError(error));
  };
  for (size_t first = 0;
       kept.size() > first + static_cast<size_t>(plan.keep);) {
    if (kept[first] == best) {
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
