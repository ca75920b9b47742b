// From a forward program to one training step: loss, gradients, verdict,
// update.

#include "lib/Autodiff/BuildStep.h"
#include "BatchNorm.h"
#include "Differentiate.h"
#include "Passes.h"
#include "StepStates.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/Optimizers/Optimizer.h"
#include "lib/Autodiff/Schedule.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace accel::autodiff {
#define GEN_PASS_DEF_BUILDSTEPPASS
#include "lib/Autodiff/Passes.h.inc"

namespace {

/// What the average of a parameter is called, before its name.
constexpr StringLiteral kAverage = "ema/";

/// A parameter that the loss depends on.
struct Updating {
  const Trained *trained;
  Value gradient;
  const Optimizer *optimizer;
  SmallVector<Write> states; ///< that the optimizer keeps beside it
  Write average = {};        ///< of it; without a state where none is kept
};

class StepBuilder {
public:
  StepBuilder(ModuleOp module, func::FuncOp entry, const UpdateRule &rule)
      : module(module), entry(entry), rule(rule), builder(module.getContext()),
        symbols(module), evaluatesAverages(rule.evaluatesAverages),
        scaler(rule.scaler) {}

  LogicalResult run(StringRef lossSpec, ArrayRef<std::string> trainable,
                    ArrayRef<std::string> frozen, const BatchNormScope &norms,
                    ArrayRef<std::string> batchDims, bool emitGradients);

private:
  FailureOr<SmallVector<Write>> addStates(ArrayRef<NewState> wanted,
                                          nn::StateRole role) {
    return declareStates(entry, symbols, updates, wanted, role);
  }
  void keepOnly(Value loss);
  LogicalResult markGradients(Value loss);
  Value sumOver(const NNBuilder &build, ArrayRef<Value> gradients, Type element,
                llvm::function_ref<Value(Value)> termOf);
  LogicalResult addScaler();
  void unscale();
  LogicalResult addOptimizerStates(MutableArrayRef<Updating> parameters);
  LogicalResult addAverages(MutableArrayRef<Updating> parameters);
  Value buildAverage(const NNBuilder &build, const Updating &each,
                     Value parameter, Value step);
  bool hasOtherEntries();
  void readAverages();
  Value buildVerdict(const NNBuilder &build, Value loss, Value norm);
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
  bool evaluatesAverages;       ///< eval and forward read averages
  BlockArgument updates, calls; ///< the counters, as the step finds them
  SmallVector<Trained> trained;
  /// Marked gradients of `trained`; null where the loss does not depend on it.
  SmallVector<Value> gradients;
  LossScaler scaler;
  SmallVector<Write> running; ///< statistics of batch norms
  SmallVector<Write> scaling; ///< the scaler's states; none without one
  Value overflows;            ///< whether a gradient is not finite; with one
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttributes;
  SmallVector<StringRef> reported; ///< names of results, as kStepReports
};

} // namespace

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
  Value scaled = loss;
  if (!scaling.empty())
    scaled = scaler.scaleLoss({builder, named("loss scale")}, loss,
                              scaling.front().old);
  FailureOr<SmallVector<Value>> found =
      differentiate(builder, scaled, parameters);
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
  RankedTensorType type = typeOf(gradient);
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

/// The sum of the terms of all elements of gradients, in `element`. Rows are
/// summed before they are added up, so that kernels have rows; each chunk of a
/// pipeline adds up its own.
Value StepBuilder::sumOver(const NNBuilder &build, ArrayRef<Value> gradients,
                           Type element,
                           llvm::function_ref<Value(Value)> termOf) {
  std::map<int64_t, Value> ofChunk;
  for (auto [each, gradient] : llvm::zip_equal(trained, gradients))
    if (gradient) {
      Value terms = build.cast(termOf(gradient), element);
      Value total = build.sumFrom(build.sumFrom(terms, 1), 0);
      Value &sum = ofChunk[each.state.getChunk()];
      sum = sum ? build.add(sum, total) : total;
    }
  Value sum;
  for (auto &[chunk, own] : ofChunk)
    sum = sum ? build.add(sum, own) : own;
  return sum;
}

