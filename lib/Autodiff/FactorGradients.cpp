// Rewrites a step so that gradients come as products of low rank, with what
// these leave out kept for the next step.

#include "LowRank.h"
#include "Passes.h"
#include "Random.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/BuildStep.h"

using namespace mlir;

namespace accel::autodiff {
#define GEN_PASS_DEF_FACTORGRADIENTSPASS
#include "lib/Autodiff/Passes.h.inc"

namespace {
/// A state that the step gets in addition; `value` is what it leaves in it.
struct Carried {
  nn::StateOp state;
  BlockArgument old;
  Value value;
};

/// One gradient.
struct Compressed {
  nn::GradientOp gradient;
  LowRank factors;
  Carried *error = nullptr, *right = nullptr; ///< null: not kept
};

/// The step.
class Factorer {
public:
  Factorer(ModuleOp module, func::FuncOp step,
           const FactorGradientsPassOptions &options)
      : module(module), step(step), options(options),
        builder(module.getContext()) {}
  LogicalResult run();

private:
  LogicalResult findCounter();
  void findLarge();
  LogicalResult addStates();
  void rewrite(Compressed &each);
  void giveStates();

  ModuleOp module;
  func::FuncOp step;
  const FactorGradientsPassOptions &options;
  OpBuilder builder;
  Value calls;   ///< finished ones
  Value verdict; ///< of this one
  SmallVector<Compressed> compressed;
  std::vector<std::unique_ptr<Carried>> carried;
};
} // namespace

/// What random numbers go on by, and what says whether states change.
LogicalResult Factorer::findCounter() {
  for (BlockArgument argument : step.getArguments()) {
    auto state = step.getArgAttrOfType<FlatSymbolRefAttr>(
        argument.getArgNumber(), nn::kStateAttr);
    if (state && state.getValue() == kCallCounterName)
      calls = argument;
  }
  for (OpOperand &result : step.front().getTerminator()->getOpOperands()) {
    auto output = step.getResultAttrOfType<StringAttr>(
        result.getOperandNumber(), nn::kOutputAttr);
    if (output && output.getValue() == kVerdictReport)
      verdict = result.get();
  }
  if (calls && verdict)
    return success();
  return step.emitError() << "expected a step that counts its calls in @"
                          << kCallCounterName << " and gives an output '"
                          << kVerdictReport << "'";
}

void Factorer::findLarge() {
  SymbolTable symbols(module);
  for (auto gradient : step.front().getOps<nn::GradientOp>()) {
    // Factors are of a parameter, and no factors are those of several.
    auto state = symbols.lookup<nn::StateOp>(gradient.getState());
    if (!state.getMembers().empty())
      continue;
    std::optional<LowRank> factors =
        chooseLowRank(gradient.getType().getShape(), options.rank,
                      options.minCompressionRate);
    if (factors)
      compressed.push_back({gradient, *factors});
  }
}

LogicalResult Factorer::addStates() {
  SymbolTable symbols(module);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(step);
  auto add = [&](StringRef prefix, Compressed &of, ArrayRef<int64_t> shape,
                 nn::StateRole role) {
    std::string name = (prefix + "/" + of.gradient.getState()).str();
    auto type =
        RankedTensorType::get(shape, of.gradient.getType().getElementType());
    auto state = nn::StateOp::create(
        builder, NameLoc::get(builder.getStringAttr(name)), name, type,
        DenseElementsAttr::get(type,
                               builder.getZeroAttr(type.getElementType())),
        /*aliases=*/nullptr, /*initializers=*/nullptr, /*stored=*/nullptr,
        /*logical=*/nullptr, /*frozen=*/false, role);
    symbols.insert(state);
    carried.push_back(
        std::make_unique<Carried>(Carried{state, nullptr, nullptr}));
    return carried.back().get();
  };
  for (Compressed &each : compressed) {
    auto [rows, columns, rank] = each.factors;
    if (options.useErrorFeedback)
      each.error = add("power_sgd_error", each, {1, rows, columns},
                       nn::StateRole::residual);
    if (options.warmStart)
      each.right =
          add("power_sgd_q", each, {rank, columns}, nn::StateRole::factor);
  }
  // All at once, since each argument added makes the function's type anew.
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  for (auto &each : carried) {
    types.push_back(each->state.getType());
    locations.push_back(each->state.getLoc());
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(each->state.getSymNameAttr()))));
  }
  unsigned place = step.getNumArguments();
  if (failed(step.insertArguments(SmallVector<unsigned>(carried.size(), place),
                                  types, attributes, locations)))
    return failure();
  for (auto &each : carried)
    each->old = step.getArgument(place++);
  return success();
}

