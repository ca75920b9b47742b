// The scalar code of values that no op computes: splat constants and counters.
// Other constants are arguments of the kernel.

#include "Group.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace accel;

namespace {
struct ConstantElement
    : ElementSourceOpInterface::ExternalModel<ConstantElement, nn::ConstantOp> {
  Value emitElement(Operation *op, ElementBuilder &e, ArrayRef<Value>) const {
    auto value = cast<DenseElementsAttr>(cast<nn::ConstantOp>(op).getValue());
    Type element = value.getElementType();
    Type type = e.getComputeType(element);
    ImplicitLocOpBuilder &b = e.builder();
    if (auto floatType = dyn_cast<FloatType>(type)) {
      APFloat number = value.getSplatValue<APFloat>();
      bool inexact;
      number.convert(floatType.getFloatSemantics(),
                     APFloat::rmNearestTiesToEven, &inexact);
      return arith::ConstantOp::create(b, FloatAttr::get(type, number));
    }
    return arith::ConstantOp::create(
        b, IntegerAttr::get(type, value.getSplatValue<APInt>()));
  }
};

struct IotaElement
    : ElementSourceOpInterface::ExternalModel<IotaElement, nn::IotaOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    auto iota = cast<nn::IotaOp>(op);
    ImplicitLocOpBuilder &b = e.builder();
    Value at = e.add(index[iota.getDim()],
                     e.constantIndex(static_cast<int64_t>(iota.getStart())));
    Type type = e.getComputeType(iota.getType().getElementType());
    if (isa<FloatType>(type))
      return arith::SIToFPOp::create(b, type, at);
    if (type == b.getI64Type())
      return at;
    return arith::TruncIOp::create(b, type, at);
  }
};
} // namespace

void element::attachStateModels(MLIRContext *context) {
  nn::ConstantOp::attachInterface<ConstantElement>(*context);
  nn::IotaOp::attachInterface<IotaElement>(*context);
}
