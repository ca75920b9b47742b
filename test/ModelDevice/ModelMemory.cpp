// Arenas by address, and the laws of copies.

#include "ModelMemory.h"

namespace accel::rt::model {

static thread_local const Running *current = nullptr;

void ModelMemory::setRunning(const Running *running) { current = running; }

Status ModelMemory::add(const ArenaPlan &arena, Address address) {
  if (hasStreams)
    return Status::error("allocates an arena of space " +
                         inQuotes(arena.space) +
                         " after load: what runs next to it would stop");
  arenas.push_back({arena.space, address.value,
                    address.value + static_cast<uint64_t>(arena.bytes)});
  return Status();
}

Address ModelMemory::begin(const std::string &space) const {
  for (const Arena &arena : arenas)
    if (arena.space == space)
      return Address{arena.begin};
  return Address{};
}

std::string ModelMemory::describe(uint64_t begin, uint64_t end) const {
  for (const Arena &arena : arenas)
    if (begin >= arena.begin && begin < arena.end)
      return "bytes " + std::to_string(begin - arena.begin) + " to " +
             std::to_string(end - 1 - arena.begin) + " of space " +
             inQuotes(arena.space);
  return "bytes of no arena";
}

Status ModelMemory::copy(Copy kind, Address address, const Rows &rows) {
  const bool writes = kind != Copy::Download;
  std::string outside;
  auto forRows = [&](auto &&f) {
    for (int64_t i = 0; i < rows.count && rows.bytes > 0; ++i) {
      uint64_t begin = (address + i * rows.inArena).value;
      f(begin, begin + rows.bytes);
    }
  };
  if (current) {
    const CommandInfo *info = current->info;
    if (!info)
      return Status();
    if (current->isCaptured)
      return Status::error("copies between host and device from within a "
                           "graph, in which nothing may call the device");
    const auto &views = current->isPoison ? info->releases : info->views;
    forRows([&](uint64_t begin, uint64_t end) {
      bool isOwn = false;
      for (size_t i = 0; i < views.size() && !isOwn; ++i) {
        bool fits = writes ? views[i].access != Access::Read
                           : views[i].access != Access::Write;
        views[i].runs.forEach([&](int64_t from, int64_t to) {
          isOwn |= fits && begin >= (current->views[i] + from).value &&
                   end <= (current->views[i] + to).value;
        });
      }
      if (!isOwn && outside.empty())
        outside = describe(begin, end);
    });
    return outside.empty()
               ? Status()
               : Status::error(std::string(writes ? "writes " : "reads ") +
                               outside + ", which are in none of its views");
  }
  if (underWay)
    return Status::error("the host copies while " + std::to_string(underWay) +
                         " commands are under way: it must join first");
  std::lock_guard<std::mutex> lock(mutex);
  if (kind == Copy::Upload || kind == Copy::Fill)
    forRows(
        [&](uint64_t begin, uint64_t end) { past.writeByHost(begin, end); });
  return Status();
}

} // namespace accel::rt::model
