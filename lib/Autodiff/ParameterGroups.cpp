// The groups of parameters (PyTorch's): which optimizer and numbers each has,
// which of them weight decay pulls at, and what said so, which the module keeps
// for people to see.

#include "lib/Autodiff/BuildStep.h"

#include "dialects/Accel/ParameterGroups.h"
#include "lib/Autodiff/Schedules/Course.h"
#include "lib/Onnx/NamePatterns.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

namespace {
/// Whether a parameter is decayed, and the setting that says so.
struct Decay {
  bool isDecayed;
  std::string why;
};

/// `optimizer.no_decay` and `optimizer.decay`.
class DecayRules {
public:
  static FailureOr<DecayRules> compile(const UpdateRule &rule, Location loc);

  /// Of a parameter of these names and of this shape.
  Decay decide(ArrayRef<StringRef> names, ArrayRef<int64_t> shape);
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

Decay DecayRules::decide(ArrayRef<StringRef> names, ArrayRef<int64_t> shape) {
  std::string pattern;
  std::optional<bool> said = patterns.decide(names, &pattern);
  bool isNorm = decaysNorms && llvm::any_of(names, isQkNorm);
  hasNorms |= isNorm;
  if (said == true || isNorm)
    return {true,
            "optimizer.decay=" + (said == true ? pattern : kQkNorms.str())};
  if (said == false)
    return {false, "optimizer.no_decay=" + pattern};
  auto isBias = [](StringRef name) {
    return name == "bias" || name.ends_with(".bias");
  };
  if (leavesVectors && (shape.size() == 1 || llvm::any_of(names, isBias)))
    return {false, ("optimizer.no_decay=" + kVectors).str()};
  return {true, "optimizer.weight_decay"};
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

namespace {
/// How a parameter is updated, and by which settings, of those keys that one
/// of them says.
struct Choice {
  OptimizerRule rule;
  std::map<std::string, std::string> why;
};

/// `groups[PATTERN].KEY`, in the order in which they are said.
class GroupRules {
public:
  GroupRules(const UpdateRule &rule, DecayRules decay)
      : rule(rule), others(getRuleOfOthers(rule.optimizer)),
        decay(std::move(decay)), matched(rule.groups.size()) {
    for (const GroupSetting &setting : rule.groups)
      // Checked where it was read.
      patterns.push_back(
          llvm::cantFail(llvm::GlobPattern::create(setting.pattern)));
  }

  /// `isOuter`: of the first or the last layer.
  FailureOr<Choice> decide(nn::StateOp state, bool isOuter);
  /// What is said of these names, in order; remembers which patterns matched.
  SmallVector<const GroupSetting *> match(ArrayRef<StringRef> names);
  /// Of a parameter that may not be trained.
  void note(nn::StateOp state) {
    SmallVector<StringRef> names = getNames(state);
    (void)match(names);
    (void)decay.decide(names, state.getLogicalType().getShape());
  }
  LogicalResult checkAllMatched(ArrayRef<StringRef> names, Location loc) const;

private:
  const UpdateRule &rule;
  OptimizerRule others;
  DecayRules decay;
  std::vector<llvm::GlobPattern> patterns;
  std::vector<bool> matched;
};
} // namespace

SmallVector<const GroupSetting *> GroupRules::match(ArrayRef<StringRef> names) {
  SmallVector<const GroupSetting *> said;
  for (size_t index = 0; index < patterns.size(); ++index)
    if (llvm::any_of(names, [&](StringRef name) {
          return patterns[index].match(name);
        })) {
      matched[index] = true;
      said.push_back(&rule.groups[index]);
    }
  return said;
}

FailureOr<Choice> GroupRules::decide(nn::StateOp state, bool isOuter) {
  SmallVector<StringRef> names = getNames(state);
  SmallVector<const GroupSetting *> said = match(names);
  ArrayRef<int64_t> shape = state.getLogicalType().getShape();
  bool isMatrix = shape.size() == 2;
  OptimizerRule own =
      applyGroups(isMatrix && !isOuter ? rule.optimizer : others, said);
  for (const GroupSetting *setting : said)
    if (setting->key != kGroupType && setting->key != kGroupLeast &&
        !own.kind->find(setting->key))
      return state.emitError()
             << "expected optimizer '" << own.kind->name << "' of '"
             << state.getSymName() << "' to read '" << setting->key
             << "', which groups[" << setting->pattern << "] sets";
  StringRef driven = getDrivenMomentum(rule.schedule, *own.kind);
  for (const GroupSetting *setting : said)
    if (!driven.empty() && (setting->key == driven ||
                            (setting->key == "betas" && driven == "beta1")))
      return state.emitError()
             << "expected no groups[" << setting->pattern << "]."
             << setting->key << " of '" << state.getSymName() << "', whose "
             << driven << " is that of the schedule '"
             << rule.schedule.kind->name << "'";
  setDriven(rule.schedule, own);
  if (llvm::Error error = checkNumbers(own))
    return state.emitError() << llvm::toString(std::move(error)) << ", which '"
                             << state.getSymName() << "' has by groups";
  if (!own.kind->ofOthers.empty() && !isMatrix)
    return state.emitError()
           << "expected a matrix, or a stack of matrices, for optimizer '"
           << own.kind->name << "', found '" << state.getSymName() << "' of "
           << state.getLogicalType();
  Choice choice;
  if (own.kind != rule.optimizer.kind)
    choice.why["optimizer"] =
        ("'" + rule.optimizer.kind->name + "' is of matrices of hidden layers")
            .str();
  if (own.kind->name == rule.optimizer.kind->ofOthers &&
      rule.optimizer.values.isSet("adam_lr"))
    choice.why["lr_multiplier"] = "optimizer.adam_lr";
  Decay ofAll = decay.decide(names, shape);
  choice.why["weight_decay"] = ofAll.why;
  bool saysDecay = false;
  std::string least;
  for (const GroupSetting *setting : said) {
    std::string by = "groups[" + setting->pattern + "]." + setting->key;
    saysDecay |= setting->key == "weight_decay";
    if (setting->key == kGroupType)
      choice.why["optimizer"] = by;
    else if (setting->key == "lr")
      choice.why["lr_multiplier"] = by;
    else if (setting->key == "weight_decay")
      choice.why["weight_decay"] = by;
    else if (setting->key == kGroupLeast)
      least = by + "=" + setting->value;
  }
  // A rate that is no multiple of all others' is told with the multiplier.
  if (!least.empty()) {
    std::string &rate = choice.why["lr_multiplier"];
    rate += (rate.empty() ? "" : ", ") + least;
  }
  if (!ofAll.isDecayed && !saysDecay)
    own.values.set("weight_decay", 0);
  if (own.leastLr && *own.leastLr > own.lr())
    return state.emitError()
           << "expected at most the rate " << spellNumber(own.lr()) << " of '"
           << state.getSymName() << "' as its groups[PATTERN]." << kGroupLeast
           << ", found " << spellNumber(*own.leastLr);
  if (own.lr() != rule.optimizer.lr() && rule.optimizer.lr() == 0)
    return state.emitError()
           << "expected 'optimizer.lr' above 0 with rates of groups, which the "
              "schedule scales as it does that";
  if (rule.fp8Moments) {
    llvm::Expected<OptimizerRule> coded = withFp8Moments(own);
    if (!coded)
      return state.emitError() << llvm::toString(coded.takeError()) << " of '"
                               << state.getSymName() << "'";
    own = std::move(*coded);
  }
  choice.rule = std::move(own);
  return choice;
}

LogicalResult GroupRules::checkAllMatched(ArrayRef<StringRef> names,
                                          Location loc) const {
  for (auto [setting, found] : llvm::zip(rule.groups, matched))
    if (!found)
      return emitError(loc)
             << "expected groups[" << setting.pattern << "]." << setting.key
             << " to match a parameter, found none; the nearest: "
             << onnxio::nearestNames(setting.pattern, names);
  return decay.checkAllMatched(names, loc);
}

/// What `accel.parameter_groups` has: parameters that are updated alike, and
/// for the same reasons, together.
static Attribute describeGroups(ArrayRef<std::pair<StringRef, Choice>> choices,
                                double lr, MLIRContext *context) {
  Builder builder(context);
  llvm::MapVector<Attribute, SmallVector<StringRef>> groups;
  for (auto &[name, choice] : choices) {
    NamedAttrList why, group;
    for (auto &[key, setting] : choice.why)
      why.set(key, builder.getStringAttr(setting));
    double own = choice.rule.lr();
    group.set("lr_multiplier",
              builder.getF64FloatAttr(own == lr ? 1 : own / lr));
    group.set("optimizer", builder.getStringAttr(choice.rule.kind->name));
    group.set("weight_decay",
              builder.getF64FloatAttr(choice.rule.values.get("weight_decay")));
    group.set("why", why.getDictionary(context));
    groups[group.getDictionary(context)].push_back(name);
  }
  SmallVector<Attribute> all;
  for (auto &[group, names] : groups) {
    NamedAttrList whole(cast<DictionaryAttr>(group));
    whole.set("parameters", builder.getStrArrayAttr(names));
    all.push_back(whole.getDictionary(context));
  }
  return builder.getArrayAttr(all);
}

LogicalResult autodiff::chooseGroups(ModuleOp module, func::FuncOp entry,
                                     const UpdateRule &rule,
                                     MutableArrayRef<Trained> trained) {
  FailureOr<DecayRules> decay = DecayRules::compile(rule, entry.getLoc());
  if (failed(decay))
    return failure();
  GroupRules rules(rule, std::move(*decay));
  // A pattern may name what is not trained. Of a stack its members count, whose
  // names and shapes are the user's.
  SmallVector<StringRef> all;
  for (auto state : module.getOps<nn::StateOp>()) {
    if (state.getRole() != nn::StateRole::parameter ||
        !state.getMembers().empty())
      continue;
    rules.note(state);
    llvm::append_range(all, getNames(state));
  }
  DenseSet<Value> outer = findOuterLayers(entry);
  SymbolTable symbols(module);
  std::vector<std::pair<StringRef, Choice>> choices;
  for (Trained &each : trained) {
    SmallVector<FlatSymbolRefAttr> members = each.state.getMembers();
    bool isOuter = outer.contains(each.argument);
    if (members.empty()) {
      FailureOr<Choice> own = rules.decide(each.state, isOuter);
      if (failed(own))
        return failure();
      each.rule = own->rule;
      choices.emplace_back(each.state.getSymName(), std::move(*own));
      continue;
    }
    for (auto [index, member] : llvm::enumerate(members)) {
      FailureOr<Choice> own =
          rules.decide(symbols.lookup<nn::StateOp>(member.getAttr()), isOuter);
      if (failed(own))
        return failure();
      choices.emplace_back(member.getValue(), *own);
      if (index == 0)
        each.rule = own->rule;
      else if (own->rule < each.rule || each.rule < own->rule)
        return each.state.emitError()
               << "expected '" << member.getValue() << "' to be updated as '"
               << members.front().getValue() << "' is, because '"
               << each.state.getSymName()
               << "' holds both: match all of them by 'optimizer.no_decay' or "
                  "groups[PATTERN], or none";
    }
  }
  module->setAttr(
      kParameterGroupsAttr,
      describeGroups(choices, rule.optimizer.lr(), module.getContext()));
  return rules.checkAllMatched(all, entry.getLoc());
}
