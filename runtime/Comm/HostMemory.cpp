// Lays the shared memory out and maps it.

#include "Comm/HostMemory.h"

#include "Base/SystemError.h"

#include <cerrno>
#include <new>
#include <sys/mman.h>

namespace accel::rt {
namespace {

constexpr uint64_t kPage = 4096;

/// Hands out consecutive pieces, each starting on a page.
struct Cursor {
  uint64_t bytes = 0;
  uint64_t take(uint64_t size) {
    uint64_t at = bytes;
    bytes = (bytes + size + kPage - 1) / kPage * kPage;
    return at;
  }
};

bool usesMail(const Executable &executable) {
  for (const Program &program : executable.programs)
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands)
        if (std::holds_alternative<SendCommand>(command.what) ||
            std::holds_alternative<RecvCommand>(command.what) ||
            std::holds_alternative<GroupCommand>(command.what))
          return true;
  return false;
}

} // namespace

HostMemory::~HostMemory() {
  if (mapping)
    munmap(mapping, mappedBytes);
}

size_t HostMemory::channel(const Channel &wanted) const {
  for (size_t i = 0; i < channels.size(); ++i)
    if (channels[i].axes == wanted.axes && channels[i].stream == wanted.stream)
      return i;
  return channels.size();
}

Status HostMemory::create(const Executable &executable, int64_t repeatCount,
                          bool withArenas) {
  ranks = executable.numRanks();
  repeats = repeatCount;
  channels = {{{}, "all ranks"}};
  for (const Program &program : executable.programs) {
    for (const ArenaPlan &arena : program.arenas)
      if (arena.space == "shared" && withArenas)
        bytesOfArena =
            std::max(bytesOfArena, static_cast<uint64_t>(arena.bytes));
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands)
        if (auto *collective = std::get_if<CollectiveCommand>(&command.what)) {
          Channel wanted{collective->axes, command.stream};
          if (channel(wanted) == channels.size())
            channels.push_back(wanted);
        }
  }
  uint64_t count = static_cast<uint64_t>(ranks);
  uint64_t mail = usesMail(executable) ? count * count : 0;
  sharedStride =
      static_cast<int64_t>((bytesOfArena + kPage - 1) / kPage * kPage);

  Cursor cursor;
  uint64_t controlAt = cursor.take(sizeof(Control));
  uint64_t ranksAt = cursor.take(count * sizeof(RankControl));
  uint64_t timesAt =
      cursor.take(count * static_cast<uint64_t>(repeats) * sizeof(double));
  uint64_t stepsAt =
      cursor.take(static_cast<uint64_t>(repeats) * sizeof(StepRecord));
  states = executable.states.size();
  uint64_t hashesAt = cursor.take(states * sizeof(uint64_t));
  uint64_t piecesAt = cursor.take(count * states * sizeof(uint64_t));
  uint64_t barriersAt =
      cursor.take(channels.size() * count * sizeof(BarrierCell));
  uint64_t mailAt = cursor.take(mail * sizeof(Mailbox));
  uint64_t arenasAt = cursor.take(count * static_cast<uint64_t>(sharedStride));
  mappedBytes = std::max(cursor.bytes, kPage);
  mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    mapping = nullptr;
    return Status::error("cannot map " + std::to_string(mappedBytes) +
                         " bytes that the ranks share: " + systemError(errno));
  }
  char *base = static_cast<char *>(mapping);
  controlBlock = new (base + controlAt) Control;
  controlBlock->ranks = static_cast<uint32_t>(ranks);
  rankBlocks = reinterpret_cast<RankControl *>(base + ranksAt);
  for (uint64_t i = 0; i < count; ++i)
    new (&rankBlocks[i]) RankControl;
  times = reinterpret_cast<double *>(base + timesAt);
  steps = reinterpret_cast<StepRecord *>(base + stepsAt);
  hashes = reinterpret_cast<uint64_t *>(base + hashesAt);
  pieceHashes = reinterpret_cast<uint64_t *>(base + piecesAt);
  // The mapping is zero, which is what barriers and mailboxes start as;
  // touching them all would cost memory that few plans need.
  barriers = reinterpret_cast<BarrierCell *>(base + barriersAt);
  mailboxes = reinterpret_cast<Mailbox *>(base + mailAt);
  arenas = base + arenasAt;
  return Status();
}

} // namespace accel::rt
