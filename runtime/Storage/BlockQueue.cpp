// liburing's calls, and the two of POSIX.

#include "Storage/BlockQueue.h"

#include "Base/SystemError.h"

#include <cerrno>
#include <liburing.h>
#include <unistd.h>
#include <vector>

namespace accel::rt {
namespace {

class RingQueue : public BlockQueue {
public:
  explicit RingQueue(int file) : file(file) {}
  ~RingQueue() override {
    if (isMade)
      io_uring_queue_exit(&ring);
  }
  Status make(size_t depth) {
    int error = io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0);
    isMade = error == 0;
    return isMade ? Status() : Status::error(systemError(-error));
  }

  Status begin(const Block &block, bool writes, size_t number) override {
    io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (!entry)
      return Status::error("io_uring has no entry left");
    auto bytes = static_cast<unsigned>(block.bytes);
    if (writes)
      io_uring_prep_write(entry, file, block.memory, bytes, block.offset);
    else
      io_uring_prep_read(entry, file, block.memory, bytes, block.offset);
    io_uring_sqe_set_data64(entry, number);
    int taken;
    do
      taken = io_uring_submit(&ring);
    while (taken == -EINTR || taken == -EAGAIN);
    return taken == 1 ? Status()
                      : Status::error("io_uring takes no block: " +
                                      systemError(taken < 0 ? -taken : EIO));
  }

  Status next(size_t &number, int64_t &result) override {
    io_uring_cqe *done = nullptr;
    int error;
    do
      error = io_uring_wait_cqe_nr(&ring, &done, 1);
    while (error == -EINTR);
    if (error)
      return Status::error("io_uring tells of no block: " +
                           systemError(-error));
    number = io_uring_cqe_get_data64(done);
    result = done->res;
    io_uring_cqe_seen(&ring, done);
    return Status();
  }

private:
  int file;
  bool isMade = false;
  io_uring ring{};
};

class PlainQueue : public BlockQueue {
public:
  PlainQueue(int file, size_t depth) : file(file) { done.reserve(depth); }

  Status begin(const Block &block, bool writes, size_t number) override {
    auto offset = static_cast<off_t>(block.offset);
    ssize_t moved = writes ? pwrite(file, block.memory, block.bytes, offset)
                           : pread(file, block.memory, block.bytes, offset);
    done.push_back({number, moved < 0 ? -errno : moved});
    return Status();
  }
  Status next(size_t &number, int64_t &result) override {
    if (done.empty())
      return Status::error("no block is under way");
    number = done.back().number;
    result = done.back().result;
    done.pop_back();
    return Status();
  }

private:
  struct Done {
    size_t number;
    int64_t result;
  };
  int file;
  std::vector<Done> done;
};

} // namespace

Status BlockQueue::makeRing(int file, size_t depth,
                            std::unique_ptr<BlockQueue> &queue) {
  auto made = std::make_unique<RingQueue>(file);
  ACCEL_RT_RETURN_IF_ERROR(made->make(depth));
  queue = std::move(made);
  return Status();
}

std::unique_ptr<BlockQueue> BlockQueue::makePlain(int file, size_t depth) {
  return std::make_unique<PlainQueue>(file, depth);
}

} // namespace accel::rt
