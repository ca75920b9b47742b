// Registration of the plan dialect, and what views can be asked.

#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"
#include "dialects/Plan/PlanInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

#define GET_OP_DEFS
#include "dialects/Plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  registerPlanDialectOperations(this);
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
}

LogicalResult ViewAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               FlatSymbolRefAttr, int64_t offset,
                               ArrayRef<AxisStrideAttr>, Type element,
                               ArrayRef<int64_t> shape,
                               ArrayRef<int64_t> strides) {
  if (shape.size() != strides.size())
    return emitError() << "expected as many strides as dimensions ("
                       << shape.size() << "), found " << strides.size();
  if (!element.isIntOrFloat())
    return emitError() << "expected an integer or float element type, found "
                       << element;
  if (offset < 0 || llvm::any_of(strides, [](int64_t s) { return s < 0; }) ||
      llvm::any_of(shape, [](int64_t s) { return s < 0; }))
    return emitError() << "expected no negative offset, size or stride";
  return success();
}

LogicalResult PartAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, ArrayAttr axes,
                               dist::InterleavedAttr interleaved) {
  if (shape.size() != axes.size())
    return emitError() << "expected a list of axes for each dimension ("
                       << shape.size() << "), found " << axes.size();
  for (Attribute dim : axes) {
    auto names = dyn_cast<ArrayAttr>(dim);
    if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
      return emitError() << "expected a list of names of axes for each "
                            "dimension, found "
                         << dim;
  }
  return interleaved ? interleaved.verifyShape(emitError, shape) : success();
}

int64_t ViewAttr::getNumElements() {
  return ShapedType::getNumElements(getShape());
}

int64_t ViewAttr::getElementBytes() {
  return llvm::divideCeil(getElement().getIntOrFloatBitWidth(), 8);
}

int64_t ViewAttr::getSpanBytes() {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip(getShape(), getStrides())) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return (last + 1) * getElementBytes();
}

bool ViewAttr::isContiguous() {
  int64_t expected = 1;
  for (auto [size, stride] :
       llvm::reverse(llvm::zip_equal(getShape(), getStrides()))) {
    if (size != 1 && stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

RankedTensorType ViewAttr::getTensorType() {
  return RankedTensorType::get(getShape(), getElement());
}