void Factorer::rewrite(Compressed &each) {
  nn::GradientOp gradient = each.gradient;
  builder.setInsertionPoint(gradient);
  NNBuilder build{builder, NameLoc::get(builder.getStringAttr(
                               "compression of " + gradient.getState()))};
  auto [rows, columns, rank] = each.factors;
  ArrayRef<int64_t> shape = gradient.getType().getShape();
  Type element = gradient.getType().getElementType();
  Value matrix = build.reshape(gradient.getInput(), {rows, columns});
  if (each.error)
    matrix = build.add(matrix, build.reshape(each.error->old, {rows, columns}));
  auto type = RankedTensorType::get({rank, columns}, element);
  Value right = buildNormal(build,
                            buildRandomKey(build, calls, options.randomSeed,
                                           hashName(gradient.getState())),
                            type);
  if (each.right) {
    // What is all zeros has not begun yet.
    Value size = build.make<nn::ReduceOp>(
        nn::ReductionKind::max, build.make<nn::AbsOp>(each.right->old),
        ArrayRef<int64_t>{0, 1}, /*first=*/false);
    Value isNone =
        build.compare(nn::ComparePredicate::eq, size, build.splat(0, size));
    right = build.select(build.spread(isNone, type.getShape()), right,
                         each.right->old);
  }
  Factored factored =
      buildFactored(build, matrix, right, options.orthogonalizationEpsilon);
  if (each.error)
    each.error->value = build.reshape(factored.error, {1, rows, columns});
  if (each.right)
    each.right->value = factored.right;
  gradient.getInputMutable().assign(build.reshape(factored.product, shape));
}

/// A step that is not done leaves them as they are.
void Factorer::giveStates() {
  Operation *exit = step.front().getTerminator();
  builder.setInsertionPoint(exit);
  SmallVector<Value> results(exit->getOperands());
  SmallVector<DictionaryAttr> attributes;
  for (unsigned result = 0; result < step.getNumResults(); ++result)
    attributes.push_back(step.getResultAttrDict(result));
  Value isDone = buildIsDone({builder, verdict.getLoc()}, verdict);
  for (auto &each : carried) {
    NNBuilder build{builder, each->state.getLoc()};
    Value keep = build.spread(isDone, typeOf(each->old).getShape());
    results.push_back(build.select(keep, each->value, each->old));
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(each->state.getSymNameAttr()))));
  }
  exit->setOperands(results);
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(),
                                               ValueRange(results).getTypes()));
  step.setAllResultAttrs(attributes);
}

LogicalResult Factorer::run() {
  findLarge();
  if (compressed.empty()) {
    module.emitWarning()
        << "comm_hook=power_sgd compresses nothing: no gradient is more than "
        << options.minCompressionRate << " times as large as factors of rank "
        << options.rank;
    return success();
  }
  if (failed(findCounter()) || failed(addStates()))
    return failure();
  for (Compressed &each : compressed)
    rewrite(each);
  giveStates();
  return success();
}

namespace {
struct FactorGradientsPass
    : impl::FactorGradientsPassBase<FactorGradientsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (rank < 1) {
      module.emitError() << "expected factors of at least rank 1, found "
                         << rank.getValue();
      return signalPassFailure();
    }
    func::FuncOp step = nn::findEntry(module, nn::EntryKind::step);
    if (!step) {
      module.emitWarning() << "comm_hook=power_sgd compresses nothing: the "
                              "program has no gradients";
      return;
    }
    if (start != 0) {
      module.emitError()
          << "comm_hook=power_sgd is not supported yet in the middle of a run, "
             "found power_sgd.start_powerSGD_iter="
          << start.getValue()
          << ": make these steps with comm_hook=no and a checkpoint, and go on "
             "from it (--resume) with a program of "
             "power_sgd.start_powerSGD_iter=0";
      return signalPassFailure();
    }
    FactorGradientsPassOptions options{rank,
                                       start,
                                       minCompressionRate,
                                       useErrorFeedback,
                                       warmStart,
                                       orthogonalizationEpsilon,
                                       randomSeed};
    if (failed(Factorer(module, step, options).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace accel::autodiff
