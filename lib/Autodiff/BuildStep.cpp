// From a forward program to one training step: loss, gradients, update, skip.

#include "lib/Autodiff/BuildStep.h"
#include "Differentiate.h"
#include "Passes.h"
#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/Update.h"

#include <map>

using namespace mlir;

namespace accel::autodiff {
#define GEN_PASS_DEF_BUILDSTEPPASS
#include "lib/Autodiff/Passes.h.inc"

namespace {

/// A state that the step writes.
struct Write {
  nn::StateOp state;
  BlockArgument old;
  Value value;
};

/// A state to be declared, and the chunk of a pipeline that owns it.
struct NewState {
  std::string name;
  RankedTensorType type;
  int64_t chunk = 0;
};

class StepBuilder {
public:
  StepBuilder(ModuleOp module, func::FuncOp entry, const UpdateRule &rule)
      : module(module), entry(entry), rule(rule), builder(module.getContext()),
        symbols(module) {}

  LogicalResult run(StringRef lossSpec, ArrayRef<std::string> trainable,
                    ArrayRef<std::string> frozen, bool emitGradients);

private:
  FailureOr<SmallVector<Write>> addStates(ArrayRef<NewState> wanted,
                                          nn::StateRole role);
  void keepOnly(Value loss);
  LogicalResult markGradients(Value loss);
  LogicalResult update(Value loss, bool emitGradients);
  void addResult(Value value, StringRef output) {
    results.push_back(value);
    resultAttributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(nn::kOutputAttr, builder.getStringAttr(output))));
  }
  void addGradient(nn::StateOp state, Value gradient);
  void finish();
  Location named(const Twine &name) {
    return NameLoc::get(builder.getStringAttr(name));
  }

  ModuleOp module;
  func::FuncOp entry;
  UpdateRule rule;
  OpBuilder builder;
  SymbolTable symbols;
  BlockArgument counter;
  SmallVector<Trained> trained;
  /// Marked gradients of `trained`; null where the loss does not depend on it.
  SmallVector<Value> gradients;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttributes;
};

} // namespace

/// Declares states that are zero at first, and takes them as arguments: all at
/// once, since each argument added makes the function's type anew.
FailureOr<SmallVector<Write>> StepBuilder::addStates(ArrayRef<NewState> wanted,
                                                     nn::StateRole role) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(entry);
  SmallVector<Write> added;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  for (auto &[name, type, chunk] : wanted) {
    if (Operation *other = symbols.lookup(name))
      return other->emitError()
             << "expected no symbol '" << name
             << "' in a forward program: training needs the name";
    auto state = nn::StateOp::create(
        builder, named(name), name, type,
        DenseElementsAttr::get(type,
                               builder.getZeroAttr(type.getElementType())),
        /*aliases=*/nullptr, /*initializers=*/nullptr, /*stored=*/nullptr,
        /*logical=*/nullptr, /*frozen=*/false, role, chunk);
    symbols.insert(state);
    added.push_back({state, nullptr, nullptr});
    types.push_back(type);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(state.getSymNameAttr()))));
    locations.push_back(state.getLoc());
  }
  // The counter stays last.
  unsigned place = counter ? counter.getArgNumber() : entry.getNumArguments();
  if (failed(entry.insertArguments(SmallVector<unsigned>(wanted.size(), place),
                                   types, attributes, locations)))
    return failure();
  for (Write &write : added)
    write.old = entry.getArgument(place++);
  return added;
}

/// Makes the loss the only result, and drops what it does not need.
void StepBuilder::keepOnly(Value loss) {
  Block &body = entry.getBody().front();
  body.getTerminator()->setOperands(loss);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty() && isPure(&op))
      op.erase();
}

LogicalResult StepBuilder::markGradients(Value loss) {
  SmallVector<Value> parameters;
  for (const Trained &each : trained)
    parameters.push_back(each.argument);
  FailureOr<SmallVector<Value>> found =
      differentiate(builder, loss, parameters);
  if (failed(found))
    return failure();
  gradients = *found;
  std::string independent;
  for (auto [each, gradient] : llvm::zip(trained, gradients)) {
    if (gradient)
      gradient = nn::GradientOp::create(
          builder, named("gradient of " + each.state.getSymName()), gradient,
          each.state.getSymName());
    else
      independent += (independent.empty() ? "'" : ", '") +
                     each.state.getSymName().str() + "'";
  }
  if (llvm::none_of(gradients, [](Value value) { return bool(value); }))
    return emitError(loss.getLoc())
           << "expected a loss that depends on a trained parameter, found none";
  if (!independent.empty())
    entry.emitWarning() << "the loss does not depend on parameters "
                        << independent
                        << ": their gradients are zero, and the update leaves "
                           "them as they are";
  return success();
}

