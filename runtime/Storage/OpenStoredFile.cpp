// Making the file, with room for all of it, and finding out how it can be
// moved.

#include "Base/SystemError.h"
#include "Base/UniqueName.h"
#include "Storage/StoredFile.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

namespace accel::rt {

Status StoredFile::open(const ArenaPlan &arena, std::vector<Named> buffers,
                        std::string device, std::atomic<uint64_t> *progress,
                        std::unique_ptr<StoredFile> &file) {
  std::unique_ptr<StoredFile> made(new StoredFile);
  made->path = arena.storage->path;
  made->device = std::move(device);
  made->buffers = std::move(buffers);
  std::sort(made->buffers.begin(), made->buffers.end(),
            [](const Named &a, const Named &b) { return a.offset < b.offset; });
  made->blockBytes = static_cast<uint64_t>(arena.storage->blockBytes);
  made->depth = static_cast<size_t>(arena.storage->queueDepth);
  made->progress = progress;
  made->parts.resize(made->depth);
  ACCEL_RT_RETURN_IF_ERROR(made->create(
      std::max(roundUp(static_cast<uint64_t>(arena.bytes), kSector), kSector)));
  uint64_t room = made->depth * made->blockBytes;
  void *found = mmap(nullptr, room + kSector, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (found == MAP_FAILED)
    return Status::error("cannot set aside the " + std::to_string(room) +
                         " bytes by way of which space 'nvme' is moved "
                         "(aio.block_size, aio.queue_depth): " +
                         systemError(errno));
  made->staged = static_cast<char *>(found);
  ACCEL_RT_RETURN_IF_ERROR(made->chooseQueue());
  file = std::move(made);
  return Status();
}

StoredFile::~StoredFile() {
  queue.reset();
  if (staged)
    munmap(staged, depth * blockBytes + kSector);
  if (fd >= 0)
    close(fd);
}

/// Room for all of it now: a disk that is full ends a run before its first
/// step.
Status StoredFile::create(uint64_t bytes) {
  std::string what = "device " + inQuotes(device) + ": ";
  fd = ::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  int error = fd < 0 ? errno : 0;
  // Some file systems have no files without a name: there it loses it.
  if (error == EOPNOTSUPP || error == EISDIR || error == EINVAL) {
    std::string name, folder = path + "/";
    error = makeUnique(
        folder, folder + "acc-run.nvme", name, [&](const std::string &each) {
          fd =
              ::open(each.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
          return fd >= 0;
        });
    if (!error && unlink(name.c_str()) != 0)
      return Status::error(what + "cannot take its name from " +
                           inQuotes(name) + ": " + systemError(errno));
  }
  if (error)
    return Status::error(what + "cannot make the file of space 'nvme' in " +
                         inQuotes(path) +
                         " (offload.nvme_path): " + systemError(error));
  do
    error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  while (error == EINTR);
  if (!error)
    return Status();
  struct statvfs disk;
  std::string left;
  if (fstatvfs(fd, &disk) == 0)
    left =
        ", " +
        std::to_string(static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize) +
        " are free";
  return Status::error(what + "expected room for the " + std::to_string(bytes) +
                       " bytes of space 'nvme' in " + inQuotes(path) +
                       " (offload.nvme_path)" + left + ": " +
                       systemError(error));
}

/// The first of the ways by which a sector can be read.
Status StoredFile::chooseQueue() {
  int flags = fcntl(fd, F_GETFL);
  bool isDirect = fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
  if (!isDirect)
    reason = "the file system has no O_DIRECT (" + systemError(errno) +
             "): what is read and written goes through the cache of pages";
  auto note = [&](const std::string &why) {
    reason += (reason.empty() ? "" : "; ") + why;
  };
  Status ring = BlockQueue::makeRing(fd, depth, queue);
  if (!ring.ok())
    note("the kernel grants no io_uring (" + ring.message() +
         "): one block is moved at a time");
  int64_t result = 0;
  while (true) {
    if (!queue)
      queue = BlockQueue::makePlain(fd, depth);
    ACCEL_RT_RETURN_IF_ERROR(probe(result));
    if (result == kStorageSector)
      break;
    bool isRefused = result == -EINVAL || result == -EOPNOTSUPP;
    if (isRefused && isDirect) {
      isDirect = false;
      (void)fcntl(fd, F_SETFL, flags);
      note("the file system reads nothing past the cache of pages (O_DIRECT: " +
           systemError(static_cast<int>(-result)) + ")");
    } else if (isRefused && ring.ok()) {
      ring = Status::error("");
      queue.reset();
      note("io_uring reads no file here (" +
           systemError(static_cast<int>(-result)) +
           "): one block is moved at a time");
    } else {
      Range range{false, 0, kSector};
      Part part;
      part.end = kSector;
      part.done = result > 0 ? static_cast<uint64_t>(result) : 0;
      return fail(range, part,
                  result < 0 ? systemError(static_cast<int>(-result)) : "");
    }
  }
  sector = isDirect ? kSector : 1;
  return Status();
}

/// What a read of the first sector comes to; as anywhere, one that was
/// interrupted or came short is made again.
Status StoredFile::probe(int64_t &result) {
  for (int tries = 0, shorts = 0; tries < kMostTries && shorts < 2; ++tries) {
    size_t number;
    ACCEL_RT_RETURN_IF_ERROR(
        queue->begin({0, kSector, staged}, /*writes=*/false, 0));
    ACCEL_RT_RETURN_IF_ERROR(queue->next(number, result));
    if (result == kStorageSector ||
        (result < 0 && result != -EINTR && result != -EAGAIN))
      break;
    shorts += result >= 0;
  }
  return Status();
}

} // namespace accel::rt
