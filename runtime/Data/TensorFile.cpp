// Pieces are moved in runs that are contiguous in the file; where they are not
// so in memory (transposed weights, split rows), through a small buffer.

#include "Data/TensorFile.h"

#include "Base/SystemError.h"
#include "Data/ConvertElements.h"
#include "Data/RangeDigest.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {
/// The largest buffer between a file and a scattered view; what is read where
/// it stays is read in such steps, too: each is hashed before it leaves the
/// cache.
constexpr int64_t kBounceBytes = 1 << 20;

/// Where the host reaches an address.
char *hostPointer(Address address) {
  return reinterpret_cast<char *>(address.value);
}

} // namespace

FileHandle::~FileHandle() {
  if (fd >= 0)
    close(fd);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string typeText(DType dtype, const std::vector<int64_t> &shape) {
  return std::string(dtypeName(dtype)) + " " + shapeText(shape);
}

FileHandle openForReading(const std::string &path) {
  return FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

Status sizeOfFile(int fd, const std::string &path, uint64_t &bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return Status::error("cannot use " + inQuotes(path) + ": " +
                         systemError(errno));
  if (!S_ISREG(info.st_mode))
    return Status::error("cannot use " + inQuotes(path) +
                         ": expected a regular file");
  bytes = static_cast<uint64_t>(info.st_size);
  return Status();
}

Status readRange(int fd, const std::string &path, uint64_t offset, void *target,
                 uint64_t bytes) {
  auto *next = static_cast<char *>(target);
  while (bytes > 0) {
    ssize_t got = pread(fd, next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::error("cannot read " + inQuotes(path) + ": " +
                           systemError(errno));
    if (got == 0)
      return Status::error("expected " + std::to_string(bytes) +
                           " more bytes at byte " + std::to_string(offset) +
                           " of " + inQuotes(path) + ", found its end");
    next += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return Status();
}

Status writeRange(int fd, const std::string &path, uint64_t offset,
                  const void *source, uint64_t bytes) {
  auto *next = static_cast<const char *>(source);
  while (bytes > 0) {
    ssize_t put = pwrite(fd, next, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return Status::error("cannot write " + inQuotes(path) + ": " +
                           systemError(put < 0 ? errno : ENOSPC));
    next += put;
    offset += static_cast<uint64_t>(put);
    bytes -= static_cast<uint64_t>(put);
  }
  return Status();
}

PieceMover::PieceMover(const TensorRange &range, const Part &part,
                       const View &view, const Coordinates &coordinates,
                       Memory *memory, std::vector<char> *room)
    : memory(memory), fd(range.fd), path(range.path), fill(range.fill),
      inFile(range.dtype), inMemory(view.dtype),
      elementBytes(dtypeBytes(view.dtype)), fileBytes(dtypeBytes(range.dtype)),
      origin(range.offset), room(room) {
  size_t rank = view.shape.size();
  std::vector<int64_t> size = view.shape,
                       first = pieceStart(part, view.shape, coordinates, 0),
                       second = pieceStart(part, view.shape, coordinates, 1);
  int64_t offset = 0, step = 0;
  for (size_t d = 0; d < rank; ++d) {
    offset += first[d] * range.strides[d];
    step += (second[d] - first[d]) * range.strides[d];
    if (range.shape[d] != part.shape[d])
      size[d] = std::clamp<int64_t>(range.shape[d] - first[d], 0, size[d]);
  }
  isPadded = size != view.shape;
  all = PairLayout(view.shape, view.strides, view.strides);
  microBatchBytes = step * fileBytes;
  if (part.interleaved) {
    auto dim = static_cast<size_t>(part.interleaved->dim);
    int64_t whole = view.shape[dim];
    const auto &[at, sizes, by, times] = *part.interleaved;
    offset -= first[dim] * range.strides[dim];
    // Each `by`-th element, which is a stride in the file.
    if (sizes == std::vector<int64_t>{by} && times % whole == 0) {
      TensorRange apart = range;
      apart.strides[dim] *= by;
      addBlock(apart, view, size,
               offset + (first[dim] % times * by + first[dim] / times) *
                            range.strides[dim],
               0);
    } else {
      for (const PieceRun &held : interleavedRuns(*part.interleaved, whole)) {
        if (held.piece * whole != first[dim])
          continue;
        size[dim] = held.count;
        addBlock(range, view, size, offset + held.inFile * range.strides[dim],
                 held.inPiece * view.strides[dim]);
      }
    }
  } else {
    addBlock(range, view, size, offset, 0);
  }
  int64_t bytes = 0; // that runs need to be put together
  for (const Block &block : blocks)
    if (!block.direct)
      bytes = std::max(
          bytes, std::min(kBounceBytes, block.runElements *
                                            std::max(elementBytes, fileBytes)));
  if (fill.empty() && !room)
    bounce.resize(static_cast<size_t>(bytes));
}

void PieceMover::addBlock(const TensorRange &range, const View &view,
                          const std::vector<int64_t> &size, int64_t inFile,
                          int64_t inView) {
  Block block;
  block.start = range.offset + static_cast<uint64_t>(inFile * fileBytes);
  block.inView = inView;
  size_t rank = size.size();
  // Dimensions in the order of the file, those of one element last.
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    auto key = [&](size_t d) {
      return size[d] == 1 ? int64_t(0) : range.strides[d];
    };
    return key(a) > key(b);
  });
  std::vector<int64_t> shape, file, strides;
  for (size_t d : order) {
    shape.push_back(size[d]);
    file.push_back(range.strides[d]);
    strides.push_back(view.strides[d]);
  }
  // The innermost dimensions without gaps in the file make a run.
  size_t split = rank;
  while (split > 0 &&
         (shape[split - 1] == 1 || file[split - 1] == block.runElements))
    block.runElements *= shape[--split];
  auto slice = [&](const std::vector<int64_t> &values, bool inner) {
    return std::vector<int64_t>(values.begin() + (inner ? split : 0),
                                inner ? values.end() : values.begin() + split);
  };
  block.outer = PairLayout(slice(shape, false), slice(file, false),
                           slice(strides, false));
  block.run =
      PairLayout(slice(shape, true), slice(file, true), slice(strides, true));
  // Widening works in place: the elements arrive at the start of their room.
  block.direct = isReached() && fileBytes <= elementBytes &&
                 block.run.contiguousRuns() &&
                 block.run.runLength() == block.run.elements();
  blocks.push_back(block);
}

template <bool Writes>
Status PieceMover::move(Address view, int64_t microBatch,
                        std::atomic<uint64_t> *counter, RangeDigest *digest) {
  if constexpr (!Writes)
    if (isPadded)
      ACCEL_RT_RETURN_IF_ERROR(clear(view));
  for (const Block &block : blocks) {
    if (block.outer.elements() == 0 || block.runElements == 0)
      continue;
    ACCEL_RT_RETURN_IF_ERROR(
        fill.empty()
            ? moveBlock<Writes>(block, view, microBatch, counter, digest)
            : fillBlock(block, view));
  }
  return Status();
}

template <bool Writes>
Status PieceMover::moveBlock(const Block &block, Address view,
                             int64_t microBatch, std::atomic<uint64_t> *counter,
                             RangeDigest *digest) {
  const auto &[start, inView, outer, runElements, run, reached] = block;
  // What is rounded on its way to a file stays as it is where it lies.
  bool direct = reached && !(Writes && inFile != inMemory);
  uint64_t base =
      start + behind + static_cast<uint64_t>(microBatch * microBatchBytes);
  std::vector<char> &staging = room ? *room : bounce;
  int64_t step =
      (direct ? kBounceBytes : static_cast<int64_t>(staging.size())) /
      std::max(elementBytes, fileBytes);
  Status status;
  auto moveRun = [&, runElements = runElements,
                  &run = run](int64_t fileOffset, int64_t memoryOffset) {
    for (int64_t begin = 0; begin < runElements && status.ok(); begin += step) {
      int64_t end = std::min(begin + step, runElements);
      uint64_t at =
          base + static_cast<uint64_t>((fileOffset + begin) * fileBytes);
      uint64_t bytes = static_cast<uint64_t>((end - begin) * fileBytes);
      char *buffer =
          direct ? hostPointer(view + (memoryOffset + begin) * elementBytes)
                 : staging.data();
      // In the buffer, elements follow each other as they do in the file.
      auto shift = [&](bool gather) {
        run.forRange(begin, end,
                     [&](int64_t from, int64_t to, int64_t fromStride,
                         int64_t toStride, int64_t count) {
                       if (!status.ok())
                         return;
                       char *a = buffer + (from - begin) * elementBytes;
                       status = gather ? get(a, fromStride, view,
                                             memoryOffset + to, toStride, count)
                                       : put(view, memoryOffset + to, toStride,
                                             a, fromStride, count);
                     });
      };
      if constexpr (Writes) {
        if (!direct)
          shift(/*gather=*/true);
        if (status.ok()) {
          roundElements(inMemory, inFile, buffer, end - begin);
          status = writeRange(fd, path, at, buffer, bytes);
        }
      } else {
        status = readRange(fd, path, at, buffer, bytes);
        if (digest && status.ok())
          digest->add(at - origin, buffer, bytes);
        if (inFile != inMemory && status.ok())
          status = convertElements(inFile, inMemory, buffer, end - begin);
        if (!direct && status.ok())
          shift(/*gather=*/false);
      }
      if (counter)
        counter->fetch_add(bytes, std::memory_order_relaxed);
    }
  };
  outer.forRange(
      0, outer.elements(),
      [&, inView = inView](int64_t file, int64_t memory, int64_t fileStride,
                           int64_t memoryStride, int64_t count) {
        for (int64_t i = 0; i < count && status.ok(); ++i)
          moveRun(file + i * fileStride, inView + memory + i * memoryStride);
      });
  return status;
}

Status PieceMover::put(Address view, int64_t at, int64_t stride,
                       const void *host, int64_t hostStride,
                       int64_t count) const {
  Address target = view + at * elementBytes;
  if (!isReached())
    return memory->upload(
        target, host,
        Rows::ofElements(elementBytes, count, stride, hostStride));
  copyStrided(elementBytes, hostPointer(target), stride, host, hostStride,
              count);
  return Status();
}

Status PieceMover::get(void *host, int64_t hostStride, Address view, int64_t at,
                       int64_t stride, int64_t count) const {
  Address source = view + at * elementBytes;
  if (!isReached())
    return memory->download(
        host, source,
        Rows::ofElements(elementBytes, count, stride, hostStride));
  copyStrided(elementBytes, host, hostStride, hostPointer(source), stride,
              count);
  return Status();
}

Status PieceMover::fillBlock(const Block &block, Address view) const {
  Status status;
  auto fillRun = [&](int64_t memoryOffset) {
    block.run.forRange(
        0, block.runElements,
        [&](int64_t, int64_t to, int64_t, int64_t stride, int64_t count) {
          if (status.ok())
            status =
                put(view, memoryOffset + to, stride, fill.data(), 0, count);
        });
  };
  block.outer.forRange(0, block.outer.elements(),
                       [&](int64_t, int64_t memory, int64_t,
                           int64_t memoryStride, int64_t count) {
                         for (int64_t i = 0; i < count; ++i)
                           fillRun(block.inView + memory + i * memoryStride);
                       });
  return status;
}

Status PieceMover::clear(Address view) const {
  static constexpr char kZeros[8] = {};
  Status status;
  all.forRange(
      0, all.elements(),
      [&](int64_t to, int64_t, int64_t stride, int64_t, int64_t count) {
        if (status.ok())
          status = put(view, to, stride, kZeros, 0, count);
      });
  return status;
}

Status PieceMover::read(Address view, int64_t microBatch,
                        std::atomic<uint64_t> *counter, RangeDigest *digest) {
  return move<false>(view, microBatch, counter, digest);
}

Status PieceMover::write(Address view, int64_t microBatch) {
  if (inFile != inMemory && !room && bounce.empty())
    bounce.resize(kBounceBytes);
  return move<true>(view, microBatch, nullptr, nullptr);
}

Status PieceMover::readBehind(uint64_t bytes, Address view,
                              int64_t microBatch) {
  behind = bytes;
  Status status = read(view, microBatch);
  behind = 0;
  return status;
}

Status PieceMover::read(void *view, int64_t microBatch,
                        std::atomic<uint64_t> *counter, RangeDigest *digest) {
  return read(Address{reinterpret_cast<uint64_t>(view)}, microBatch, counter,
              digest);
}

Status PieceMover::write(const void *view, int64_t microBatch) {
  return write(Address{reinterpret_cast<uint64_t>(view)}, microBatch);
}

} // namespace accel::rt
