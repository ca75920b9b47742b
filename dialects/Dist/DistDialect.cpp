// Registration of the dist dialect, and the checks on the attributes that it
// puts on functions.

#include "dialects/Dist/Dist.h"
#include "dialects/Dist/LossChunks.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::dist;

#include "dialects/Dist/DistDialect.cpp.inc"
#include "dialects/Dist/DistEnums.cpp.inc"
#include "dialects/Dist/DistInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.cpp.inc"

#define GET_OP_DEFS
#include "dialects/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  registerDistDialectOperations(this);
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttrs.cpp.inc"
      >();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == kTaskAttr && isa<TaskAttr>(attribute.getValue()) &&
      isa<FunctionOpInterface>(op))
    return success();
  if ((attribute.getName() == kInsertedByAttr ||
       attribute.getName() == kUnitAttr) &&
      isa<StringAttr>(attribute.getValue()) && op->getDialect() == this)
    return success();
  if (attribute.getName() == kReasonsAttr &&
      isa<DictionaryAttr>(attribute.getValue()) && op->getDialect() == this)
    return success();
  if (attribute.getName() == kOriginsAttr &&
      isa<ArrayAttr>(attribute.getValue()) && isa<ModuleOp>(op))
    return success();
  if ((attribute.getName() == kInstanceAttr ||
       attribute.getName() == kLossChunksAttr ||
       attribute.getName() == kLossChunkAttr) &&
      isa<IntegerAttr>(attribute.getValue()))
    return success();
  if (llvm::is_contained(
          {StringRef(kRecomputeAttr), StringRef(kRecomputedAttr)},
          attribute.getName().getValue()) &&
      isa<StringAttr>(attribute.getValue()))
    return success();
  if ((attribute.getName() == kRingAttr ||
       attribute.getName() == kDiscardAttr) &&
      isa<UnitAttr>(attribute.getValue()))
    return success();
  return op->emitError() << "unexpected attribute '"
                         << attribute.getName().getValue()
                         << "'; of dist, functions may carry '" << kTaskAttr
                         << "', ops '" << kInstanceAttr << "', '"
                         << kRecomputeAttr << "', '" << kDiscardAttr << "', '"
                         << kRecomputedAttr << "', '" << kLossChunksAttr
                         << "', '" << kLossChunkAttr << "' and '" << kRingAttr
                         << "' and ops of dist '" << kInsertedByAttr
                         << "' and '" << kUnitAttr << "'";
}

/// A layout whose pieces, on this mesh, have the type's shape.
static LogicalResult verifyLayout(Operation *op, NamedAttribute attribute,
                                  Type type) {
  StringRef name = attribute.getName().getValue();
  auto interleaved = dyn_cast<InterleavedAttr>(attribute.getValue());
  if (name == kInterleavedAttr && interleaved && isa<RankedTensorType>(type))
    return interleaved.verifyShape([&] { return op->emitError(); },
                                   cast<RankedTensorType>(type).getShape());
  auto layout = dyn_cast<LayoutAttr>(attribute.getValue());
  if (name != kLayoutAttr || !layout)
    return op->emitError() << "expected a #dist.layout as '" << kLayoutAttr
                           << "', found '" << name
                           << "' = " << attribute.getValue();
  auto mesh = MeshOp::lookup(op, layout.getMesh());
  if (!mesh)
    return op->emitError() << "no dist.mesh named " << layout.getMesh();
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool fits = tensor && tensor.getRank() ==
                            static_cast<int64_t>(layout.getShape().size());
  for (size_t dim = 0; fits && dim < layout.getShape().size(); ++dim) {
    for (StringAttr axis : layout.getDims()[dim].getNames())
      if (!mesh.findAxisSize(axis))
        return op->emitError()
               << "mesh " << layout.getMesh() << " has no axis " << axis;
    fits = tensor.getDimSize(dim) * mesh.getGroupSize(layout.getDims()[dim]) ==
           layout.getShape()[dim];
  }
  for (StringAttr axis : layout.getPartial().getNames())
    if (!mesh.findAxisSize(axis))
      return op->emitError()
             << "mesh " << layout.getMesh() << " has no axis " << axis;
  if (!fits)
    return op->emitError() << "expected a piece of " << layout << ", found "
                           << type;
  return success();
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned region,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  return verifyLayout(
      op, attribute,
      cast<FunctionOpInterface>(op).getArgumentTypes()[argument]);
}

LogicalResult DistDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned result, NamedAttribute attribute) {
  return verifyLayout(op, attribute,
                      cast<FunctionOpInterface>(op).getResultTypes()[result]);
}
