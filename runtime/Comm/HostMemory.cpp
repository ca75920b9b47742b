// Lays the shared memory out and maps it.

#include "Comm/HostMemory.h"

#include "Base/PageCursor.h"
#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <sys/mman.h>

namespace accel::rt {
namespace {

bool isMail(const Command &command) {
  return std::holds_alternative<SendCommand>(command.what) ||
         std::holds_alternative<RecvCommand>(command.what) ||
         std::holds_alternative<GroupCommand>(command.what);
}

/// How many letters a rank may have on their way to another one: of each stream
/// as many as one command posts.
size_t countLetters(const Executable &executable) {
  size_t most = 0;
  for (const Program &program : executable.programs) {
    using Peer = std::pair<std::string, int64_t>; // along an axis, so far away
    std::map<Peer, std::map<std::string, size_t>> streams;
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands) {
        std::map<Peer, size_t> posted;
        if (auto *send = std::get_if<SendCommand>(&command.what))
          ++posted[{send->axis, send->delta}];
        if (auto *group = std::get_if<GroupCommand>(&command.what))
          for (const SendCommand &send : group->sends)
            ++posted[{send.axis, send.delta}];
        for (auto &[peer, count] : posted) {
          size_t &known = streams[peer][command.stream];
          known = std::max(known, count);
        }
      }
    for (auto &[peer, counts] : streams) {
      size_t sum = 0;
      for (auto &[stream, count] : counts)
        sum += count;
      most = std::max(most, sum);
    }
  }
  return most;
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

Status HostMemory::create(const Executable &executable, bool withArenas,
                          Machines *machines) {
  constexpr uint64_t page = PageCursor::kPage;
  ranks = executable.numRanks();
  uint64_t count = static_cast<uint64_t>(ranks);
  if (machines) {
    const std::vector<int64_t> &here = machines->ranksOf(machines->here());
    slotOf.assign(count, -1);
    for (size_t i = 0; i < here.size(); ++i)
      slotOf[static_cast<size_t>(here[i])] = static_cast<int64_t>(i);
    count = here.size();
    for (int64_t rank = 0; rank < ranks; ++rank)
      machineNumbers.push_back(machines->machineOf(rank));
  }
  bool hasOthers = machines && machines->numMachines() > 1 && withArenas;
  for (const Program &program : executable.programs) {
    for (const ArenaPlan &arena : program.arenas)
      if (arena.space == "shared" && withArenas)
        bytesOfArena =
            std::max(bytesOfArena, static_cast<uint64_t>(arena.bytes));
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands) {
        bool isWired = isMail(command) ||
                       std::holds_alternative<CollectiveCommand>(command.what);
        if (hasOthers && isWired &&
            std::find(wired.begin(), wired.end(), command.stream) ==
                wired.end())
          wired.push_back(command.stream);
        if (auto *collective = std::get_if<CollectiveCommand>(&command.what)) {
          Channel wanted{collective->axes, command.stream};
          if (channel(wanted) == channels.size())
            channels.push_back(wanted);
        }
      }
  }
  uint64_t all = static_cast<uint64_t>(ranks);
  lettersOfPair = countLetters(executable);
  uint64_t pairs = lettersOfPair > 0 ? all * all : 0;
  sharedStride = static_cast<int64_t>((bytesOfArena + page - 1) / page * page);

  PageCursor cursor;
  uint64_t barriersAt =
      cursor.take(channels.size() * all * sizeof(BarrierCell));
  uint64_t mailAt = cursor.take(pairs * sizeof(Mailbox));
  uint64_t lettersAt = cursor.take(pairs * lettersOfPair * sizeof(Letter));
  uint64_t arenasAt = cursor.take(count * static_cast<uint64_t>(sharedStride));
  uint64_t stagings = count * wired.size();
  uint64_t wiresAt = cursor.take(stagings * sizeof(Wire));
  uint64_t stagingsAt = cursor.take(stagings * sizeof(Staging));
  uint64_t heardAtAt = cursor.take(all * sizeof(std::atomic<int64_t>));
  uint64_t slotsAt = cursor.take(stagings * Staging::kBytes);
  mappedBytes = std::max(cursor.bytes, page);
  if (machines) {
    ACCEL_RT_RETURN_IF_ERROR(machines->share(mappedBytes, mapping));
  } else {
    mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
      mapping = nullptr;
      return Status::error(
          "cannot map " + std::to_string(mappedBytes) +
          " bytes that the ranks share: " + systemError(errno));
    }
  }
  char *base = static_cast<char *>(mapping);
  // The mapping is zero, which is what barriers and mailboxes start as;
  // touching them all would cost memory that few plans need.
  barriers = reinterpret_cast<BarrierCell *>(base + barriersAt);
  mailboxes = reinterpret_cast<Mailbox *>(base + mailAt);
  allLetters = reinterpret_cast<Letter *>(base + lettersAt);
  arenas = base + arenasAt;
  allWires = reinterpret_cast<Wire *>(base + wiresAt);
  allStaging = reinterpret_cast<Staging *>(base + stagingsAt);
  heardAt = reinterpret_cast<std::atomic<int64_t> *>(base + heardAtAt);
  slots = base + slotsAt;
  return Status();
}

} // namespace accel::rt
