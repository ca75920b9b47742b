// The tokens of --data: one file or dataset, or a blend of several.

#ifndef ACCEL_RUNTIME_DATA_TOKENCORPUS_H
#define ACCEL_RUNTIME_DATA_TOKENCORPUS_H

#include "Data/Blend.h"
#include "Data/SampleOrder.h"
#include "Data/TokenFile.h"

namespace accel::rt {

class TokenCorpus {
public:
  /// Opens the file that `text` names, or the files of a blend; `type`,
  /// `length` and `split` are TokenFile::open's, whose errors these are, and
  /// readBlend's.
  Status open(const std::string &text, const std::string &type, int64_t length,
              const std::optional<DataSplit> &split);

  bool isBlend() const { return !weights.empty(); }
  /// Of all files together.
  int64_t numSamples() const;
  const std::vector<TokenFile> &files() const { return parts; }
  /// Of the files; of a blend with their weights. See TokenFile::hash.
  Status hash(const std::function<void(uint64_t, uint64_t)> &told,
              uint64_t &value) const;

  struct Place {
    const TokenFile *file;
    int64_t sample;
  };
  /// Goes from one sample to the next as an order says; each reader has its
  /// own.
  class Reader {
  public:
    Reader(const TokenCorpus &corpus, const SampleOrder &order);
    /// Sample `g` of the batch after `finishedSteps` steps. In a blend each
    /// part has the order of its own samples that a seed made of the order's
    /// and of the part's number gives, epoch after epoch.
    Place placeOf(int64_t finishedSteps, int64_t g);

  private:
    const TokenCorpus &corpus;
    const SampleOrder &order;
    BlendOrder blend;
    std::vector<SampleOrder> orders; ///< Of the parts of a blend.
  };

private:
  std::vector<TokenFile> parts;
  std::vector<double> weights; ///< Of a blend.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_TOKENCORPUS_H