LogicalResult StepBuilder::addScaler() {
  if (rule.scaler.kind == ScalerKind::None)
    return success();
  // The chunk of a pipeline that makes the loss reads the scale first.
  int64_t last = 0;
  for (auto cut : entry.getBody().front().getOps<nn::CutOp>())
    last = std::max(last, int64_t(cut.getTo()));
  std::vector<NewState> wanted;
  for (const LossScaler::State &state : scaler.getStates())
    wanted.push_back(
        {state.name.str(),
         RankedTensorType::get({}, state.isScale ? Type(builder.getF32Type())
                                                 : builder.getI64Type()),
         last, state.first});
  auto added = addStates(wanted, nn::StateRole::scaler);
  if (succeeded(added))
    scaling = *added;
  return added;
}

/// Gradients as they are without the scale. Whether one is not finite is asked
/// of them as they were; of each element times zero the sum is zero, or NaN.
void StepBuilder::unscale() {
  NNBuilder build{builder, named("loss scale")};
  Type element = typeOf(trained.front().argument).getElementType();
  overflows = build.make<nn::NotOp>(
      build.isFinite(sumOver(build, gradients, element, [&](Value gradient) {
        return build.scale(gradient, 0);
      })));
  Value inverse = scaler.getInverse(build, scaling.front().old);
  for (Value &gradient : gradients)
    if (gradient)
      gradient = build.mul(gradient, build.like(inverse, gradient));
}

/// Declares what the optimizers keep, all states of a name one after another.
LogicalResult
StepBuilder::addOptimizerStates(MutableArrayRef<Updating> parameters) {
  llvm::MapVector<StringRef, std::vector<NewState>> byName;
  /// Where each goes: parameters of one optimizer may keep others of them.
  llvm::MapVector<StringRef, SmallVector<std::pair<Updating *, size_t>>> owners;
  for (Updating &each : parameters) {
    nn::StateOp state = each.trained->state;
    for (const StateSpec &spec : each.optimizer->getStates(
             typeOf(each.trained->argument), !state.getMembers().empty())) {
      byName[spec.name].push_back({(spec.name + "/" + state.getSymName()).str(),
                                   spec.type, int64_t(state.getChunk()),
                                   spec.first});
      owners[spec.name].emplace_back(&each, each.states.size());
      each.states.emplace_back();
    }
  }
  for (auto &[name, wanted] : byName) {
    FailureOr<SmallVector<Write>> added =
        addStates(wanted, nn::StateRole::moment);
    if (failed(added))
      return failure();
    for (auto [owner, write] : llvm::zip_equal(owners[name], *added))
      owner.first->states[owner.second] = write;
  }
  return success();
}

