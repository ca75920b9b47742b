// Blocks of whole sectors, staged where memory does not begin with one. A block
// that comes short goes on where it ended; one that does not get on, or fails,
// ends the call when all that are under way have come back, since their memory
// is in use until then.

#include "Storage/StoredFile.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace accel::rt {
namespace {

/// "8192 of 12288 bytes"
std::string outOf(uint64_t found, uint64_t expected) {
  return std::to_string(found) + " of " + std::to_string(expected) + " bytes";
}

} // namespace

void StoredFile::Beside::get(char *target, uint64_t at, uint64_t bytes,
                             Status &status) const {
  if (host)
    std::memcpy(target, host + at, bytes);
  else
    status =
        memory->download(target, address + static_cast<int64_t>(at), {bytes});
}

void StoredFile::Beside::put(uint64_t at, const char *source, uint64_t bytes,
                             Status &status) const {
  if (host)
    std::memcpy(host + at, source, bytes);
  else
    status =
        memory->upload(address + static_cast<int64_t>(at), source, {bytes});
}

const StoredFile::Named *StoredFile::find(uint64_t offset) const {
  auto after = std::upper_bound(
      buffers.begin(), buffers.end(), offset,
      [](uint64_t at, const Named &each) { return at < each.offset; });
  return after == buffers.begin() || (after - 1)->end <= offset ? nullptr
                                                                : &after[-1];
}

Status StoredFile::fail(const Range &range, const Part &part,
                        const std::string &why) {
  const Named *named = find(range.offset);
  return Status::error(
      "device " + inQuotes(device) + ": cannot " +
      (range.writes ? "write " : "read ") +
      (named ? "state " + inQuotes(named->name) : "space 'nvme'") +
      (range.writes ? " to" : " from") + " the file in " + inQuotes(path) +
      " (offload.nvme_path): expected " +
      std::to_string(part.end - part.begin) + " bytes at byte " +
      std::to_string(part.begin) + ", found " +
      outOf(part.done, part.end - part.begin) + (why.empty() ? "" : ": ") +
      why);
}

Status StoredFile::move(const Range &range) {
  if (range.bytes == 0)
    return Status();
  std::lock_guard<std::mutex> lock(busy);
  return run(range);
}

Status StoredFile::run(const Range &range) {
  uint64_t at = range.offset / sector * sector,
           end = roundUp(range.offset + range.bytes, sector);
  Status failure;
  size_t underWay = 0, next = 0; // parts beyond `next` are free
  auto start = [&](size_t number) {
    Part &part = parts[number];
    part = Part();
    part.begin = at;
    part.end = at = std::min(at + blockBytes, end);
    failure = begin(range, number);
    underWay += failure.ok();
  };
  while (at < end && next < depth && failure.ok())
    start(next++);
  while (underWay > 0) {
    size_t number;
    int64_t result;
    // Without the ring nobody knows what is still in use.
    ACCEL_RT_RETURN_IF_ERROR(queue->next(number, result));
    bool again = false;
    Status status = finish(range, number, result, again);
    if (failure.ok())
      failure = std::move(status);
    if (again && failure.ok()) {
      const Part &part = parts[number];
      failure = queue->begin({part.begin + part.done,
                              part.end - part.begin - part.done,
                              part.memory + part.done},
                             range.writes, number);
      if (failure.ok())
        continue;
    }
    --underWay;
    if (at < end && failure.ok())
      start(number);
  }
  return failure;
}

/// Begins a part: the host's own memory where it and the file have sectors in
/// step, else a staged block.
Status StoredFile::begin(const Range &range, size_t number) {
  Part &part = parts[number];
  uint64_t low = std::max(part.begin, range.offset),
           high = std::min(part.end, range.offset + range.bytes);
  char *host =
      range.beside->host ? range.beside->host + (low - range.offset) : nullptr;
  if (host && low == part.begin && high == part.end &&
      reinterpret_cast<uintptr_t>(host) % sector == 0) {
    part.memory = host;
  } else {
    part.memory = staged + number * blockBytes;
    if (range.writes) {
      ACCEL_RT_RETURN_IF_ERROR(fillEdges(range, part));
      Status status;
      range.beside->get(part.memory + (low - part.begin), low - range.offset,
                        high - low, status);
      ACCEL_RT_RETURN_IF_ERROR(status);
    }
  }
  return queue->begin({part.begin, part.end - part.begin, part.memory},
                      range.writes, number);
}

/// What was moved of a part; `again`: there is more of it.
Status StoredFile::finish(const Range &range, size_t number, int64_t result,
                          bool &again) {
  Part &part = parts[number];
  uint64_t wanted = part.end - part.begin;
  if (result == -EINTR || result == -EAGAIN) {
    again = ++part.tries < kMostTries;
    return again ? Status()
                 : fail(range, part, systemError(static_cast<int>(-result)));
  }
  if (result < 0)
    return fail(range, part, systemError(static_cast<int>(-result)));
  // A sector that came in part comes again.
  uint64_t moved = std::min(part.done + static_cast<uint64_t>(result), wanted);
  uint64_t done = moved == wanted ? wanted : moved / sector * sector;
  if (done == part.done && ++part.tries >= 2) {
    part.done = moved;
    return fail(range, part,
                range.writes ? "the device takes no more"
                             : "the device gives no more");
  }
  if (done > part.done)
    part.tries = 0;
  part.done = done;
  if (progress)
    progress->fetch_add(1, std::memory_order_relaxed);
  if (done < wanted) {
    again = true;
    return Status();
  }
  Status status;
  uint64_t low = std::max(part.begin, range.offset),
           high = std::min(part.end, range.offset + range.bytes);
  if (!range.writes && part.memory == staged + number * blockBytes)
    range.beside->put(low - range.offset, part.memory + (low - part.begin),
                      high - low, status);
  if (status.ok() && range.counter)
    range.counter->fetch_add(high - low, std::memory_order_relaxed);
  return status;
}

/// What of a part's first and last sector is another's stays as it is. Behind a
/// buffer's end there is nobody's.
Status StoredFile::fillEdges(const Range &range, const Part &part) {
  uint64_t end = range.offset + range.bytes;
  if (range.offset > part.begin)
    ACCEL_RT_RETURN_IF_ERROR(readSector(part.begin, part.memory));
  if (end >= part.end)
    return Status();
  uint64_t last = part.end - kSector;
  char *target = part.memory + (last - part.begin);
  const Named *named = find(end - 1);
  if (named && named->end == end && range.offset <= last) {
    std::memset(target, 0, kSector);
    return Status();
  }
  return last == part.begin && range.offset > part.begin
             ? Status()
             : readSector(last, target);
}

Status StoredFile::readSector(uint64_t at, char *target) {
  ssize_t found;
  do
    found = pread(fd, target, kSector, static_cast<off_t>(at));
  while (found < 0 && errno == EINTR);
  if (found == kStorageSector)
    return Status();
  Range range{false, at, kSector};
  Part part;
  part.begin = at;
  part.end = at + kSector;
  part.done = found > 0 ? static_cast<uint64_t>(found) : 0;
  return fail(range, part, found < 0 ? systemError(errno) : "");
}

} // namespace accel::rt
