// Opening all files of a corpus, and finding samples in them.

#include "Data/TokenCorpus.h"

#include "accel-rt/PlanFormat.h"

#include <cstdio>
#include <numeric>

namespace accel::rt {

Status TokenCorpus::open(const std::string &text, const std::string &type,
                         int64_t length,
                         const std::optional<DataSplit> &split) {
  std::vector<BlendPart> blend;
  ACCEL_RT_RETURN_IF_ERROR(readBlend(text, blend));
  if (blend.empty())
    return parts.emplace_back().open(text, type, length, split);
  for (const BlendPart &part : blend) {
    ACCEL_RT_RETURN_IF_ERROR(
        parts.emplace_back().open(part.path, type, length, split));
    weights.push_back(part.weight);
  }
  return Status();
}

int64_t TokenCorpus::numSamples() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t(0),
                         [](int64_t sum, const TokenFile &part) {
                           return sum + part.numSamples();
                         });
}

Status TokenCorpus::hash(const std::function<void(uint64_t, uint64_t)> &told,
                         uint64_t &value) const {
  if (!isBlend())
    return parts.front().hash(told, value);
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    uint64_t own;
    ACCEL_RT_RETURN_IF_ERROR(parts[i].hash(told, own));
    char weight[32];
    std::snprintf(weight, sizeof weight, "%a ", weights[i]);
    text += weight + std::to_string(own) + " " +
            std::to_string(parts[i].numSamples()) + "\n";
  }
  value = hashBytes(text.data(), text.size());
  return Status();
}

TokenCorpus::Reader::Reader(const TokenCorpus &corpus, const SampleOrder &order)
    : corpus(corpus), order(order), blend(corpus.weights) {
  if (!corpus.isBlend())
    return;
  for (const TokenFile &part : corpus.parts) {
    SampleOrder &own = orders.emplace_back(order);
    own.samples = static_cast<uint64_t>(part.numSamples());
    own.batch = 1;
    own.firstStep = 0;
    own.seed = seedOfPart(order.seed, orders.size() - 1);
  }
}

TokenCorpus::Place TokenCorpus::Reader::placeOf(int64_t finishedSteps,
                                                int64_t g) {
  auto steps = static_cast<uint64_t>(finishedSteps),
       row = static_cast<uint64_t>(g);
  if (!corpus.isBlend())
    return {&corpus.parts.front(),
            static_cast<int64_t>(order.sampleAt(steps, row))};
  BlendOrder::Place place =
      blend.placeOf((steps - order.firstStep) * order.batch + row);
  return {&corpus.parts[place.part],
          static_cast<int64_t>(orders[place.part].sampleAt(place.sample, 0))};
}

} // namespace accel::rt
