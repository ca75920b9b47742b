// What --data feeds: the inputs of a program, each from a file of its own, or
// the integer inputs [batch, length] from one file of tokens, in the order of
// Data/SampleOrder.h. Sample g of a step's batch goes to rank d, micro-batch m,
// row i with g = (m·dp + d)·b + i: the piece of the input says which.

#ifndef ACCEL_RUNTIME_FEED_DATAFEED_H
#define ACCEL_RUNTIME_FEED_DATAFEED_H

#include "Data/SampleArray.h"
#include "Feed/DataSource.h"
#include "Feed/FeedTokens.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

class Inputs;

class DataFeed {
public:
  /// Errors: those of filesOf, TokenFile and SampleArray, files of different
  /// numbers of samples, and none of `wanted` that tokens can feed.
  Status open(const std::vector<TensorPlan> &wanted, const DataSource &source);
  /// How many whole batches the data have.
  int64_t numBatches() const {
    return static_cast<int64_t>(order.samples / order.batch);
  }

  int64_t numSamples() const { return static_cast<int64_t>(order.samples); }
  int64_t batchSize() const { return static_cast<int64_t>(order.batch); }
  /// How often training has read all samples after so many steps in all.
  double epochsAfter(int64_t finishedSteps) const {
    return static_cast<double>(finishedSteps -
                               static_cast<int64_t>(order.firstStep)) *
           static_cast<double>(order.batch) /
           static_cast<double>(order.samples);
  }
  /// The samples that make no whole batch.
  int64_t numLeft() const { return numSamples() % batchSize(); }
  /// Whether an input of integers gets one of `values` somewhere, and which.
  /// Reads the files, if there are any values.
  Status findAny(const std::vector<int64_t> &values, bool &isFound,
                 int64_t &found) const;
  /// Of all files.
  std::vector<int> descriptors() const;
  /// Whether it is one file of tokens.
  bool readsTokens() const { return hasTokens; }

  /// What a checkpoint says of the data. With `hashed` the files are read once,
  /// to tell them from others; `options.progress` hears of it where that takes
  /// time.
  Status getCursor(bool hashed, const RunOptions &options,
                   DataCursor &cursor) const;
  bool feeds(const std::string &input) const;
  /// Whether tokens become labels, which --data-labels says more of.
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
  struct Input {
    std::string name;
    TokenContent content = TokenContent::Tokens;
    bool isLabel = false;
    /// Where it has a file of its own, along whose dimension `dim` samples lie.
    std::optional<SampleArray> array = std::nullopt;
    size_t dim = 0;
  };
  Status openArrays(const std::vector<TensorPlan> &wanted,
                    const std::vector<InputFile> &files);
  Status openTokens(const std::vector<TensorPlan> &wanted,
                    const DataSource &source);
  const Input *find(const std::string &name) const;

  std::vector<Input> inputs;
  std::string path;
  std::vector<int64_t> shape; ///< [batch, length] of what tokens feed.
  TokenFile tokens;
  bool hasTokens = false;
  SampleOrder order;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_DATAFEED_H
