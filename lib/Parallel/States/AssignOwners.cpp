// Stacks matrices that are iterated on as a whole, one for each of the ranks
// which have pieces of them, and splits the stack by matrix.

#include "SharingAxes.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/Propagation/BatchPlaces.h"
#include "lib/Parallel/Strategy/TensorAxes.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_ASSIGNOWNERSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// One step.
class OwnerAssigner {
public:
  OwnerAssigner(func::FuncOp step, dist::MeshOp mesh, dist::AxesAttr owners)
      : step(step), mesh(mesh), owners(owners),
        ranks(mesh.getGroupSize(owners)) {}
  LogicalResult run();

private:
  SmallVector<nn::NewtonSchulzOp> findMatrices();
  void stack(ArrayRef<nn::NewtonSchulzOp> group);

  func::FuncOp step;
  dist::MeshOp mesh;
  dist::AxesAttr owners;
  int64_t ranks;
};
} // namespace

/// Whether an op reads a value of `made`, which then has its results as well.
static bool addReader(Operation &op, llvm::DenseSet<Value> &made) {
  if (llvm::none_of(op.getOperands(),
                    [&](Value value) { return made.contains(value); }))
    return false;
  made.insert(op.result_begin(), op.result_end());
  return true;
}

/// In order; but for those that are made of others' results, which no stack
/// with these could have.
SmallVector<nn::NewtonSchulzOp> OwnerAssigner::findMatrices() {
  SmallVector<nn::NewtonSchulzOp> matrices;
  llvm::DenseSet<Value> made;
  for (Operation &op : step.front()) {
    auto iterations = dyn_cast<nn::NewtonSchulzOp>(op);
    if (addReader(op, made) || !iterations)
      continue;
    made.insert(iterations.getResult());
    if (iterations.getType().getRank() == 2)
      matrices.push_back(iterations);
  }
  return matrices;
}

LogicalResult OwnerAssigner::run() {
  FailureOr<nn::Chunks> chunks = nn::Chunks::compute(step);
  if (failed(chunks))
    return failure();
  // Of each kind those that wait for more; a stage has its own.
  std::vector<SmallVector<nn::NewtonSchulzOp>> open;
  for (nn::NewtonSchulzOp each : findMatrices()) {
    auto same = llvm::find_if(open, [&](auto &group) {
      nn::NewtonSchulzOp first = group.front();
      return first.getType() == each.getType() &&
             first.getProperties() == each.getProperties() &&
             chunks->find(first.getResult()) == chunks->find(each.getResult());
    });
    if (same == open.end())
      same = open.insert(open.end(), {{}});
    same->push_back(each);
    if (static_cast<int64_t>(same->size()) < ranks)
      continue;
    stack(*same);
    open.erase(same);
  }
  for (ArrayRef<nn::NewtonSchulzOp> rest : open)
    if (rest.size() > 1)
      stack(rest);
  return success();
}

/// Behind the last of the group, where all of its matrices are there.
void OwnerAssigner::stack(ArrayRef<nn::NewtonSchulzOp> group) {
  nn::NewtonSchulzOp first = group.front(), last = group.back();
  llvm::DenseSet<Value> made;
  for (nn::NewtonSchulzOp each : group)
    made.insert(each.getResult());
  SmallVector<Operation *> readers;
  for (Operation &op :
       llvm::make_range(Block::iterator(first), Block::iterator(last)))
    if (addReader(op, made))
      readers.push_back(&op);

  OpBuilder builder(last);
  Location loc = builder.getFusedLoc(llvm::map_to_vector(
      group, [](nn::NewtonSchulzOp each) { return each.getLoc(); }));
  RankedTensorType type = first.getType();
  SmallVector<int64_t> shape = {1, type.getDimSize(0), type.getDimSize(1)};
  SmallVector<Value> matrices;
  for (nn::NewtonSchulzOp each : group)
    matrices.push_back(reshape(builder, each.getLoc(), each.getInput(), shape));
  if (int64_t missing = ranks - static_cast<int64_t>(group.size())) {
    auto zeros = type.clone({missing, shape[1], shape[2]});
    matrices.push_back(nn::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(
            zeros, builder.getFloatAttr(type.getElementType(), 0))));
  }
  auto whole = dist::AxesAttr::get(step.getContext(), ArrayRef<StringAttr>(),
                                   /*open=*/false);
  auto byMatrix = dist::ShardingAttr::get(
      step.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      {owners, whole, whole});
  auto own = [&](Value stack) -> Value {
    return dist::ConstraintOp::create(builder, loc, stack, byMatrix);
  };
  Value stacked = own(nn::ConcatOp::create(builder, loc, matrices, /*dim=*/0));
  Value results = own(nn::NewtonSchulzOp::create(
      builder, loc, stacked, first.getSteps(), first.getCoefficients()));
  SmallVector<int64_t> starts(3, 0), steps(3, 1);
  for (nn::NewtonSchulzOp each : group) {
    Value result = nn::SliceOp::create(builder, each.getLoc(), results, starts,
                                       shape, steps);
    each.getResult().replaceAllUsesWith(
        reshape(builder, each.getLoc(), result, type.getShape()));
    ++starts[0];
  }
  // What is made of the others before the last one is there waits for them.
  for (Operation *reader : readers)
    reader->moveBefore(last);
  for (nn::NewtonSchulzOp each : group)
    each.erase();
}

namespace {
struct AssignOwnersPass : impl::AssignOwnersPassBase<AssignOwnersPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    if (!mesh)
      return;
    SmallVector<StringAttr> axes;
    auto add = [&](ArrayRef<StringRef> names) {
      for (StringRef name : names)
        axes.push_back(StringAttr::get(&getContext(), name));
    };
    if (stage > 0)
      add(getSharingAxes(mesh));
    add(getTensorAxes(mesh));
    auto owners = dist::AxesAttr::get(&getContext(), axes, /*open=*/false);
    if (mesh.getGroupSize(owners) == 1)
      return;
    auto entries = nn::requireEntries(module);
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp entry : *entries)
      if (nn::getEntryKind(entry) == nn::EntryKind::step &&
          failed(OwnerAssigner(entry, mesh, owners).run()))
        return signalPassFailure();
  }
};
} // namespace
} // namespace accel::parallel
