// Finds segments by the modules that ops lie in.

#include "Segments.h"

#include "dialects/Accel/NodeNames.h"
#include "dialects/NN/Entry.h"
#include "lib/Names/Nearest.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

static bool isWeight(nn::StateOp state) {
  return state && state.getRole() == nn::StateRole::parameter;
}

ForwardModules::ForwardModules(func::FuncOp step) : step(step), states(step) {
  GradientOps gradients(step);
  // Weights, and what is made of them alone, are there in the backward anyway.
  llvm::DenseSet<Value> ofWeights, ofOthers;
  for (BlockArgument argument : step.getArguments())
    (isWeight(states.find(argument)) ? ofWeights : ofOthers).insert(argument);
  auto known = nn::Chunks::compute(step);
  for (Operation &op : step.front().without_terminator()) {
    if (op.getNumOperands() == 0)
      continue;
    auto reads = [&](const llvm::DenseSet<Value> &values) {
      return llvm::any_of(op.getOperands(), [&](Value operand) {
        return values.contains(operand);
      });
    };
    if (reads(ofOthers)) {
      ofOthers.insert(op.result_begin(), op.result_end());
    } else if (reads(ofWeights)) {
      ofWeights.insert(op.result_begin(), op.result_end());
      continue;
    }
    if (!gradients.forward.contains(&op) || !isRepeatable(&op))
      continue;
    index[&op] = ops.size();
    ops.push_back(&op);
    modules.push_back(listModules(op.getLoc()));
    // What is made of inputs alone any chunk may compute.
    std::optional<int64_t> chunk;
    if (succeeded(known) && op.getNumResults())
      chunk = known->find(op.getResult(0));
    chunks.push_back(chunk.value_or(-1));
  }
}

ArrayRef<std::string> ForwardModules::getModules(Operation *op) const {
  return modules[index.lookup(op)];
}

StringRef ForwardModules::getLayer(Operation *op) const {
  for (const std::string &module : getModules(op))
    if (RecomputePolicy::isLayer(module))
      return module;
  return {};
}

int64_t ForwardModules::getChunk(Operation *op) const {
  return chunks[index.lookup(op)];
}

void ForwardModules::fill(llvm::SetVector<Operation *> &members,
                          function_ref<bool(Operation *)> isOpen) const {
  if (members.empty())
    return;
  size_t begin = ops.size(), end = 0;
  for (Operation *op : members) {
    begin = std::min(begin, index.lookup(op));
    end = std::max(end, index.lookup(op) + 1);
  }
  llvm::DenseSet<Operation *> behind(members.begin(), members.end());
  ArrayRef<Operation *> range = ArrayRef(ops).slice(begin, end - begin);
  for (Operation *op : range)
    if (isOpen(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          return behind.contains(operand.getDefiningOp());
        }))
      behind.insert(op);
  llvm::DenseSet<Operation *> before(members.begin(), members.end());
  for (Operation *op : llvm::reverse(range))
    if (behind.contains(op) &&
        llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return before.contains(user); }))
      before.insert(op);
  for (Operation *op : range)
    if (behind.contains(op) && before.contains(op))
      members.insert(op);
}

/// The weight that an operand is made of alone; null if there is none.
Value ForwardModules::getWeight(Value operand) const {
  while (Operation *op = operand.getDefiningOp()) {
    if (varies(op) || op->getNumOperands() == 0)
      return {};
    operand = op->getOperand(0);
  }
  return isWeight(states.find(cast<BlockArgument>(operand))) ? operand
                                                             : Value();
}

ForwardModules::Segments
ForwardModules::group(ArrayRef<std::string> moduleOfOp) const {
  struct Module {
    int64_t call = 0;
    std::set<std::pair<void *, StringRef>> read; ///< weights, and by what
  };
  llvm::StringMap<Module> called;
  std::map<std::string, std::set<int64_t>> chunksOf;
  std::map<std::tuple<std::string, int64_t, int64_t>, size_t> known;
  Segments segments;
  llvm::DenseSet<Operation *> taken;
  for (auto [op, name] : llvm::zip_equal(ops, moduleOfOp)) {
    if (name.empty())
      continue;
    Module &module = called[name];
    SmallVector<std::pair<void *, StringRef>> reads;
    for (Value operand : op->getOperands())
      if (Value weight = getWeight(operand))
        reads.push_back(
            {weight.getAsOpaquePointer(), op->getName().getStringRef()});
    // A weight that is read again in the same way is read by the next call.
    if (llvm::any_of(
            reads, [&](const auto &read) { return module.read.count(read); })) {
      ++module.call;
      module.read.clear();
    }
    module.read.insert(reads.begin(), reads.end());
    int64_t chunk = getChunk(op);
    std::set<int64_t> &ofModule = chunksOf[name];
    if (chunk < 0) // any of them will do
      chunk = ofModule.empty() ? 0 : *ofModule.rbegin();
    ofModule.insert(chunk);
    auto [at, isNew] =
        known.try_emplace({name, module.call, chunk}, segments.size());
    if (isNew) {
      std::string of = name;
      if (module.call)
        of += ", call " + std::to_string(module.call + 1);
      if (ofModule.size() > 1)
        of += ", chunk " + std::to_string(chunk);
      segments.push_back({of, {}, false});
    }
    segments[at->second].members.insert(op);
    taken.insert(op);
  }
  // Of some ops the exporter does not say where they lie.
  for (Segment &segment : segments) {
    int64_t chunk = -1;
    for (Operation *op : segment.members)
      chunk = std::max(chunk, getChunk(op));
    fill(segment.members, [&](Operation *op) {
      return !taken.contains(op) && getModules(op).empty() &&
             (getChunk(op) < 0 || getChunk(op) == chunk);
    });
    taken.insert(segment.members.begin(), segment.members.end());
  }
  return segments;
}