/// An average is a moment: it lies on ranks and in checkpoints as those do. It
/// begins as the parameter, for evaluations before the first step.
LogicalResult StepBuilder::addAverages(MutableArrayRef<Updating> parameters) {
  std::vector<NewState> wanted;
  std::vector<Updating *> owners;
  for (Updating &each : parameters) {
    nn::StateOp state = each.trained->state;
    bool isStack = !state.getMembers().empty();
    bool isOptimizers = each.optimizer->keepsAverage();
    if (isOptimizers && rule.averageDecay)
      return state.emitError()
             << "cannot keep averages ('ema.decay') beside optimizer '"
             << each.trained->rule.kind->name << "' of '" << state.getSymName()
             << "', which keeps one of its own";
    if (!isOptimizers && !rule.averageDecay)
      continue;
    evaluatesAverages |= isOptimizers;
    if (isStack && rule.evaluatesAverages)
      return state.emitError()
             << "cannot evaluate on averages ('ema.evaluate') with '"
             << state.getSymName()
             << "', which stacks parameters: leave it out, and evaluate what "
                "acc-run --save-weights F --averages writes";
    if (isStack && isOptimizers && hasOtherEntries())
      return state.emitError()
             << "cannot evaluate on the averages of optimizer '"
             << each.trained->rule.kind->name << "' with '"
             << state.getSymName()
             << "', which stacks parameters: compile with --entries=step, and "
                "evaluate what acc-run --save-weights F --averages writes";
    owners.push_back(&each);
    wanted.push_back({(kAverage + state.getSymName()).str(),
                      typeOf(each.trained->argument), int64_t(state.getChunk()),
                      0, isStack ? nn::StateOp() : state});
  }
  FailureOr<SmallVector<Write>> added =
      addStates(wanted, nn::StateRole::moment);
  if (failed(added))
    return failure();
  for (auto [each, write] : llvm::zip_equal(owners, *added))
    each->average = write;
  return success();
}

/// Whether the program can be called for anything but a step.
bool StepBuilder::hasOtherEntries() {
  return llvm::any_of(module.getOps<func::FuncOp>(), [&](func::FuncOp other) {
    return other != entry && nn::getEntryKind(other);
  });
}

/// As get_ema_multi_avg_fn has it; the first update is a copy.
Value StepBuilder::buildAverage(const NNBuilder &build, const Updating &each,
                                Value parameter, Value step) {
  Value old = each.average.old;
  Value isFirst = build.compare(nn::ComparePredicate::lt, step, build.f64(2));
  return build.select(build.spread(isFirst, typeOf(old).getShape()), parameter,
                      lerp(build, old, parameter, 1 - *rule.averageDecay));
}

/// What is asked of the model is answered by the averages.
void StepBuilder::readAverages() {
  for (func::FuncOp other : module.getOps<func::FuncOp>()) {
    std::optional<nn::EntryKind> kind = nn::getEntryKind(other);
    if (!kind || other == entry)
      continue;
    for (unsigned index = 0; index < other.getNumArguments(); ++index) {
      auto name =
          other.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr);
      if (!name)
        continue;
      std::string average = (kAverage + name.getValue()).str();
      if (symbols.lookup(average))
        other.setArgAttr(index, nn::kStateAttr,
                         FlatSymbolRefAttr::get(builder.getContext(), average));
    }
  }
}

Value buildVerdictConstant(const NNBuilder &build, Verdict verdict) {
  return build.splat(build.scalarType(build.builder.getI32Type()),
                     static_cast<double>(verdict));
}

Value buildIsDone(const NNBuilder &build, Value verdict) {
  return build.compare(nn::ComparePredicate::eq, verdict,
                       buildVerdictConstant(build, Verdict::Done));
}

/// A step without a finite loss and norm has failed: nothing would make the
/// next one better, but for a smaller scale of the loss.
Value StepBuilder::buildVerdict(const NNBuilder &build, Value loss,
                                Value norm) {
  Value failed = buildVerdictConstant(build, Verdict::Failed);
  Value verdict = build.select(
      build.make<nn::AndOp>(build.isFinite(norm), build.isFinite(loss)),
      buildVerdictConstant(build, Verdict::Done), failed);
  if (scaling.empty())
    return verdict;
  SmallVector<Value> states;
  for (const Write &write : scaling)
    states.push_back(write.old);
  LossScaler::Updated updated = scaler.update(build, states, overflows);
  for (auto [write, value] : llvm::zip_equal(scaling, updated.states))
    write.value = value;
  Value skipped = buildVerdictConstant(build, Verdict::Skipped);
  if (updated.givesUp)
    skipped = build.select(updated.givesUp, failed, skipped);
  return build.select(overflows, skipped, verdict);
}

