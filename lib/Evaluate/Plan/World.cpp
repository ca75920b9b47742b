// The global tensors that a plan reads and writes.

#include "lib/Evaluate/Plan/Commands.h"
#include "lib/Evaluate/States.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

Placement evaluate::getPlacement(plan::PartAttr part) {
  Placement placement = Placement::replicated(part.getShape());
  for (auto [dim, axes] : llvm::enumerate(part.getAxes()))
    for (Attribute axis : cast<ArrayAttr>(axes))
      placement.axes[dim].push_back(cast<StringAttr>(axis));
  placement.interleaved = part.getInterleaved();
  return placement;
}

FailureOr<Tensor> PlanWorld::getSource(plan::ReadOp read) {
  Tensor tensor;
  if (read.getSource() == plan::Source::input) {
    tensor = inputs.lookup(read.getName());
    if (!tensor)
      return read.emitOpError()
             << "expected an input '" << read.getName() << "', found none";
  } else if (read.getSource() == plan::Source::state) {
    Tensor &loaded = states[read.getName()];
    if (!loaded)
      loaded = inputs.lookup(("@" + read.getName()).str());
    if (!loaded) {
      auto state = module.lookupSymbol<nn::StateOp>(read.getName());
      if (!state)
        return read.emitOpError()
               << "names no nn.state '" << read.getName() << "'";
      FailureOr<Tensor> value = loadState(state);
      if (failed(value))
        return failure();
      loaded = *value;
    }
    tensor = loaded;
  } else {
    return read.emitOpError() << "expected to read an input or a state, found "
                              << plan::stringifySource(read.getSource());
  }
  auto type = RankedTensorType::get(read.getPart().getShape(),
                                    read.getTarget().getElement());
  if (!tensor.hasType(type))
    return read.emitOpError() << "expected '" << read.getName() << "' of type "
                              << type << ", found " << tensor.getType();
  return tensor;
}

LogicalResult PlanWorld::addOutput(plan::WriteOp write, MeshPoint point,
                                   const Tensor &piece) {
  if (write.getDestination() == plan::Source::input)
    return write.emitOpError() << "expected to write an output or a state, "
                                  "found input";
  std::string name = write.getDestination() == plan::Source::state
                         ? "@" + write.getName().str()
                         : write.getName().str();
  return addPiece(name, write.getPart(), point, piece, write);
}

LogicalResult PlanWorld::addPiece(StringRef name, plan::PartAttr part,
                                  MeshPoint point, const Tensor &piece,
                                  Operation *at) {
  Placement placement = getPlacement(part);
  if (failed(placement.verify(point, at->getLoc())))
    return failure();
  auto it = outputs.try_emplace(name, placement, piece.getElementType()).first;
  SmallVector<int64_t> shape;
  int64_t offset;
  placement.locate(point, shape, offset);
  if (ShapedType::getNumElements(shape) != piece.getNumElements())
    return at->emitOpError()
           << "expected a view of " << ShapedType::getNumElements(shape)
           << " elements, found " << piece.getNumElements();
  return it->second.add(piece.reshape(shape), point, at->getLoc(),
                        ("'" + name + "'").str());
}

FailureOr<TensorsByName> PlanWorld::takeOutputs() {
  TensorsByName result;
  for (auto &each : outputs) {
    FailureOr<Tensor> tensor =
        each.second.finish(module.getLoc(), ("'" + each.first() + "'").str());
    if (failed(tensor))
      return failure();
    result[each.first()] = *tensor;
  }
  outputs.clear();
  return result;
}
