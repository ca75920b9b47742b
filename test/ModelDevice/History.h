// For every byte who wrote it last and who has read it since, and by vector
// clocks whether whoever comes to it is ordered behind them. A pair that no
// event orders is found whichever of the two came first.

#ifndef ACCEL_TEST_MODELDEVICE_HISTORY_H
#define ACCEL_TEST_MODELDEVICE_HISTORY_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace accel::rt::model {

/// How many commands of each stream have happened before one.
using Clock = std::vector<uint64_t>;

/// A command as it was enqueued: number `index` (from 1) of a stream. Of the
/// host, which comes when all streams are joined, the index is 0.
struct Event {
  size_t stream = 0;
  uint64_t index = 0;
  int64_t command = -1; ///< As Work::number has it.
  int64_t microBatch = -1;
};

/// What is wrong with an access.
struct Conflict {
  enum class Kind {
    Race,        ///< `other` touches the bytes too, and nothing orders the two.
    Unwritten,   ///< Nothing has written what is read.
    Released,    ///< `other` has released it.
    Overwritten, ///< `other` has written it through another buffer.
  };
  Kind kind;
  Event other;
  bool otherWrites;
  uint64_t begin, end; ///< The bytes.
};

class History {
public:
  /// Bytes that the host writes, all streams being joined.
  void writeByHost(uint64_t begin, uint64_t end);
  /// `by`, before which `clock` has happened, reads the bytes; `root` is what
  /// they must have been written through (-1: anything), and `needsValue` says
  /// that they must have been written at all.
  std::optional<Conflict> read(uint64_t begin, uint64_t end, const Event &by,
                               const Clock &clock, int64_t root,
                               bool needsValue);
  std::optional<Conflict> write(uint64_t begin, uint64_t end, const Event &by,
                                const Clock &clock, int64_t root);
  /// Overwrites bytes that nobody reads any more.
  std::optional<Conflict> release(uint64_t begin, uint64_t end, const Event &by,
                                  const Clock &clock);

private:
  struct Range {
    uint64_t end = 0;
    bool isWritten = false, isReleased = false;
    int64_t root = -1;
    Event writer;
    std::vector<Event> readers; ///< Of each stream the last one.
  };
  using Ranges = std::map<uint64_t, Range>; // by begin
  using Span = std::pair<Ranges::iterator, Ranges::iterator>;
  /// The ranges from `begin` to `end`, cut there and without gaps.
  Span cut(uint64_t begin, uint64_t end);
  Ranges::iterator split(uint64_t at);
  std::optional<Conflict> overwrite(uint64_t begin, uint64_t end, Range with,
                                    const Event &by, const Clock &clock);

  Ranges ranges;
};

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_HISTORY_H