LogicalResult StepBuilder::update(Value loss, bool emitGradients) {
  NNBuilder build{builder, named("update")};
  Type element = typeOf(loss).getElementType();
  if (!scaling.empty())
    unscale();
  NNBuilder ofNorm{builder, named("gradient norm")};
  Value norm =
      ofNorm.sqrt(sumOver(ofNorm, gradients, element, [&](Value gradient) {
        return ofNorm.mul(gradient, gradient);
      }));
  Value verdict = buildVerdict({builder, named("verdict")}, loss, norm);
  Value isDone = buildIsDone(build, verdict);
  Value clip;
  if (rule.clipping)
    clip = build.make<nn::MinOp>(
        build.splat(build.scalarType(element), 1),
        build.div(
            build.splat(build.scalarType(element), *rule.clipping),
            build.add(norm, build.splat(build.scalarType(element), 1e-6))));
  Value next = build.add(updates, build.i64(1));
  Value step = build.cast(next, builder.getF64Type());
  Schedules schedules({builder, named("learning rate")}, rule, step);

  std::map<OptimizerRule, std::unique_ptr<Optimizer>> optimizers;
  std::vector<Updating> parameters;
  for (auto [each, gradient] : llvm::zip(trained, gradients)) {
    if (!gradient)
      continue;
    std::unique_ptr<Optimizer> &optimizer = optimizers[each.rule];
    if (!optimizer) {
      optimizer = each.rule.kind->make(each.rule.values);
      optimizer->begin(build, schedules.buildGroup(each.rule));
    }
    parameters.push_back({&each, gradient, optimizer.get(), {}});
  }
  if (failed(addOptimizerStates(parameters)) || failed(addAverages(parameters)))
    return failure();
  auto keepUnlessDone = [&](const NNBuilder &own, Value value, Value old) {
    RankedTensorType type = typeOf(old);
    // In the shape that it is made in, so that one loop does both.
    if (auto shaped = value.getDefiningOp<nn::ReshapeOp>()) {
      value = shaped.getInput();
      old = own.reshape(old, typeOf(value).getShape());
    }
    Value kept =
        own.select(own.spread(isDone, typeOf(old).getShape()), value, old);
    return own.reshape(kept, type.getShape());
  };
  SmallVector<Write> writes;
  for (Updating &each : parameters) {
    nn::StateOp state = each.trained->state;
    NNBuilder own{builder, named("update of " + state.getSymName())};
    Value old = each.trained->argument, gradient = each.gradient;
    if (clip)
      gradient = own.mul(gradient, own.like(clip, gradient));
    SmallVector<Value> states;
    for (Write &write : each.states)
      states.push_back(write.old);
    Updated updated = each.optimizer->update(
        own,
        {old, gradient, states, !state.getMembers().empty(), each.average.old});
    writes.push_back({state, each.trained->argument,
                      keepUnlessDone(own, updated.parameter, old)});
    for (auto [write, value] : llvm::zip_equal(each.states, updated.states))
      write.value = keepUnlessDone(own, value, write.old);
    if (each.average.state)
      each.average.value = keepUnlessDone(
          own,
          updated.average ? updated.average
                          : buildAverage(own, each, updated.parameter, step),
          each.average.old);
  }

  SmallVector<Value> reports{loss, norm,
                             build.cast(schedules.getRate(), element), verdict};
  if (!scaling.empty())
    reports.push_back(build.cast(scaling.front().old, element));
  for (auto [name, value] : llvm::zip(kStepReports, reports)) {
    addResult(value, name);
    reported.push_back(name);
  }
  for (auto [each, gradient] : llvm::zip(trained, gradients))
    if (emitGradients)
      addGradient(each.state,
                  gradient ? gradient : build.splat(typeOf(each.argument), 0));
  auto addWrite = [&](nn::StateOp state, Value value) {
    results.push_back(value);
    resultAttributes.push_back(builder.getDictionaryAttr({builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(state.getSymNameAttr()))}));
  };
  for (Write &write : writes)
    addWrite(write.state, write.value);
  for (Write &write : running) {
    NNBuilder own{builder, write.value.getLoc()};
    addWrite(write.state, keepUnlessDone(own, write.value, write.old));
  }
  // In the order in which they are arguments.
  SmallVector<Write> ofOptimizers;
  for (Updating &each : parameters) {
    llvm::append_range(ofOptimizers, each.states);
    if (each.average.state)
      ofOptimizers.push_back(each.average);
  }
  llvm::sort(ofOptimizers, [](const Write &a, const Write &b) {
    return a.old.getArgNumber() < b.old.getArgNumber();
  });
  for (Write &write : ofOptimizers)
    addWrite(write.state, write.value);
  Value count = build.select(isDone, next, updates);
  Value isFailed = build.compare(nn::ComparePredicate::eq, verdict,
                                 buildVerdictConstant(build, Verdict::Failed));
  for (Write &write : scaling) // last but for the counters, as arguments
    addWrite(write.state, build.select(isFailed, write.old, write.value));
  addWrite(symbols.lookup<nn::StateOp>(kUpdateCounterName), count);
  addWrite(symbols.lookup<nn::StateOp>(kCallCounterName),
           build.select(isFailed, calls, build.add(calls, build.i64(1))));
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
  if (evaluatesAverages)
    readAverages();
  module->setAttr(kReportsAttr, builder.getStrArrayAttr(reported));
  if (rule.seed != 0)
    module->setAttr(kSeedAttr, builder.getI64IntegerAttr(rule.seed));
}

