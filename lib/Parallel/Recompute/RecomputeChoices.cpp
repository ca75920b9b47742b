// Finds layers, what they have in common, and their parts.

#include "lib/Parallel/RecomputeChoices.h"

#include "Segments.h"
#include "dialects/Accel/AlikeOps.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

static constexpr StringLiteral kLocationPrefix = "accel.layer.";

static llvm::hash_code hashMembers(const llvm::SetVector<Operation *> &ops) {
  llvm::hash_code hash = llvm::hash_value(ops.size());
  for (Operation *op : ops)
    hash = llvm::hash_combine(hash, hashAlike(op));
  return hash;
}

RecomputeChoices::RecomputeChoices(func::FuncOp step) {
  ForwardModules forward(step);
  std::vector<std::string> names;
  for (Operation *op : forward.getOps())
    names.push_back(forward.getLayer(op).str());
  llvm::DenseMap<Operation *, unsigned> layerOf;
  std::vector<size_t> hashes;
  for (Segment &segment : forward.group(names)) {
    int64_t chunk = 0;
    for (Operation *op : segment.members) {
      layerOf[op] = layers.size();
      chunk = std::max(chunk, forward.getChunk(op));
    }
    unsigned number = layers.size();
    layers.push_back({segment.name, chunk, 0, 0, 0});
    hashes.push_back(hashMembers(segment.members));
    addPart({segment.name, number, 0, segment.members.takeVector(), false});
  }
  for (auto [bit, name] : llvm::enumerate(RecomputePolicy::getParts()))
    for (Segment &segment : findPart(name, forward)) {
      auto layer = layerOf.find(segment.members.front());
      if (layer == layerOf.end())
        continue;
      segment.members.remove_if([&](Operation *op) {
        auto own = layerOf.find(op);
        return own == layerOf.end() || own->second != layer->second;
      });
      layers[layer->second].parts |= 1u << bit;
      addPart({segment.name, layer->second, 1u << bit,
               segment.members.takeVector(), segment.discards});
    }
  std::map<std::tuple<size_t, int64_t, uint32_t>, unsigned> kinds;
  std::map<std::pair<size_t, uint32_t>, unsigned> likenesses;
  for (auto [layer, hash] : llvm::zip_equal(layers, hashes)) {
    layer.kind =
        kinds.try_emplace({hash, layer.chunk, layer.parts}, kinds.size())
            .first->second;
    layer.likeness =
        likenesses.try_emplace({hash, layer.parts}, likenesses.size())
            .first->second;
  }
  listPolicies();
}

void RecomputeChoices::clearMarks(func::FuncOp step) {
  for (Operation &op : step.front()) {
    op.removeAttr(dist::kRecomputeAttr);
    op.removeAttr(dist::kDiscardAttr);
  }
}

void RecomputeChoices::addPart(Part part) {
  // A layer that is called again has the same names.
  std::string name = part.mark;
  for (unsigned call = 2; !marks.insert(part.mark).second; ++call)
    part.mark = name + ", call " + std::to_string(call);
  parts.push_back(std::move(part));
}

void RecomputeChoices::listPolicies() {
  uint32_t all = 0;
  for (const Layer &layer : layers)
    all |= layer.parts;
  // Parts that share ops, as experts and what lies between their products, are
  // not computed again one by one.
  llvm::DenseMap<Operation *, uint32_t> partsOf;
  for (const Part &part : parts)
    for (Operation *op : part.members)
      partsOf[op] |= part.bit;
  auto areApart = [&](uint32_t some) {
    return llvm::none_of(partsOf, [&](const auto &of) {
      return llvm::popcount(of.second & some) > 1;
    });
  };
  policies.push_back({"none", 0, false});
  auto names = RecomputePolicy::getParts();
  for (uint32_t some = 1; some < 1u << names.size(); ++some) {
    if ((some & all) != some || !areApart(some) ||
        llvm::none_of(layers, [&](const Layer &layer) {
          return (layer.parts & some) == some;
        }))
      continue;
    SmallVector<StringRef> chosen;
    for (auto [bit, name] : llvm::enumerate(names))
      if (some >> bit & 1)
        chosen.push_back(name);
    policies.push_back({llvm::join(chosen, ","), some, false});
  }
  if (!layers.empty())
    policies.push_back({"full", 0, true});
}

void RecomputeChoices::mark(ArrayRef<unsigned> policyOfLayer) const {
  for (const Part &part : parts) {
    const Policy &policy = policies[policyOfLayer[part.layer]];
    bool isMarked = part.bit ? policy.parts & part.bit : policy.isFull;
    if (!isMarked)
      continue;
    for (Operation *op : part.members) {
      op->setAttr(dist::kRecomputeAttr,
                  StringAttr::get(op->getContext(), part.mark));
      if (part.discards)
        op->setAttr(dist::kDiscardAttr, UnitAttr::get(op->getContext()));
    }
  }
}

void RecomputeChoices::markLocations() const {
  for (const Part &part : parts)
    if (!part.bit)
      for (Operation *op : part.members)
        setLayer(op, part.layer);
}

void RecomputeChoices::setLayer(Operation *op, unsigned layer) {
  op->setLoc(NameLoc::get(
      StringAttr::get(op->getContext(), kLocationPrefix + Twine(layer)),
      op->getLoc()));
}

std::optional<unsigned> RecomputeChoices::getLayer(Location location) {
  std::optional<unsigned> found;
  location->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    StringRef text = name ? name.getName().getValue() : "";
    unsigned layer;
    if (!text.consume_front(kLocationPrefix) || text.getAsInteger(10, layer))
      return WalkResult::advance();
    found = layer;
    return WalkResult::interrupt();
  });
  return found;
}
