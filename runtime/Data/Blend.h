// Several corpora of tokens that are read as one, each with a weight: which of
// them sample i comes from.

#ifndef ACCEL_RUNTIME_DATA_BLEND_H
#define ACCEL_RUNTIME_DATA_BLEND_H

#include "accel-rt/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace accel::rt {

struct BlendPart {
  double weight = 1;
  std::string path;
};

/// The parts of "0.3 PATH 0.7 PATH", their weights divided by their sum; none:
/// the text begins with no number, or is a file's name, and so one file alone.
/// Errors: a weight that is no number above 0, or a number without a path.
Status readBlend(const std::string &text, std::vector<BlendPart> &parts);

/// Megatron-LM's rule (build_blending_indices in
/// megatron/core/datasets/helpers.cpp): sample i is the next one of the corpus
/// whose weight · max(i, 1) is the farthest above the number of samples that it
/// has given already; of several the first.
class BlendOrder {
public:
  explicit BlendOrder(std::vector<double> weights)
      : weights(std::move(weights)), given(this->weights.size()) {}

  struct Place {
    size_t part = 0;
    uint64_t sample = 0; ///< Samples of the part that came before it.
  };
  /// Where sample i is from. Goes through the samples from the last one asked
  /// for, or from the first one if that is behind i. Allocates nothing.
  Place placeOf(uint64_t i);

private:
  size_t choose() const;

  std::vector<double> weights;
  std::vector<uint64_t> given; ///< Before sample `next`.
  uint64_t next = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_BLEND_H
