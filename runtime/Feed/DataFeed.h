// What --data feeds: the integer inputs [batch, length] of a training program,
// from one file of tokens, in the order of Data/SampleOrder.h. Sample g of a
// step's batch goes to rank d, micro-batch m, row i with
// g = (m·dp + d)·b + i: the piece of the input says which.

#ifndef ACCEL_RUNTIME_FEED_DATAFEED_H
#define ACCEL_RUNTIME_FEED_DATAFEED_H

#include "Data/SampleOrder.h"
#include "Data/TokenFile.h"
#include "accel-rt/Device.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class Inputs;

/// A file of tokens, and how it is read.
struct DataSource {
  std::string path;
  std::string type;   ///< Of a raw file's integers (Data/TokenFile.h).
  std::string labels; ///< "same" as the tokens (or empty), or the "next" one.
  /// Of the order of the samples; nothing: as they lie in the file.
  std::optional<int64_t> seed;
};

class DataFeed {
public:
  /// Errors: those of TokenFile, and none of `wanted` that tokens can feed.
  Status open(const std::vector<TensorPlan> &wanted, const DataSource &source);
  /// How many whole batches the file has.
  int64_t numBatches() const {
    return static_cast<int64_t>(order.samples / order.batch);
  }

  int64_t numSamples() const { return static_cast<int64_t>(order.samples); }
  int64_t batchSize() const { return static_cast<int64_t>(order.batch); }
  /// The file's samples that make no whole batch.
  int64_t numLeft() const { return numSamples() % batchSize(); }
  /// Whether an input gets one of `values` somewhere, and which. Reads the
  /// file, if there are any.
  Status findAny(const std::vector<int64_t> &values, bool &isFound,
                 int64_t &found) const;
  int descriptor() const { return tokens.descriptor(); }

  /// What a checkpoint says of the data. With `hashed` the file is read once,
  /// to tell it from others; `options.progress` hears of it where that takes
  /// time.
  Status getCursor(bool hashed, const RunOptions &options,
                   DataCursor &cursor) const;
  bool feeds(const std::string &input) const;
  /// Whether an input gets labels, which --data-labels says more of.
  bool feedsLabels() const;
  /// Whether it feeds all of `wanted`, so that no file is read beside it.
  bool feedsAll(const std::vector<TensorPlan> &wanted) const;
  /// The error of inputs that are fed, and are files in `folder` as well:
  /// neither of the two may be left unread in silence.
  Status refuseFiles(const std::vector<std::string> &names,
                     const std::string &folder) const;
  /// Why an input is not fed: a clause.
  std::string whyNot(const std::string &input) const;
  /// A sentence for whoever may take it that labels are shifted, as exported
  /// models do with theirs: they come from here, the loss was added by the
  /// compiler, and no option says what they are. Empty: nothing to say.
  std::string labelWarning(const Executable &executable,
                           const RunOptions &options,
                           const Inputs &files) const;

  /// Makes the task of a read of a fed input. Before each step,
  /// `finishedSteps` says how many were finished; it and `memory` must outlive
  /// the task.
  std::unique_ptr<HostTask> prepare(const ReadCommand &read,
                                    const Coordinates &coordinates,
                                    Memory &memory,
                                    const int64_t &finishedSteps) const;

private:
  enum class Content { Tokens, NextTokens, Ones };
  class FeedTask;
  struct Input {
    std::string name;
    Content content;
    bool isLabel;
  };
  std::vector<Input> inputs;
  std::string path;
  std::vector<int64_t> shape; ///< [batch, length] of the inputs that are fed.
  TokenFile tokens;
  SampleOrder order;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_DATAFEED_H