/// Stopped gradients are stopped: the ops that did it have done their work.
/// Returns what `loss` is then.
static Value dropStops(func::FuncOp entry, Value loss) {
  for (auto stop : llvm::make_early_inc_range(
           entry.getBody().front().getOps<nn::StopGradientOp>())) {
    if (loss == stop.getResult())
      loss = stop.getInput();
    stop.replaceAllUsesWith(stop.getInput());
    stop.erase();
  }
  return loss;
}

/// Of a stack each member's own, by its name.
void StepBuilder::addGradient(nn::StateOp state, Value gradient) {
  SmallVector<FlatSymbolRefAttr> members = state.getMembers();
  if (members.empty())
    return addResult(gradient, (state.getSymName() + ".grad").str());
  RankedTensorType type = NNBuilder::typeOf(gradient);
  SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()),
      steps(type.getRank(), 1);
  sizes[0] = 1;
  for (auto [row, member] : llvm::enumerate(members)) {
    starts[0] = row;
    NNBuilder own{builder, named("gradient of " + member.getValue())};
    Value slice = own.make<nn::SliceOp>(gradient, starts, sizes, steps);
    addResult(own.make<nn::ReshapeOp>(type.clone(type.getShape().drop_front()),
                                      slice),
              (member.getValue() + ".grad").str());
  }
}

LogicalResult StepBuilder::update(Value loss, bool emitGradients) {
  NNBuilder build{builder, named("update")};
  Type element = NNBuilder::typeOf(loss).getElementType();
  // Each chunk of a pipeline adds up its own.
  std::map<int64_t, SmallVector<Value>> present;
  for (auto [each, gradient] : llvm::zip(trained, gradients))
    if (gradient)
      present[each.state.getChunk()].push_back(gradient);
  NNBuilder ofNorm{builder, named("gradient norm")};
  Value squares;
  for (auto &[chunk, own] : present) {
    Value sum = buildSumOfSquares(ofNorm, own, element);
    squares = squares ? ofNorm.add(squares, sum) : sum;
  }
  Value norm = ofNorm.sqrt(squares);
  Value isFinite =
      build.make<nn::AndOp>(build.isFinite(norm), build.isFinite(loss));
  Value clip;
  if (rule.clipping)
    clip = build.make<nn::MinOp>(
        build.splat(build.scalarType(element), 1),
        build.div(
            build.splat(build.scalarType(element), *rule.clipping),
            build.add(norm, build.splat(build.scalarType(element), 1e-6))));
  Value next = build.add(counter, build.i64(1));
  Value step = build.cast(next, builder.getF64Type());
  Value lr = buildLearningRate({builder, named("learning rate")}, rule, step);
  UpdateScalars scalars = buildUpdateScalars(build, rule, lr, step);

  SmallVector<Write> parameters;
  SmallVector<SmallVector<Write>> moments;
  SmallVector<bool> isDecayed;
  for (auto [each, gradient] : llvm::zip(trained, gradients)) {
    if (!gradient)
      continue;
    parameters.push_back({each.state, each.argument, gradient});
    isDecayed.push_back(each.decayed);
  }
  std::vector<NewState> wanted;
  for (auto prefix : momentNames(rule))
    for (Write &write : parameters)
      wanted.push_back({(prefix + "/" + write.state.getSymName()).str(),
                        NNBuilder::typeOf(write.old),
                        int64_t(write.state.getChunk())});
  FailureOr<SmallVector<Write>> added =
      addStates(wanted, nn::StateRole::moment);
  if (failed(added))
    return failure();
  for (size_t group = 0; group < momentNames(rule).size(); ++group)
    moments.emplace_back(
        ArrayRef(*added).slice(group * parameters.size(), parameters.size()));
  for (auto [index, write] : llvm::enumerate(parameters)) {
    NNBuilder own{builder, named("update of " + write.state.getSymName())};
    Value gradient = write.value;
    if (clip)
      gradient = own.mul(gradient, own.like(clip, gradient));
    SmallVector<Value> old;
    for (auto &group : moments)
      old.push_back(group[index].old);
    Updated updated = buildUpdate(own, rule, scalars, isDecayed[index],
                                  write.old, gradient, old);
    Value keep = own.spread(isFinite, NNBuilder::typeOf(write.old).getShape());
    write.value = own.select(keep, updated.parameter, write.old);
    for (auto [group, value] : llvm::zip(moments, updated.moments))
      group[index].value = own.select(keep, value, group[index].old);
  }

  addResult(loss, "loss");
  addResult(norm, "grad_norm");
  addResult(build.cast(lr, element), "lr");
  for (auto [each, gradient] : llvm::zip(trained, gradients))
    if (emitGradients)
      addGradient(each.state,
                  gradient ? gradient
                           : build.splat(NNBuilder::typeOf(each.argument), 0));
  auto addWrite = [&](nn::StateOp state, Value value) {
    results.push_back(value);
    resultAttributes.push_back(builder.getDictionaryAttr({builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(state.getSymNameAttr()))}));
  };
  for (Write &write : parameters)
    addWrite(write.state, write.value);
  for (auto &group : moments)
    for (Write &write : group)
      addWrite(write.state, write.value);
  addWrite(symbols.lookup<nn::StateOp>(kStepCounterName),
           build.select(isFinite, next, counter));
  return success();
}