FailureOr<ForwardModules::Segments>
ForwardModules::findLayers(const RecomputePolicy &policy) {
  // The layers of a list that a chunk has, in the order of the forward.
  std::map<std::pair<std::string, int64_t>, std::vector<std::string>> lists;
  std::map<std::string, size_t> places;
  auto listOf = [](StringRef layer) {
    return layer.substr(0, layer.rfind('.') + 1).str();
  };
  std::vector<std::string> layers;
  for (Operation *op : ops)
    layers.push_back(getLayer(op).str());
  for (auto [op, layer] : llvm::zip_equal(ops, layers)) {
    if (layer.empty() || places.count(layer))
      continue;
    std::vector<std::string> &list =
        lists[{listOf(layer), std::max<int64_t>(0, getChunk(op))}];
    places[layer] = list.size();
    list.push_back(layer);
  }
  if (places.empty())
    return step.emitError() << "expected layers that are numbered in a list "
                               "(torch.nn.ModuleList) to compute again, found "
                               "none: name modules by patterns of their paths "
                               "(--recompute='PATTERN')";
  std::map<std::string, std::string> segmentOf;
  for (auto &[key, list] : lists)
    for (auto [place, layer] : llvm::enumerate(list)) {
      if (policy.kind == RecomputePolicy::Kind::Block) {
        if (int64_t(place) < policy.layers)
          segmentOf[layer] = layer;
        continue;
      }
      size_t first = place - place % policy.layers;
      size_t last = std::min<size_t>(list.size(), first + policy.layers) - 1;
      segmentOf[layer] =
          first == last ? layer : list[first] + " to " + list[last];
    }
  for (std::string &layer : layers)
    layer = segmentOf[layer];
  return group(layers);
}

FailureOr<ForwardModules::Segments>
ForwardModules::findMatches(ArrayRef<std::string> patterns) {
  std::vector<std::string> matches(ops.size());
  for (const std::string &text : patterns) {
    llvm::GlobPattern pattern = llvm::cantFail(llvm::GlobPattern::create(text));
    bool isMatched = false;
    llvm::StringSet<> names;
    for (auto [op, match] : llvm::zip_equal(ops, matches))
      for (const std::string &module : getModules(op)) {
        names.insert(module);
        if (!pattern.match(module))
          continue;
        isMatched = true;
        if (match.empty() || module.size() < match.size())
          match = module;
        break;
      }
    if (isMatched)
      continue;
    SmallVector<StringRef> legal(names.keys());
    llvm::sort(legal);
    return step.emitError()
           << "expected a module of the forward to compute again, found none "
              "whose path is '"
           << text << "'"
           << (legal.empty() ? std::string("; the exporter named no modules")
                             : suggestName(text, legal));
  }
  return group(matches);
}

/// Of what the user checkpointed, the modules are named by the importer.
ForwardModules::Segments ForwardModules::findCheckpoints() {
  std::vector<std::string> calls(ops.size());
  for (auto [op, call] : llvm::zip_equal(ops, calls))
    for (const std::string &module : getModules(op))
      if (RecomputePolicy::isCheckpoint(module))
        call = module;
  return group(calls);
}

FailureOr<ForwardModules::Segments>
ForwardModules::findParts(ArrayRef<std::string> parts) {
  Segments segments;
  llvm::DenseSet<Operation *> taken;
  llvm::StringMap<int64_t> calls;
  for (const std::string &part : parts) {
    Segments found = findPart(part, *this);
    if (found.empty() && part == "core_attn" &&
        llvm::any_of(ops, llvm::IsaPred<nn::AttentionOp>)) {
      step.emitRemark() << "core_attn: attention keeps no scores, its backward "
                           "makes them again already; nothing is left to "
                           "compute again";
      continue;
    }
    if (found.empty())
      return step.emitError()
             << "expected " << part
             << " in the forward to compute again, found none: name modules by "
                "patterns of their paths (--recompute='PATTERN')";
    for (Segment &segment : found) {
      segment.members.remove_if(
          [&](Operation *op) { return !taken.insert(op).second; });
      // A layer that is called again has the same names.
      if (int64_t call = ++calls[segment.name]; call > 1)
        segment.name += ", call " + std::to_string(call);
      if (!segment.members.empty())
        segments.push_back(std::move(segment));
    }
  }
  llvm::stable_sort(segments, [&](const Segment &left, const Segment &right) {
    return index.lookup(left.members.front()) <
           index.lookup(right.members.front());
  });
  return segments;
}

FailureOr<std::vector<Segment>>
ForwardModules::find(const RecomputePolicy &policy) {
  switch (policy.kind) {
  case RecomputePolicy::Kind::None:
    return Segments();
  case RecomputePolicy::Kind::Auto:
  case RecomputePolicy::Kind::Model:
    return findCheckpoints();
  case RecomputePolicy::Kind::Selective:
    return findParts(policy.names);
  case RecomputePolicy::Kind::Uniform:
  case RecomputePolicy::Kind::Block:
    return findLayers(policy);
  case RecomputePolicy::Kind::Patterns:
    return findMatches(policy.names);
  }
  llvm_unreachable("all kinds are there");
}
