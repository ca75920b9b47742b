// What --data feeds: the inputs of a program, each from a file of its own, or
// the integer inputs [batch, length] from tokens of one file or of a blend, in
// the order of Data/SampleOrder.h. Sample g of a step's batch goes to rank d,
// micro-batch m, row i with g = (m·dp + d)·b + i: the piece of the input says
// which.

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
  /// Errors: those of filesOf, TokenCorpus and SampleArray, files of different
  /// numbers of samples, none of `wanted` that tokens can feed, a safetensors
  /// file without a tensor for any of them, a blend that has no end, where one
  /// is asked for, and less than a batch where no other is read.
  Status open(const std::vector<TensorPlan> &wanted, const DataSource &source);
  /// How many whole batches the data have.
  int64_t numBatches() const {
    return static_cast<int64_t>(order.samples / order.batch);
  }

  int64_t numSamples() const { return static_cast<int64_t>(order.samples); }
  int64_t batchSize() const { return static_cast<int64_t>(order.batch); }
  /// How often training has read all samples after so many steps in all.
  double epochsAfter(int64_t finishedSteps) const {
    return order.epochAfter(static_cast<uint64_t>(finishedSteps));
  }
  /// The samples that make no whole batch.
  int64_t numLeft() const { return numSamples() % batchSize(); }
  /// Whether an input of integers gets one of `values` somewhere, and which.
  /// Reads the files, if there are any values.
  Status findAny(const std::vector<int64_t> &values, bool &isFound,
                 int64_t &found) const;
  std::vector<const DataFile *> files() const;
  /// The error of the first file that is no longer what it was. Allocates
  /// nothing.
  Status check() const;
  /// In which order samples are read.
  const SampleOrder &sampleOrder() const { return order; }
  /// Whether tokens of several files are blended, which have no epochs.
  bool isBlend() const { return hasTokens && tokens.isBlend(); }
  /// Where the batch after `finishedSteps` steps has the number in an input, or
  /// a floating-point one that is not finite (no number), as a clause: "sample
  /// 3, element 5, of 'a.npy'". Empty: nowhere, or it cannot be read.
  std::string whereIs(int64_t finishedSteps, const std::string &input,
                      std::optional<int64_t> number) const;
  /// Of the first fed input that has a number in that batch which is not
  /// finite: "; input 'x' has nan or inf in sample 3 …". Empty: none has.
  std::string whatIsNotFinite(int64_t finishedSteps) const;
  /// Where a number comes from that the message of a failed step names, as
  /// kernels refuse indices and labels ("found 97 at position 5 of input
  /// 'ids'"): ", which is sample …". Empty: it names none that is fed.
  std::string whereRefused(int64_t finishedSteps,
                           const std::string &message) const;
  /// Whether it is of tokens.
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

  /// Makes the task of a read of a fed input, whose view is at `target` for
  /// micro-batch 0. Before each step, `finishedSteps` says how many were
  /// finished; it and `memory` must outlive the task.
  std::unique_ptr<HostTask> prepare(const ReadCommand &read,
                                    const Coordinates &coordinates,
                                    Memory &memory, Address target,
                                    const int64_t &finishedSteps) const;

private:
  struct Input {
    std::string name;
    TokenContent content = TokenContent::Tokens;
    bool isLabel = false;
    bool isIgnored = false; ///< Where rows do not count.
    bool isRowMask = false; ///< It says which rows count.
    /// Where it has a file of its own, along whose dimension `dim` samples lie.
    std::optional<SampleArray> array = std::nullopt;
    size_t dim = 0;
  };
  Status openArrays(const std::vector<TensorPlan> &wanted,
                    const std::vector<InputFile> &files);
  Status openTokens(const std::vector<TensorPlan> &wanted,
                    const DataSource &source);
  Status checkEpochs() const;
  const Input *find(const std::string &name) const;

  std::vector<Input> inputs;
  std::string path;
  std::vector<int64_t> shape; ///< [batch, length] of what tokens feed.
  TokenCorpus tokens;
  bool hasTokens = false;
  SampleOrder order;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_DATAFEED_H