/// Gives the entry its results and its name.
void StepBuilder::finish() {
  Block &body = entry.getBody().front();
  body.getTerminator()->setOperands(results);
  entry.setFunctionType(builder.getFunctionType(
      entry.getArgumentTypes(), ValueRange(results).getTypes()));
  entry.setAllResultAttrs(resultAttributes);
  entry.setSymName(kStepName);
  nn::setEntryKind(entry, nn::EntryKind::step);
  if (rule.seed != 0)
    module->setAttr(kSeedAttr, builder.getI64IntegerAttr(rule.seed));
}

LogicalResult StepBuilder::run(StringRef lossSpec,
                               ArrayRef<std::string> trainable,
                               ArrayRef<std::string> frozen,
                               bool emitGradients) {
  if (auto reason = module->getAttrOfType<StringAttr>(kUntrainableAttr))
    return entry.emitError()
           << "cannot train this module: " << reason.getValue();
  Operation *other = module.lookupSymbol(kStepName);
  if (other && other != entry)
    return other->emitError() << "expected no symbol '" << kStepName
                              << "' in a forward program: training needs the "
                                 "name";
  FailureOr<Value> loss = buildLoss(entry, lossSpec);
  if (failed(loss))
    return failure();
  keepOnly(*loss);
  auto chosen = chooseTrained(module, entry, trainable, frozen);
  if (failed(chosen) || failed(chooseDecayed(module, entry, rule, *chosen)))
    return failure();
  trained = *chosen;
  if (llvm::none_of(trained, [](const Trained &one) { return one.decayed; }))
    rule.weightDecay = 0;
  FailureOr<SmallVector<Write>> count =
      addStates({{std::string(kStepCounterName),
                  RankedTensorType::get({}, builder.getI64Type())}},
                nn::StateRole::counter);
  if (failed(count))
    return failure();
  counter = count->front().old;
  expandDropout(entry, counter, rule.seed);
  builder.setInsertionPoint(entry.getBody().front().getTerminator());
  // Dropout may have replaced it.
  Value scalar = entry.getBody().front().getTerminator()->getOperand(0);
  if (failed(markGradients(scalar)))
    return failure();
  scalar = dropStops(entry, scalar);
  if (failed(update(scalar, emitGradients)))
    return failure();
  finish();
  return success();
}

namespace {
struct BuildStepPass : impl::BuildStepPassBase<BuildStepPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<UpdateRule> rule = parseUpdateRule(
        optimizer, SmallVector<std::string>(settings.begin(), settings.end()));
    if (!rule) {
      module.emitError() << llvm::toString(rule.takeError());
      return signalPassFailure();
    }
    func::FuncOp entry = nn::findEntry(module, nn::EntryKind::forward);
    if (!entry) {
      module.emitError() << "expected a forward entry, found none";
      return signalPassFailure();
    }
    StepBuilder step(module, entry, *rule);
    if (failed(step.run(
            loss, SmallVector<std::string>(trainable.begin(), trainable.end()),
            SmallVector<std::string>(frozen.begin(), frozen.end()),
            emitGradients)))
      signalPassFailure();
  }
};
} // namespace
} // namespace accel::autodiff
