// Look-up in the groups' tables of operators.

#include "OpTable.h"

#include <map>
#include <vector>

using namespace accel::import;

llvm::ArrayRef<const OpRow *> accel::import::allOps() {
  static const std::vector<const OpRow *> rows = [] {
    std::vector<const OpRow *> all;
    for (llvm::ArrayRef<OpRow> group : {elementwiseOps(),
                                        activationOps(),
                                        trigonometricOps(),
                                        linearOps(),
                                        convolutionOps(),
                                        poolingOps(),
                                        einsumOps(),
                                        normOps(),
                                        channelNormOps(),
                                        attentionOps(),
                                        shapeOps(),
                                        blockOps(),
                                        resizingOps(),
                                        paddingOps(),
                                        indexingOps(),
                                        choosingOps(),
                                        scatteringOps(),
                                        constantOps(),
                                        reductionOps(),
                                        lossOps(),
                                        controlOps(),
                                        randomOps(),
                                        bitOps(),
                                        loopOps(),
                                        quantizationOps(),
                                        recurrentOps(),
                                        rotaryOps(),
                                        updateOps(),
                                        linearAttentionOps(),
                                        perSampleOps(),
                                        gridSampleOps(),
                                        fourierOps(),
                                        regionOps()})
      for (const OpRow &row : group)
        all.push_back(&row);
    return all;
  }();
  return rows;
}

const OpRow *accel::import::findOp(llvm::StringRef domain, llvm::StringRef name,
                                   int64_t version) {
  using Key = std::pair<llvm::StringRef, llvm::StringRef>;
  static const std::multimap<Key, const OpRow *> rows = [] {
    std::multimap<Key, const OpRow *> all;
    for (const OpRow *row : allOps())
      all.emplace(Key(row->domain, row->name), row);
    return all;
  }();
  const OpRow *best = nullptr;
  auto [begin, end] = rows.equal_range({domain, name});
  for (auto it = begin; it != end; ++it)
    if (it->second->since <= version &&
        (!best || it->second->since > best->since))
      best = it->second;
  return best;
}
