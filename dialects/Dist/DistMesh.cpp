// The mesh: its axes, the numbers of its ranks, and the ops on whole tensors
// that speak of it.

#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace accel::dist;

ParseResult accel::dist::parseMeshAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> parsed;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    if (parser.parseString(&name) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    parsed.push_back(AxisAttr::get(parser.getContext(), name, size));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return failure();
  axes = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

void accel::dist::printMeshAxes(OpAsmPrinter &printer, Operation *,
                                ArrayAttr axes) {
  printer << '[';
  llvm::interleaveComma(axes.getAsRange<AxisAttr>(), printer.getStream(),
                        [&](AxisAttr axis) {
                          printer.printString(axis.getName());
                          printer << " = " << axis.getSize();
                        });
  printer << ']';
}

LogicalResult MeshOp::verify() {
  llvm::SmallDenseSet<StringRef> seen;
  int64_t ranks = 1;
  for (AxisAttr axis : getAxes().getAsRange<AxisAttr>()) {
    if (!seen.insert(axis.getName()).second)
      return emitOpError() << "expected every axis once, found '"
                           << axis.getName() << "' twice";
    if (axis.getSize() < 1)
      return emitOpError() << "expected a size of at least 1 for axis '"
                           << axis.getName() << "', found " << axis.getSize();
    // Ranks are numbered in 32 bits by every communication library.
    if (llvm::MulOverflow(ranks, axis.getSize(), ranks) || ranks > INT32_MAX)
      return emitOpError() << "expected at most " << INT32_MAX << " ranks";
  }
  if (auto links = getLinks(); links && links->size() != getAxes().size())
    return emitOpError() << "expected a link for each of " << getAxes().size()
                         << " axes, found " << links->size();
  auto devices = getDeviceIds();
  if (!devices)
    return success();
  if (static_cast<int64_t>(devices->size()) != getRankCount())
    return emitOpError() << "expected a device for each of " << getRankCount()
                         << " ranks, found " << devices->size();
  llvm::SmallDenseSet<int64_t> used;
  for (int64_t device : *devices)
    if (device < 0 || !used.insert(device).second)
      return emitOpError() << "expected distinct devices from 0 up, found "
                           << device;
  return success();
}

std::optional<int64_t> MeshOp::findAxisSize(StringRef name) {
  for (AxisAttr axis : getAxes().getAsRange<AxisAttr>())
    if (axis.getName() == name)
      return axis.getSize();
  return std::nullopt;
}

int64_t MeshOp::getAxisNumber(StringRef name) {
  auto axes = getAxes().getAsRange<AxisAttr>();
  return std::distance(axes.begin(), llvm::find_if(axes, [&](AxisAttr axis) {
                         return axis.getName() == name;
                       }));
}

bool MeshOp::splitsSequences(AxesAttr axes) {
  return !axes.empty() && llvm::all_of(axes.getNames(), [](StringAttr axis) {
    return axis == kContextAxis || axis == kUlyssesAxis;
  });
}

int64_t MeshOp::getGroupSize(AxesAttr axes) {
  int64_t size = 1;
  for (StringAttr axis : axes.getNames())
    size *= *findAxisSize(axis);
  return size;
}

int64_t MeshOp::getRankCount() {
  int64_t count = 1;
  for (AxisAttr axis : getAxes().getAsRange<AxisAttr>())
    if (axis.getName() != kMicroBatchAxis)
      count *= axis.getSize();
  return count;
}

int64_t MeshOp::getCoordinate(int64_t rank, StringRef name) {
  if (name == kMicroBatchAxis)
    return 0;
  for (Attribute attribute : llvm::reverse(getAxes())) {
    auto axis = cast<AxisAttr>(attribute);
    if (axis.getName() == kMicroBatchAxis)
      continue;
    if (axis.getName() == name)
      return rank % axis.getSize();
    rank /= axis.getSize();
  }
  llvm_unreachable("the mesh has no such axis");
}

int64_t MeshOp::getIndexInGroup(int64_t rank, AxesAttr axes) {
  int64_t index = 0;
  for (StringAttr axis : axes.getNames())
    index = index * *findAxisSize(axis) + getCoordinate(rank, axis);
  return index;
}

SmallVector<int64_t> MeshOp::getGroup(int64_t rank, AxesAttr axes) {
  SmallVector<int64_t> group(getGroupSize(axes));
  auto sameElsewhere = [&](int64_t other) {
    return llvm::all_of(getAxes().getAsRange<AxisAttr>(), [&](AxisAttr axis) {
      return axes.contains(axis.getName()) ||
             getCoordinate(other, axis.getName()) ==
                 getCoordinate(rank, axis.getName());
    });
  };
  for (int64_t other = 0, count = getRankCount(); other < count; ++other)
    if (sameElsewhere(other))
      group[getIndexInGroup(other, axes)] = other;
  return group;
}

MeshOp MeshOp::lookup(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, name);
}

MeshOp MeshOp::of(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  return meshes.empty() ? MeshOp() : *meshes.begin();
}

FailureOr<MeshOp> MeshOp::require(ModuleOp module) {
  if (MeshOp mesh = of(module))
    return mesh;
  return module.emitError() << "expected a dist.mesh, found none";
}

LogicalResult ConstraintOp::verifySymbolUses(SymbolTableCollection &) {
  return verifySharding(*this, getSharding(), getInput().getType().getShape());
}

LogicalResult ReshardOp::verify() {
  RankedTensorType from = getInput().getType(), to = getType();
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError() << "expected the same shape and element type, found "
                         << from << " and " << to;
  auto source = ShardingAttr::of(from), target = ShardingAttr::of(to);
  if (!source || !target)
    return emitOpError() << "expected types with shardings, found " << from
                         << " and " << to;
  if (source.getMesh() != target.getMesh())
    return emitOpError() << "expected one mesh, found " << source.getMesh()
                         << " and " << target.getMesh();
  for (StringAttr axis : target.getPartial().getNames())
    if (!source.getPartial().contains(axis))
      return emitOpError() << "expected a result partial over axes of the "
                              "input's only, found "
                           << axis;
  if (target.isPartial() && source.getReduction() != target.getReduction())
    return emitOpError() << "expected partial results to combine by '"
                         << stringifyReduction(source.getReduction())
                         << "', found '"
                         << stringifyReduction(target.getReduction()) << "'";
  return success();
}

OpFoldResult ReshardOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<ReshardOp>();
  if (!inner || ShardingAttr::of(getType()).isPartial())
    return {};
  getInputMutable().assign(inner.getInput());
  return getResult();
}
