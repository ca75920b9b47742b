// Spans without overlaps, copied by the rank's threads.

#include "State/StateCopy.h"

#include "Base/Populate.h"
#include "Base/SystemError.h"
#include "Base/ThreadPool.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace accel::rt {
namespace {

constexpr uint64_t kChunk = uint64_t(4) << 20;
/// The copy of a span begins with a line of the cache.
constexpr uint64_t kLine = 64;

} // namespace

StateCopy::~StateCopy() {
  if (room)
    munmap(room, total);
}

void StateCopy::add(Address start, const View &view) {
  int64_t last = 0;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 0)
      return;
    last += (view.shape[d] - 1) * view.strides[d];
  }
  spans.push_back(
      {start, static_cast<uint64_t>((last + 1) * dtypeBytes(view.dtype))});
}

Status StateCopy::allocate(std::atomic<uint64_t> *counter) {
  std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) {
    return a.start.value < b.start.value;
  });
  std::vector<Span> apart;
  for (const Span &span : spans) {
    Span *before = apart.empty() ? nullptr : &apart.back();
    if (before && span.start.value < before->start.value + before->bytes)
      before->bytes = std::max(before->bytes, span.start.value + span.bytes -
                                                  before->start.value);
    else
      apart.push_back(span);
  }
  spans = std::move(apart);
  for (Span &span : spans) {
    span.at = total;
    total += (span.bytes + kLine - 1) / kLine * kLine;
  }
  if (total == 0)
    return Status();
  void *found = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED)
    return Status::error("cannot set aside " + std::to_string(total) +
                         " bytes for a copy of the states that checkpoints "
                         "are written from: " +
                         systemError(errno) +
                         "; --checkpoint-sync does without it");
  room = static_cast<char *>(found);
  for (const Span &span : spans)
    for (uint64_t done = 0; done < span.bytes; done += kChunk)
      chunks.push_back({span.start + static_cast<int64_t>(done),
                        std::min(kChunk, span.bytes - done), span.at + done});
  return populate(room, total, counter);
}

Status StateCopy::copy(Memory &memory, ThreadPool &pool) {
  for (const Span &span : chunks)
    if (!memory.isHostMemory(span.start))
      ACCEL_RT_RETURN_IF_ERROR(
          memory.download(room + span.at, span.start, {span.bytes}));
  pool.parallelFor(static_cast<int64_t>(chunks.size()),
                   [&](int64_t chunk, int) {
                     const Span &span = chunks[static_cast<size_t>(chunk)];
                     if (const char *source = memory.find(span.start))
                       std::memcpy(room + span.at, source, span.bytes);
                   });
  return Status();
}

const char *StateCopy::find(Address address) const {
  auto after = std::upper_bound(spans.begin(), spans.end(), address.value,
                                [](uint64_t value, const Span &span) {
                                  return value < span.start.value;
                                });
  return after == spans.begin()
             ? nullptr
             : room + (after - 1)->at + (address - (after - 1)->start);
}

} // namespace accel::rt
