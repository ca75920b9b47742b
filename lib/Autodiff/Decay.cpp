// Which parameters weight decay pulls at: all, but for those that the user's
// rules leave out (PyTorch's groups of parameters, of which Megatron-LM and
// transformers' Trainer make two).

#include "lib/Autodiff/BuildStep.h"

#include "lib/Onnx/NamePatterns.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// `optimizer.no_decay` and `optimizer.decay`.
class DecayRules {
public:
  static FailureOr<DecayRules> compile(const UpdateRule &rule, Location loc);

  /// Whether a parameter of these names and of this shape is decayed.
  bool decide(ArrayRef<StringRef> names, ArrayRef<int64_t> shape);
  /// Fails where a pattern has matched nothing so far; `names`: all of them.
  LogicalResult checkAllMatched(ArrayRef<StringRef> names, Location loc) const;

private:
  explicit DecayRules(onnxio::NamePatterns patterns)
      : patterns(std::move(patterns)) {}

  onnxio::NamePatterns patterns;
  bool leavesVectors = false; ///< `kVectors` is said
  bool decaysNorms = false;   ///< `kQkNorms` is
  bool hasNorms = false;      ///< there are some
};
} // namespace

/// Takes `word` out of the list; whether it was there.
static bool take(std::vector<std::string> &list, StringRef word) {
  size_t before = list.size();
  llvm::erase(list, word.str());
  return list.size() != before;
}

/// What models call the norms of queries and keys: Megatron-LM's names come
/// first, transformers' after them.
static constexpr StringLiteral kNorms[] = {
    "q_layernorm", "k_layernorm",     "q_norm",        "k_norm",
    "query_norm",  "key_norm",        "q_ln",          "k_ln",
    "norm_q",      "query_layernorm", "key_layernorm", "norm_k"};

static bool isQkNorm(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  return llvm::any_of(llvm::drop_end(parts), [](StringRef part) {
    return llvm::is_contained(kNorms, part);
  });
}

FailureOr<DecayRules> DecayRules::compile(const UpdateRule &rule,
                                          Location loc) {
  std::vector<std::string> yes = rule.decay, no = rule.noDecay;
  bool decaysNorms = take(yes, kQkNorms), leavesVectors = take(no, kVectors);
  FailureOr<onnxio::NamePatterns> patterns = onnxio::NamePatterns::compile(
      yes, no, loc, {"optimizer.decay", "optimizer.no_decay"});
  if (failed(patterns))
    return failure();
  DecayRules rules(std::move(*patterns));
  rules.decaysNorms = decaysNorms;
  rules.leavesVectors = leavesVectors;
  return rules;
}

bool DecayRules::decide(ArrayRef<StringRef> names, ArrayRef<int64_t> shape) {
  std::optional<bool> said = patterns.decide(names);
  bool isNorm = decaysNorms && llvm::any_of(names, isQkNorm);
  hasNorms |= isNorm;
  if (said == true || isNorm)
    return true;
  return said != false &&
         !(leavesVectors &&
           (shape.size() == 1 || llvm::any_of(names, [](StringRef name) {
              return name == "bias" || name.ends_with(".bias");
            })));
}

LogicalResult DecayRules::checkAllMatched(ArrayRef<StringRef> names,
                                          Location loc) const {
  if (decaysNorms && !hasNorms)
    return emitError(loc)
           << "expected norms of queries and keys with 'optimizer.decay="
           << kQkNorms << "', found no parameter of " << kNorms[0] << ", "
           << kNorms[1] << ", " << kNorms[2] << " or " << kNorms[3]
           << ": name them by --set optimizer.decay=PATTERN";
  return patterns.checkAllMatched(names, loc);
}

LogicalResult autodiff::chooseDecayed(ModuleOp module, func::FuncOp entry,
                                      const UpdateRule &rule,
                                      MutableArrayRef<Trained> trained) {
  FailureOr<DecayRules> rules = DecayRules::compile(rule, entry.getLoc());
  if (failed(rules))
    return failure();
  // A pattern may name what is not trained. Of a stack its members count, whose
  // names and shapes are the user's.
  SmallVector<StringRef> all;
  llvm::DenseMap<StringAttr, bool> decayed;
  for (auto state : module.getOps<nn::StateOp>()) {
    if (state.getRole() != nn::StateRole::parameter ||
        !state.getMembers().empty())
      continue;
    SmallVector<StringRef> names = getNames(state);
    llvm::append_range(all, names);
    decayed[state.getSymNameAttr()] =
        rules->decide(names, state.getLogicalType().getShape());
  }
  if (failed(rules->checkAllMatched(all, entry.getLoc())))
    return failure();
  for (Trained &each : trained) {
    SmallVector<FlatSymbolRefAttr> members = each.state.getMembers();
    if (members.empty()) {
      each.decayed = decayed.lookup(each.state.getSymNameAttr());
      continue;
    }
    each.decayed = decayed.lookup(members.front().getAttr());
    for (FlatSymbolRefAttr member : members)
      if (decayed.lookup(member.getAttr()) != each.decayed)
        return each.state.emitError()
               << "expected '" << member.getValue() << "' to be decayed where '"
               << members.front().getValue() << "' is, because '"
               << each.state.getSymName()
               << "' holds both: match all of them by 'optimizer.no_decay', or "
                  "none";
  }
  return success();
}
