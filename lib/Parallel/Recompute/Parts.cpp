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
         isa<nn::TransposeOp, nn::BroadcastOp, nn::SliceOp, dist::ReshardOp>(
             op);
}

namespace {
class PartFinder {
public:
  explicit PartFinder(const ForwardModules &forward) : forward(forward) {}

  std::vector<Segment> findAttention();
  std::vector<Segment> findNorms();
  std::vector<Segment> findFeedForwards();
  /// Of which the products are such.
  std::vector<Segment>
  findActivations(StringRef part, function_ref<bool(Operation *)> isProduct);
  std::vector<Segment> findExperts();
  std::vector<Segment> findSharedExperts();

  /// A product of what varies with a weight.
  bool isProjection(Operation *op) const {
    return isa<nn::MatmulOp>(op) && countVarying(op) == 1;
  }

private:
  using Members = llvm::SetVector<Operation *>;
  /// The ops of `isEnd` that are reached over ops that pass elements on,
  /// through operands or through users.
  Members search(Operation *from, bool isUpwards,
                 function_ref<bool(Operation *)> isEnd) const;
  /// What an activation lies between.
  struct Products {
    Members first; ///< those that it is made of, and those of a gate beside it
    Members last;  ///< those that read it
  };
  Products findProducts(Operation *activation,
                        function_ref<bool(Operation *)> isProduct) const;
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
  std::vector<std::string> names;
  for (auto [number, op] : llvm::enumerate(forward.getOps())) {
    ArrayRef<std::string> modules = forward.getModules(op);
    std::string &name = names.emplace_back();
    if (isCalledNorm(modules) || (isa<nn::LayerNormOp>(op) && !modules.empty()))
      name = describe(op, "layernorm");
    else if (isa<nn::LayerNormOp>(op))
      name = "layernorm " + std::to_string(number);
  }
  std::vector<Segment> segments = forward.group(names);
  for (Segment &segment : segments) {
    segment.discards = true;
    addMoved(segment.members);
  }
  return segments;
}

PartFinder::Products
PartFinder::findProducts(Operation *activation,
                         function_ref<bool(Operation *)> isProduct) const {
  Products products{search(activation, true, isProduct),
                    search(activation, false, isProduct)};
  for (Operation *product : products.last) {
    Members beside = search(product, true, isProduct);
    products.first.insert(beside.begin(), beside.end());
  }
  return products;
}

/// From the first products with weights through an activation to the last.
std::vector<Segment> PartFinder::findFeedForwards() {
  std::vector<Segment> segments;
  llvm::DenseSet<Operation *> taken;
  for (Operation *op : forward.getOps()) {
    if (!isActivation(op) || taken.contains(op) || forward.getLayer(op).empty())
      continue;
    auto [members, last] =
        findProducts(op, [&](Operation *each) { return isProjection(each); });
    if (members.empty() || last.empty())
      continue;
    members.insert(op);
    members.insert(last.begin(), last.end());
    segments.push_back(make(std::move(members), op, "mlp", false));
    taken.insert(segments.back().members.begin(),
                 segments.back().members.end());
  }
  return segments;
}

/// What lies between products: little work makes it again.
std::vector<Segment>
PartFinder::findActivations(StringRef part,
                            function_ref<bool(Operation *)> isProduct) {
  std::vector<Segment> segments;
  llvm::DenseSet<Operation *> taken;
  for (Operation *op : forward.getOps()) {
    if (!isActivation(op) || taken.contains(op) || forward.getLayer(op).empty())
      continue;
    auto [members, last] = findProducts(op, isProduct);
    if (members.empty() || last.empty())
      continue;
    members.insert(last.begin(), last.end());
    Members ends = members;
    members.insert(op);
    Segment segment = make(std::move(members), op, part, true);
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
  std::vector<std::string> names;
  for (Operation *op : forward.getOps()) {
    std::string &innermost = names.emplace_back();
    StringRef layer = forward.getLayer(op);
    for (const std::string &module : forward.getModules(op))
      if (!layer.empty() && has.lookup(module) == 3 &&
          module.size() > layer.size())
        innermost = module;
  }
  return forward.group(names);
}

std::vector<Segment> PartFinder::findSharedExperts() {
  std::vector<std::string> names;
  for (Operation *op : forward.getOps()) {
    ArrayRef<std::string> modules = forward.getModules(op);
    const std::string *found = llvm::find_if(modules, [](StringRef module) {
      return module.rsplit('.').second.starts_with("shared_expert");
    });
    names.push_back(found == modules.end() ? "" : *found);
  }
  return forward.group(names);
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
  if (part == "mlp_act")
    return finder.findActivations(
        part, [&](Operation *op) { return finder.isProjection(op); });
  if (part == "moe")
    return finder.findExperts();
  if (part == "moe_act")
    return finder.findActivations(part, llvm::IsaPred<nn::GroupedMatmulOp>);
  assert(part == "shared_experts" && "RecomputePolicy.cpp has checked it");
  return finder.findSharedExperts();
}
