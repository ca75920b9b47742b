// Finds the parts of layers that Megatron-LM's --recompute-modules names, by
// what they do: models call them by names of their own.

#include "Segments.h"
#include "dialects/Interfaces/KernelSource.h"

using namespace mlir;
using namespace accel;
using namespace accel::parallel;

/// Whether an op gives each element of a tensor to an element of its result.
static bool isPassing(Operation *op) {
  return isView(op) || op->hasTrait<nn::Elementwise>() ||
         isa<nn::TransposeOp, nn::BroadcastOp, nn::DropoutOp, nn::SliceOp,
             dist::ReshardOp>(op);
}

namespace {
class PartFinder {
public:
  explicit PartFinder(const ForwardModules &forward) : forward(forward) {}

  std::vector<Segment> findAttention();
  std::vector<Segment> findNorms();
  std::vector<Segment> findFeedForwards();
  std::vector<Segment> findActivationsOfExperts();
  std::vector<Segment> findExperts();
  std::vector<Segment> findSharedExperts();

private:
  using Members = llvm::SetVector<Operation *>;
  /// The ops of `isEnd` that are reached over ops that pass elements on,
  /// through operands or through users, and the ops on the way.
  Members search(Operation *from, bool isUpwards,
                 function_ref<bool(Operation *)> isEnd) const;
  /// A product of what varies with a weight.
  bool isProjection(Operation *op) const {
    return isa<nn::MatmulOp>(op) && countVarying(op) == 1;
  }
  int countVarying(Operation *op) const {
    return llvm::count_if(op->getOperands(), [&](Value operand) {
      Operation *made = operand.getDefiningOp();
      return made && forward.varies(made);
    });
  }
  /// A function of each element whose gradient depends on it. A choice by an
  /// element's sign is one (leaky), and by what is drawn none (dropout).
  static bool isActivation(Operation *op) {
    if (auto select = dyn_cast<nn::SelectOp>(op)) {
      auto compare = select->getOperand(0).getDefiningOp<nn::CompareOp>();
      return compare && (compare->getOperand(0) == select->getOperand(1) ||
                         compare->getOperand(0) == select->getOperand(2));
    }
    return isa<nn::GeluOp, nn::ReluOp, nn::SigmoidOp, nn::TanhOp, nn::ErfOp,
               nn::ExpOp>(op);
  }
  /// Where a layer adds what it computes to what it was given.
  bool isResidual(Operation *op) const {
    return isa<nn::AddOp>(op) && countVarying(op) == 2;
  }
  std::string describe(Operation *op, StringRef part) const {
    ArrayRef<std::string> modules = forward.getModules(op);
    return ((modules.empty() ? std::string("forward") : modules.back()) + ": " +
            part)
        .str();
  }
  Segment make(Members members, Operation *of, StringRef part,
               bool discards) const {
    forward.fill(members, [](Operation *) { return true; });
    return {describe(of, part), std::move(members), discards};
  }

  /// Adds what only moves or rounds results of `members`: the backward reads
  /// those in their place.
  void addMoved(Members &members) const {
    for (size_t next = 0; next < members.size(); ++next)
      for (Operation *user : members[next]->getUsers())
        if (forward.varies(user) && user->getNumOperands() == 1 &&
            (isView(user) ||
             isa<nn::CastOp, nn::TransposeOp, dist::ReshardOp>(user)))
          members.insert(user);
  }

  const ForwardModules &forward;
};
} // namespace

PartFinder::Members
PartFinder::search(Operation *from, bool isUpwards,
                   function_ref<bool(Operation *)> isEnd) const {
  Members ends;
  llvm::SetVector<Operation *> work;
  work.insert(from);
  for (size_t next = 0; next < work.size(); ++next) {
    auto visit = [&](Operation *op) {
      if (!op || !forward.varies(op))
        return;
      if (isEnd(op))
        ends.insert(op);
      else if (isPassing(op) && !isResidual(op))
        work.insert(op);
    };
    if (isUpwards)
      for (Value operand : work[next]->getOperands())
        visit(operand.getDefiningOp());
    else
      for (Operation *user : work[next]->getUsers())
        visit(user);
  }
  return ends;
}

/// From the product of queries and keys to that with values.
std::vector<Segment> PartFinder::findAttention() {
  std::vector<Segment> segments;
  auto isOfPair = [&](Operation *op) {
    return isa<nn::MatmulOp>(op) && countVarying(op) == 2;
  };
  for (Operation *op : forward.getOps()) {
    if (!isa<nn::SoftmaxOp>(op))
      continue;
    Members scores = search(op, true, isOfPair),
            values = search(op, false, isOfPair);
    if (scores.empty() || values.empty())
      continue;
    scores.insert(op);
    scores.insert(values.begin(), values.end());
    segments.push_back(make(std::move(scores), op, "core_attn", false));
  }
  return segments;
}

/// Whether the innermost module of an op is called a normalisation.
static bool isCalledNorm(ArrayRef<std::string> modules) {
  if (modules.empty())
    return false;
  std::string last = StringRef(modules.back()).rsplit('.').second.lower();
  StringRef name = last;
  return name.contains("norm") || name == "ln" || name.starts_with("ln_");
}

