// The contract of phase `local`: one rank's program, and a schedule that runs
// it.

#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_VERIFYLOCALPASS
#include "lib/Parallel/Passes.h.inc"

/// Arguments and results of an entry, and those of tasks that stand for states,
/// inputs and outputs, say which piece they are.
static LogicalResult verifyLayouts(func::FuncOp function) {
  bool isEntry = function->hasAttr(nn::kEntryAttr);
  auto isNamed = [](DictionaryAttr attributes) {
    return attributes &&
           (attributes.get(nn::kInputAttr) || attributes.get(nn::kStateAttr) ||
            attributes.get(nn::kOutputAttr));
  };
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if ((isEntry || isNamed(function.getArgAttrDict(index))) &&
        !function.getArgAttr(index, dist::kLayoutAttr))
      return function.emitError()
             << "expected a layout on argument " << index << ", found none";
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if ((isEntry || isNamed(function.getResultAttrDict(index))) &&
        !function.getResultAttr(index, dist::kLayoutAttr))
      return function.emitError()
             << "expected a layout on result " << index << ", found none";
  return success();
}

/// Every argument of a task that is no input and no state comes along one edge.
static LogicalResult verifyEdges(ModuleOp module) {
  llvm::DenseMap<std::pair<StringAttr, unsigned>, unsigned> incoming;
  module.walk([&](dist::EdgeOp edge) {
    ++incoming[{edge.getTargetAttr().getAttr(), edge.getArgument()}];
  });
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(dist::kTaskAttr) ||
        function->hasAttr(nn::kEntryAttr)) // gets what it wants
      continue;
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      bool isNamed = function.getArgAttr(index, nn::kInputAttr) ||
                     function.getArgAttr(index, nn::kStateAttr);
      unsigned expected = isNamed ? 0 : 1;
      unsigned found = incoming.lookup({function.getSymNameAttr(), index});
      if (found != expected)
        return function.emitError()
               << "expected " << expected << " edges to argument " << index
               << ", found " << found;
    }
  }
  return success();
}

/// A rank's rows and keys are those of its coordinates.
static LogicalResult verifySteps(Operation *op) {
  if (!isa<nn::AttentionOp, nn::AttentionGradOp>(op))
    return success();
  dist::MeshOp mesh = dist::MeshOp::of(op->getParentOfType<ModuleOp>());
  for (StringRef name : {"row_steps", "column_steps"})
    if (auto steps = op->getAttrOfType<DictionaryAttr>(name))
      for (NamedAttribute step : steps)
        if (!mesh || step.getName() == dist::MeshOp::kMicroBatchAxis ||
            !mesh.findAxisSize(step.getName()))
          return op->emitOpError()
                 << "expected an axis of ranks in '" << name << "', found '"
                 << step.getName().getValue() << "'";
  return success();
}

static LogicalResult verifyLocalOp(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "nn" && dialect != "dist" && dialect != "func")
    return op->emitOpError() << "is not legal in phase local";
  if (isa<dist::AccumulateOp>(op))
    return op->emitOpError() << "is not legal in phase local: the tasks that "
                                "add and read do it";
  if (isa<dist::ConstraintOp, dist::ReshardOp>(op))
    return op->emitOpError() << "is not legal in phase local: it is a "
                                "statement about whole tensors";
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
      collective &&
      collective.getAxes().contains(dist::MeshOp::kMicroBatchAxis) &&
      isa<dist::AllReduceOp, dist::AllGatherOp>(op))
    return op->emitOpError() << "is not legal in phase local: micro-batches "
                                "meet in accumulators only";
  if (failed(verifySteps(op)))
    return failure();
  SmallVector<Type> types(op->getResultTypes());
  if (auto function = dyn_cast<func::FuncOp>(op))
    llvm::append_range(types, function.getArgumentTypes());
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        !tensor || tensor.getEncoding())
      return op->emitOpError()
             << "expected tensors without encoding in phase local, found "
             << type;
  return success();
}

namespace {
struct VerifyLocalPass : impl::VerifyLocalPassBase<VerifyLocalPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    WalkResult result = module.walk([&](Operation *op) {
      return op != module && failed(verifyLocalOp(op)) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    llvm::SmallDenseSet<StringRef> scheduled;
    for (auto schedule : module.getOps<dist::ScheduleOp>())
      scheduled.insert(schedule.getEntry());
    for (auto function : module.getOps<func::FuncOp>()) {
      if (failed(verifyLayouts(function)))
        return signalPassFailure();
      if (function->hasAttr(nn::kEntryAttr) &&
          !scheduled.contains(function.getSymName())) {
        function.emitError() << "no dist.schedule runs this entry";
        return signalPassFailure();
      }
    }
    if (failed(verifyEdges(module)))
      signalPassFailure();
  }
};
} // namespace
} // namespace accel::parallel