LogicalResult
StepBuilder::run(StringRef lossSpec, ArrayRef<std::string> trainable,
                 ArrayRef<std::string> frozen, const BatchNormScope &norms,
                 ArrayRef<std::string> batchDims, bool emitGradients) {
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
  warnOfUnread(entry);
  auto chosen = chooseTrained(module, entry, trainable, frozen);
  if (failed(chosen) || failed(chooseGroups(module, entry, rule, *chosen)))
    return failure();
  trained = *chosen;
  if (failed(keepMasterWeights(module, trained)))
    return failure();
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  FailureOr<SmallVector<Write>> counters =
      addStates({{std::string(kUpdateCounterName), scalar},
                 {std::string(kCallCounterName), scalar}},
                nn::StateRole::counter);
  if (failed(counters))
    return failure();
  updates = counters->front().old;
  calls = counters->back().old;
  if (failed(addScaler()))
    return failure();
  FailureOr<SmallVector<Write>> statistics =
      normalizeByBatch(entry, norms, batchDims);
  if (failed(statistics))
    return failure();
  running = *statistics;
  expandDropout(entry, calls, rule.seed);
  for (func::FuncOp each : module.getOps<func::FuncOp>())
    expandRng(each, each == entry ? calls : Value(), rule.seed);
  builder.setInsertionPoint(entry.getBody().front().getTerminator());
  // What is drawn or a norm may have replaced it.
  Value value = entry.getBody().front().getTerminator()->getOperand(0);
  if (failed(markGradients(value)))
    return failure();
  if (failed(update(dropStops(entry, value), emitGradients)))
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
    rule->fp8Moments = fp8Moments;
    func::FuncOp entry = nn::findEntry(module, nn::EntryKind::forward);
    if (!entry) {
      module.emitError() << "expected a forward entry, found none";
      return signalPassFailure();
    }
    StepBuilder step(module, entry, *rule);
    if (failed(step.run(
            loss, SmallVector<std::string>(trainable.begin(), trainable.end()),
            SmallVector<std::string>(frozen.begin(), frozen.end()),
            {batchNormParts, batchNormUpdates},
            SmallVector<std::string>(batchDims.begin(), batchDims.end()),
            emitGradients)))
      signalPassFailure();
  }
};
} // namespace
} // namespace accel::autodiff