/// Layer normalisations, and what lies in modules of that name, which is how
/// root mean squares are told from other means. Little work makes all of a
/// result again.
std::vector<Segment> PartFinder::findNorms() {
  std::vector<Segment> segments;
  std::map<std::string, size_t> ofModule;
  for (Operation *op : forward.getOps()) {
    ArrayRef<std::string> modules = forward.getModules(op);
    if (isa<nn::LayerNormOp>(op)) {
      Members only;
      only.insert(op);
      addMoved(only);
      segments.push_back({describe(op, "layernorm"), only, true});
    } else if (isCalledNorm(modules)) {
      auto [at, isNew] = ofModule.try_emplace(modules.back(), segments.size());
      if (isNew)
        segments.push_back({modules.back(), {}, true});
      segments[at->second].members.insert(op);
    }
  }
  for (Segment &segment : segments)
    addMoved(segment.members);
  return segments;
}

/// From the first products with weights through an activation to the last.
std::vector<Segment> PartFinder::findFeedForwards() {
  std::vector<Segment> segments;
  llvm::DenseSet<Operation *> taken;
  auto isWeighted = [&](Operation *op) { return isProjection(op); };
  for (Operation *op : forward.getOps()) {
    if (!isActivation(op) || taken.contains(op) || forward.getLayer(op).empty())
      continue;
    Members products = search(op, true, isWeighted),
            last = search(op, false, isWeighted);
    if (products.empty() || last.empty())
      continue;
    // A gate has another product beside it.
    for (Operation *product : llvm::to_vector(last)) {
      Members beside = search(product, true, isWeighted);
      products.insert(beside.begin(), beside.end());
    }
    products.insert(op);
    products.insert(last.begin(), last.end());
    segments.push_back(make(std::move(products), op, "mlp", false));
    taken.insert(segments.back().members.begin(),
                 segments.back().members.end());
  }
  return segments;
}

/// What lies between the products of experts.
std::vector<Segment> PartFinder::findActivationsOfExperts() {
  std::vector<Segment> segments;
  llvm::DenseSet<Operation *> taken;
  auto isOfExperts = [](Operation *op) { return isa<nn::GroupedMatmulOp>(op); };
  for (Operation *op : forward.getOps()) {
    if (!isActivation(op) || taken.contains(op))
      continue;
    Members products = search(op, true, isOfExperts),
            last = search(op, false, isOfExperts);
    if (products.empty() || last.empty())
      continue;
    for (Operation *product : llvm::to_vector(last)) {
      Members beside = search(product, true, isOfExperts);
      products.insert(beside.begin(), beside.end());
    }
    Members ends = products;
    ends.insert(last.begin(), last.end());
    products.insert(op);
    products.insert(last.begin(), last.end());
    Segment segment = make(std::move(products), op, "moe_act", true);
    segment.members.remove_if(
        [&](Operation *member) { return ends.contains(member); });
    addMoved(segment.members);
    taken.insert(segment.members.begin(), segment.members.end());
    segments.push_back(std::move(segment));
  }
  return segments;
}

/// The innermost modules that have both a choice of experts and their products.
std::vector<Segment> PartFinder::findExperts() {
  llvm::StringMap<unsigned> has;
  for (Operation *op : forward.getOps())
    if (isa<nn::TopKOp, nn::GroupedMatmulOp>(op))
      for (const std::string &module : forward.getModules(op))
        has[module] |= isa<nn::TopKOp>(op) ? 1 : 2;
  std::vector<Segment> segments;
  std::map<std::string, size_t> ofModule;
  for (Operation *op : forward.getOps()) {
    if (forward.getLayer(op).empty())
      continue;
    // Innermost of those that have both, of those the op lies in.
    std::string innermost;
    for (const std::string &module : forward.getModules(op))
      if (has.lookup(module) == 3 &&
          module.size() > forward.getLayer(op).size())
        innermost = module;
    if (innermost.empty())
      continue;
    auto [at, isNew] = ofModule.try_emplace(innermost, segments.size());
    if (isNew)
      segments.push_back({innermost, {}, false});
    segments[at->second].members.insert(op);
  }
  for (Segment &segment : segments)
    forward.fill(segment.members,
                 [&](Operation *op) { return forward.getModules(op).empty(); });
  return segments;
}

std::vector<Segment> PartFinder::findSharedExperts() {
  std::vector<Segment> segments;
  std::map<std::string, size_t> ofModule;
  for (Operation *op : forward.getOps())
    for (const std::string &module : forward.getModules(op)) {
      if (!StringRef(module).rsplit('.').second.starts_with("shared_expert"))
        continue;
      auto [at, isNew] = ofModule.try_emplace(module, segments.size());
      if (isNew)
        segments.push_back({module, {}, false});
      segments[at->second].members.insert(op);
      break;
    }
  return segments;
}

std::vector<Segment> parallel::findPart(StringRef part,
                                        const ForwardModules &forward) {
  PartFinder finder(forward);
  if (part == "core_attn")
    return finder.findAttention();
  if (part == "layernorm")
    return finder.findNorms();
  if (part == "mlp")
    return finder.findFeedForwards();
  if (part == "moe")
    return finder.findExperts();
  if (part == "moe_act")
    return finder.findActivationsOfExperts();
  assert(part == "shared_experts" && "Policy.cpp has checked it");
  return finder.findSharedExperts();
}
