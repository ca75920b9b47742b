// What the model knows of its device's memory: arenas, what was done to every
// byte, and whether whoever copies may do it now.

#ifndef ACCEL_TEST_MODELDEVICE_MODELMEMORY_H
#define ACCEL_TEST_MODELDEVICE_MODELMEMORY_H

#include "CommandInfo.h"
#include "History.h"

#include <atomic>
#include <mutex>

namespace accel::rt::model {

/// A command of the host's that is carried out, and where its views are.
struct Running {
  const CommandInfo *info;
  const Address *views;
  bool isPoison;
  bool isCaptured; ///< As a node of a graph, from which no device is called.
};

class ModelMemory {
public:
  /// Marks the command of this thread; null: none.
  static void setRunning(const Running *running);

  /// Errors: it comes while there are streams.
  Status add(const ArenaPlan &arena, Address address);
  void setStreams(bool exist) { hasStreams = exist; }
  void setUnderWay(size_t commands) { underWay = commands; }

  /// A copy between host and arena, or a fill. Errors: commands are under way
  /// and it is none of theirs; it touches other bytes than its command's views.
  enum class Copy { Upload, Download, Poison, Fill };
  Status copy(Copy kind, Address address, const Rows &rows);

  History &history() { return past; }
  /// Where the arena of a space begins.
  Address begin(const std::string &space) const;
  /// "bytes 64 to 127 of space 'device'"
  std::string describe(uint64_t begin, uint64_t end) const;

private:
  struct Arena {
    std::string space;
    uint64_t begin, end;
  };
  std::vector<Arena> arenas;
  std::mutex mutex; ///< Of `past`, where threads copy for the host.
  History past;
  std::atomic<bool> hasStreams{false};
  std::atomic<size_t> underWay{0};
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELMEMORY_H
