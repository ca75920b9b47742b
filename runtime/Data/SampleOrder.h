// In which order samples are read: a pure function of the seed, the step and
// the sample's number in the global batch, so that neither ranks nor
// micro-batches change it.

#ifndef ACCEL_RUNTIME_DATA_SAMPLEORDER_H
#define ACCEL_RUNTIME_DATA_SAMPLEORDER_H

#include <cstdint>
#include <optional>
#include <string>

namespace accel::rt {

/// Where `index` goes under the permutation of 0 … count - 1 that `key` names:
/// a balanced Feistel network over the next power of four, walked until it
/// leads back below `count` (Black and Rogaway, "Ciphers with Arbitrary Finite
/// Domains", 2002: the cycle-walking cipher). No table is kept. Requires
/// index < count.
uint64_t permuteIndex(uint64_t count, uint64_t key, uint64_t index);

/// The seed of one part of a blend (Data/TokenCorpus.h), by its number.
uint64_t seedOfPart(uint64_t seed, uint64_t part);

struct SampleOrder {
  enum Kind {
    Shuffled, ///< A new permutation every epoch.
    InFile,   ///< As they lie in the data, epoch after epoch.
    /// As they lie in the data, and behind them the last one again: what fills
    /// up the last batch of an evaluation.
    Once
  };
  /// What becomes of the samples at the end of an epoch that make no whole
  /// batch.
  enum Last {
    Next, ///< The next epoch begins in the middle of that batch.
    Drop, ///< They are left out: PyTorch's drop_last=True.
    /// They make a batch of fewer rows, behind which the last one stands again
    /// and does not count: PyTorch's drop_last=False.
    Keep
  };
  uint64_t samples = 1; ///< In the data; at least 1.
  uint64_t batch = 1;   ///< Of them in one step.
  uint64_t seed = 0;
  Kind kind = Shuffled;
  uint64_t firstStep = 0; ///< Steps that were finished when the data began.
  Last last = Next; ///< Of Drop there is a whole batch; of Once it is Next.

  /// Which sample of the data is number `g` of the global batch, after
  /// `finishedSteps` steps. Requires finishedSteps >= firstStep.
  uint64_t sampleAt(uint64_t finishedSteps, uint64_t g) const;
  /// How many rows of that batch count: all but in a last batch that is kept.
  uint64_t numRows(uint64_t finishedSteps) const;
  /// What the label of a row is that does not count.
  static constexpr int64_t kIgnoredLabel = -100;

  /// Steps of `epochs` epochs, of which the last may end in the middle of the
  /// last step's batch.
  uint64_t stepsOf(uint64_t epochs) const;
  /// Epochs that `finishedSteps` steps come to, with the part of the last one.
  double epochAfter(uint64_t finishedSteps) const;

private:
  uint64_t stepsOfEpoch() const {
    return (samples + (last == Keep ? batch - 1 : 0)) / batch;
  }
};

/// "next", "drop" or "keep".
const char *nameOf(SampleOrder::Last last);

/// What the samples of a step depend on besides it: a run goes on where another
/// was if all of it is the same.
struct DataCursor {
  int64_t samples = 0; ///< In the data.
  /// Tokens of a sample; 0 where inputs have files of their own.
  int64_t length = 0;
  int64_t batch = 0; ///< Samples of a step.
  int64_t seed = 0;
  bool isShuffled = true; ///< Else in the order of the file.
  SampleOrder::Last last = SampleOrder::Next;
  /// Steps that were finished when these data began.
  int64_t firstStep = 0;
  /// XXH3-64 of what can be read; absent where nobody compares.
  std::optional<uint64_t> hash = std::nullopt;
  std::string file = ""; ///< That has them; for messages.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_SAMPLEORDER_H
