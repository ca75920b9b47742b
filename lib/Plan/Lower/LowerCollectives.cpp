// The dist ops of a task as commands: what ranks exchange goes through buffers
// where the target lets others read them; a slice of one's own is a view that
// depends on the rank.

#include "Lowering.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static ArrayAttr getAxisNames(dist::AxesAttr axes) {
  SmallVector<Attribute> names(axes.getNames().begin(), axes.getNames().end());
  return ArrayAttr::get(axes.getContext(), names);
}

static CombineAttr getCombine(dist::Reduction kind, MLIRContext *context) {
  std::optional<Combine> combine =
      symbolizeCombine(dist::stringifyReduction(kind));
  assert(combine && "plan has the reductions of dist");
  return CombineAttr::get(context, *combine);
}

/// Whether a buffer is a sum over micro-batches.
static bool isAccumulator(const SymbolTable &module, BufferOp buffer) {
  if (!buffer.getSource())
    return false;
  auto state = module.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
  return state && state.getRole() == nn::StateRole::accumulator;
}

void Lowering::findSharedStates() {
  llvm::DenseSet<StringAttr> read;
  for (auto task : cast<ModuleOp>(module.getOp()).getOps<func::FuncOp>()) {
    auto what = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr);
    if (!what || what.getStage() != int64_t(program.getStage()))
      continue;
    llvm::SmallDenseSet<StringAttr> added;
    for (unsigned number = 0; number < task.getNumResults(); ++number)
      if (auto write = task.getResultAttrOfType<nn::WriteKindAttr>(
              number, nn::kWriteAttr);
          write && write.getValue() != nn::WriteKind::step)
        if (auto name = task.getResultAttrOfType<FlatSymbolRefAttr>(
                number, nn::kStateAttr))
          added.insert(name.getAttr());
    for (unsigned number = 0; number < task.getNumArguments(); ++number)
      if (auto name =
              task.getArgAttrOfType<FlatSymbolRefAttr>(number, nn::kStateAttr);
          name && !added.contains(name.getAttr()) &&
          !read.insert(name.getAttr()).second)
        sharedStates.insert(name.getAttr());
  }
}

bool Lowering::isReadOnce(Value value, BufferOp buffer) {
  if (!value.hasOneUse())
    return false;
  if (Operation *op = value.getDefiningOp())
    return buffer.getRole() == Role::activation && !isView(op);
  return isAccumulator(module, buffer) &&
         !sharedStates.contains(buffer.getSourceAttr().getAttr());
}

Place Lowering::getExchanged(Value value, Location reader) {
  Place place = getContiguous(value, reader);
  BufferOp buffer = place.buffer;
  Space space = target.getExchangeSpace();
  if (buffer.getSpace() == space)
    return place;
  // What a command of this task writes is written where others can read it, and
  // states are kept there; constants and inputs stay where they are.
  if (buffer.getRole() == Role::activation || buffer.getRole() == Role::state) {
    buffer.setSpace(space);
    return place;
  }
  return copy(place, reader, Role::communication, space);
}

LogicalResult Lowering::lowerCollective(dist::CollectiveOpInterface op) {
  Location loc = op.getLoc();
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  ArrayAttr axes = getAxisNames(op.getAxes());
  if (isa<dist::AxisIndexOp>(op)) {
    setPlace(result, createBuffer(loc, "coordinate", Role::activation, type));
    CoordinateOp::create(commands, loc, axes, getView(places[result]),
                         "compute");
    return success();
  }
  if (auto slice = dyn_cast<dist::AllSliceOp>(op.getOperation()))
    return lowerSlice(slice);

  auto kind = symbolizeCollective(op->getName().stripDialect());
  if (!kind)
    return op.emitOpError() << "expected a collective that plan has";
  Place source = getExchanged(op->getOperand(0), loc);
  // Every rank reduces its part of an all_reduce into all results.
  bool reduces = *kind == Collective::all_reduce;
  if (reduces && isReadOnce(op->getOperand(0), source.buffer))
    setPlace(result, source);
  else
    setPlace(result, createBuffer(loc, "collective", Role::activation,
                                  reduces ? target.getExchangeSpace()
                                          : target.getSpace(Role::activation),
                                  type));
  CombineAttr combine;
  int64_t dim = 0, splitDim = 0;
  DenseI64ArrayAttr permutation;
  ViewAttr index;
  TypeAttr wire;
  if (std::optional<Type> wireType = op.getWireType())
    wire = TypeAttr::get(*wireType);
  llvm::TypeSwitch<Operation *>(op.getOperation())
      .Case([&](dist::AllReduceOp reduce) {
        combine = getCombine(reduce.getKind(), op.getContext());
      })
      .Case([&](dist::ReduceScatterOp reduce) {
        combine = getCombine(reduce.getKind(), op.getContext());
        dim = reduce.getDim();
      })
      .Case([&](dist::AllGatherOp gather) { dim = gather.getDim(); })
      .Case([&](dist::AllToAllOp all) {
        dim = all.getConcatDim();
        splitDim = all.getSplitDim();
      })
      .Case([&](dist::PermuteOp permute) {
        permutation = permute.getSourcesAttr();
      })
      .Case([&](dist::FetchRowsOp fetch) {
        index = getView(getContiguous(fetch.getIndex(), loc));
      })
      .Case([&](dist::BroadcastOp broadcast) {
        permutation =
            commands.getDenseI64ArrayAttr({int64_t(broadcast.getRoot())});
      });
  auto command = CollectiveOp::create(
      commands, loc, *kind, axes, commands.getArrayAttr({getView(source)}),
      commands.getArrayAttr({getView(places[result])}), index, combine, dim,
      splitDim, permutation, wire, "compute");
  for (auto [from, to] : {std::pair(dist::kUnitAttr, kUnitAttr),
                          std::pair(dist::kInstanceAttr, kInstanceAttr),
                          std::pair(dist::kInsertedByAttr, kInsertedByAttr)})
    if (Attribute attribute = op->getAttr(from))
      command->setAttr(to, attribute);
  return command.verify();
}

LogicalResult Lowering::lowerSlice(dist::AllSliceOp op) {
  Place place = getPlace(op.getInput());
  dist::MeshOp mesh = dist::MeshOp::lookup(op, op.getMeshAttr());
  int64_t dim = op.getDim();
  int64_t chunk =
      cast<RankedTensorType>(op.getResult().getType()).getDimSize(dim);
  // Rank i of the group, its axes major to minor, keeps chunk i.
  int64_t bytes = chunk * place.view.strides[dim] *
                  llvm::divideCeil(place.element.getIntOrFloatBitWidth(), 8);
  // Of nothing every rank keeps nothing, wherever it is.
  SmallVector<StringAttr> axes;
  if (cast<RankedTensorType>(op.getInput().getType()).getNumElements() > 0)
    llvm::append_range(axes, op.getAxes().getNames());
  for (StringAttr axis : llvm::reverse(axes)) {
    place.axes.push_back(AxisStrideAttr::get(op.getContext(), axis, bytes));
    for (auto named : mesh.getAxes().getAsRange<dist::AxisAttr>())
      if (named.getName() == axis)
        bytes *= named.getSize();
  }
  place.view.shape[dim] = chunk;
  places[op.getResult()] = place;
  return success();
}
