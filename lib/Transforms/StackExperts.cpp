// Loops over experts: finding the sums, and making one state of parameters that
// are one computation's.

#include "ExpertRows.h"
#include "Passes.h"
#include "dialects/NN/Entry.h"

using namespace mlir;

namespace accel::transforms {
#define GEN_PASS_DEF_STACKEXPERTSPASS
#include "lib/Transforms/Passes.h.inc"

namespace {

/// What is added up: `terms`, by `adds`.
struct Sum {
  SmallVector<Value> terms;
  SmallVector<Operation *> adds;
};

bool isInnerAdd(Operation *op) {
  return isa<nn::AddOp>(op) && op->hasOneUse() &&
         isa<nn::AddOp>(*op->user_begin());
}

Sum findSum(nn::AddOp root) {
  Sum sum;
  SmallVector<Value> left{root.getResult()};
  while (!left.empty()) {
    Value next = left.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || (op != root && !isInnerAdd(op))) {
      sum.terms.push_back(next);
      continue;
    }
    sum.adds.push_back(op);
    left.push_back(op->getOperand(1)); // the first comes first
    left.push_back(op->getOperand(0));
  }
  return sum;
}

/// What names begin and end with in common, and '*' for what differs.
std::string joinNames(ArrayRef<nn::StateOp> members) {
  auto names = llvm::map_to_vector(
      members, [](nn::StateOp member) { return member.getSymName(); });
  StringRef head = names.front();
  for (StringRef name : names)
    while (!name.starts_with(head))
      head = head.drop_back();
  StringRef tail = names.front().drop_front(head.size());
  for (StringRef name : names)
    while (!name.drop_front(head.size()).ends_with(tail))
      tail = tail.drop_front();
  return (head + "*" + tail).str();
}

/// Why the parameters cannot be one; nothing if they can.
std::optional<std::string> whyNot(ArrayRef<nn::StateOp> members) {
  nn::StateOp first = members.front();
  for (nn::StateOp member : members) {
    if (member.getFrozen() != first.getFrozen())
      return "of '" + first.getSymName().str() + "' and '" +
             member.getSymName().str() + "' one is trained";
    if (member.getAliases())
      return "'" + member.getSymName().str() + "' has another name";
    if (member.getRole() != nn::StateRole::parameter ||
        !member.getMembers().empty())
      return "'" + member.getSymName().str() + "' is no parameter";
  }
  return std::nullopt;
}

class Stacker {
public:
  explicit Stacker(func::FuncOp entry)
      : entry(entry), symbols(entry->getParentOfType<ModuleOp>()) {}

  void run() {
    SmallVector<nn::AddOp> roots;
    for (auto add : entry.getOps<nn::AddOp>())
      if (!isInnerAdd(add))
        roots.push_back(add);
    for (nn::AddOp root : roots)
      if (!erased.contains(root))
        stackTerms(root);
  }

private:
  void stackTerms(nn::AddOp root);
  bool stack(nn::AddOp root, const Sum &sum, const AlikeTerms &terms);
  bool isOwn(const Sum &sum, const AlikeTerms &terms);
  SmallVector<nn::StateOp> getMembers(const AlikeTerms &terms,
                                      const ExpertRows &rows, Value parameter);
  void declare(ArrayRef<nn::StateOp> members, Operation *placeholder);
  void erase(ArrayRef<Operation *> ops);

  func::FuncOp entry;
  SymbolTable symbols;
  llvm::DenseSet<Operation *> erased;
};

/// Tries each group of terms that are alike.
void Stacker::stackTerms(nn::AddOp root) {
  Sum sum = findSum(root);
  // An expert that is added twice counts twice.
  auto isRepeated = [&](Value term) {
    return llvm::count(sum.terms, term) > 1;
  };
  llvm::SmallDenseSet<Value> taken;
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    Operation *op = sum.terms[i].getDefiningOp();
    if (!isa_and_nonnull<nn::MulOp, nn::SelectOp, nn::ReshapeOp,
                         nn::TransposeOp, nn::ReduceOp>(op) ||
        taken.contains(sum.terms[i]) || isRepeated(sum.terms[i]))
      continue;
    AlikeTerms terms(sum.terms[i]);
    for (Value other : ArrayRef(sum.terms).drop_front(i + 1))
      if (!taken.contains(other) && !isRepeated(other) && terms.add(other))
        taken.insert(other);
    if (terms.getTerms().size() > 1 &&
        terms.variesByParameter(terms.getFirst()) && isOwn(sum, terms) &&
        stack(root, sum, terms))
      return;
  }
}

/// Whether nobody else reads what has parameters.
bool Stacker::isOwn(const Sum &sum, const AlikeTerms &terms) {
  llvm::DenseSet<Operation *> own(sum.adds.begin(), sum.adds.end());
  llvm::DenseSet<Value> values;
  for (Value value : terms.getOfParameters())
    for (Value each : terms.getAll(value)) {
      values.insert(each);
      if (Operation *op = each.getDefiningOp())
        own.insert(op);
    }
  return llvm::all_of(values, [&](Value value) {
    return llvm::all_of(value.getUsers(),
                        [&](Operation *user) { return own.contains(user); });
  });
}

SmallVector<nn::StateOp> Stacker::getMembers(const AlikeTerms &terms,
                                             const ExpertRows &rows,
                                             Value parameter) {
  SmallVector<Value> all = terms.getAll(parameter);
  return llvm::map_to_vector(rows.getOrder(), [&](size_t term) {
    auto name = entry.getArgAttrOfType<FlatSymbolRefAttr>(
        cast<BlockArgument>(all[term]).getArgNumber(), nn::kStateAttr);
    return symbols.lookup<nn::StateOp>(name.getAttr());
  });
}

/// Makes the sum of `terms` one computation; false if they are no experts.
bool Stacker::stack(nn::AddOp root, const Sum &sum, const AlikeTerms &terms) {
  Operation *before = root->getPrevNode();
  OpBuilder builder(root);
  ExpertRows rows(terms, builder, root.getLoc());
  Value result = rows.build();
  std::optional<std::string> reason;
  llvm::SmallDenseSet<Operation *> seen;
  if (result)
    for (auto [parameter, placeholder] : rows.getStacks()) {
      SmallVector<nn::StateOp> members = getMembers(terms, rows, parameter);
      for (nn::StateOp member : members)
        if (!seen.insert(member).second)
          reason = "'" + member.getSymName().str() + "' is of two experts";
      if (!reason)
        reason = whyNot(members);
    }
  if (!result || reason) {
    if (reason)
      root.emitWarning() << "the " << terms.getTerms().size()
                         << " experts that are added up here stay separate, "
                            "on every rank: "
                         << *reason;
    while (root->getPrevNode() != before)
      root->getPrevNode()->erase();
    return false;
  }
  for (auto [parameter, placeholder] : rows.getStacks())
    declare(getMembers(terms, rows, parameter), placeholder);

  // The others are added as they were, and the experts where the first was.
  Value total;
  for (Value term : sum.terms) {
    if (term == terms.getFirst())
      term = result;
    else if (llvm::is_contained(terms.getTerms(), term))
      continue;
    total =
        total ? nn::AddOp::create(builder, root.getLoc(), total, term) : term;
  }
  root.replaceAllUsesWith(total);
  SmallVector<Operation *> gone(sum.adds);
  for (Value value : terms.getOfParameters())
    for (Value each : terms.getAll(value))
      if (Operation *op = each.getDefiningOp())
        gone.push_back(op);
  erase(gone);
  return true;
}

/// Gives the entry the stack in the place of its members.
void Stacker::declare(ArrayRef<nn::StateOp> members, Operation *placeholder) {
  auto refs = llvm::map_to_vector(members, [](nn::StateOp member) -> Attribute {
    return FlatSymbolRefAttr::get(member.getSymNameAttr());
  });
  std::string name = joinNames(members);
  while (symbols.lookup(name))
    name += "_";
  nn::StateOp first = members.front();
  auto type = cast<RankedTensorType>(placeholder->getResult(0).getType());
  OpBuilder builder(first);
  Location loc = NameLoc::get(builder.getStringAttr(name));
  auto stack = nn::StateOp::create(
      builder, loc, name, type, builder.getArrayAttr(refs),
      /*aliases=*/nullptr, /*initializers=*/nullptr, /*stored=*/nullptr,
      /*logical=*/nullptr, first.getFrozen(), nn::StateRole::parameter);
  symbols.insert(stack);
  auto isFirst = [&](BlockArgument argument) {
    return entry.getArgAttr(argument.getArgNumber(), nn::kStateAttr) ==
           refs.front();
  };
  unsigned place = llvm::find_if(entry.getArguments(), isFirst)->getArgNumber();
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr(
      nn::kStateAttr, FlatSymbolRefAttr::get(stack.getSymNameAttr())));
  (void)entry.insertArgument(place, type, attributes, loc);
  placeholder->replaceAllUsesWith(ValueRange(entry.getArgument(place)));
  placeholder->erase();
}

/// The ops, none of which anybody else reads, and the arguments that nobody
/// reads then.
void Stacker::erase(ArrayRef<Operation *> ops) {
  llvm::BitVector unread(entry.getNumArguments());
  llvm::SetVector<Operation *> left(ops.begin(), ops.end());
  SmallVector<Operation *> ordered = left.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *op : ordered) {
    for (Value operand : op->getOperands())
      if (isStateArgument(operand))
        unread.set(cast<BlockArgument>(operand).getArgNumber());
    erased.insert(op);
    op->erase();
  }
  for (BlockArgument argument : entry.getArguments())
    if (!argument.use_empty())
      unread.reset(argument.getArgNumber());
  (void)entry.eraseArguments(unread);
}

struct StackExpertsPass : impl::StackExpertsPassBase<StackExpertsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (func::FuncOp entry : nn::getEntries(getOperation()))
      Stacker(entry).run();
  }
};

} // namespace
} // namespace accel::transforms
