// The value of a parameter of which the file holds only what was computed from
// it.
#include "UndoSteps.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

/// One of what is repeated along dimensions of size 1.
static DenseElementsAttr takeOne(DenseElementsAttr value,
                                 RankedTensorType type) {
  ArrayRef<int64_t> all = value.getType().getShape();
  SmallVector<Attribute> kept;
  for (auto [place, each] : llvm::enumerate(value.getValues<Attribute>())) {
    int64_t rest = place;
    bool isFirst = true;
    for (int64_t dim = all.size() - 1; dim >= 0; rest /= all[dim--])
      isFirst &= type.getDimSize(dim) != 1 || rest % all[dim] == 0;
    if (isFirst)
      kept.push_back(each);
  }
  return DenseElementsAttr::get(type, kept);
}

DenseElementsAttr import::undoStep(const onnxio::ParameterStep &step,
                                   DenseElementsAttr value,
                                   ArrayRef<int64_t> shape, Type element) {
  using Step = onnxio::ParameterStep;
  if (step.kind == Step::Reshape)
    return value.reshape(RankedTensorType::get(shape, value.getElementType()));
  if (step.kind == Step::Expand)
    return takeOne(value, RankedTensorType::get(shape, value.getElementType()));
  if (step.kind == Step::Widen)
    return cast<DenseFPElementsAttr>(value).mapValues(
        element, [&](APFloat wide) {
          bool lossy;
          wide.convert(cast<FloatType>(element).getFloatSemantics(),
                       APFloat::rmNearestTiesToEven, &lossy);
          return wide.bitcastToAPInt();
        });
  assert((step.kind == Step::Offset || step.kind == Step::Scale) &&
         "no other is undone");
  return cast<DenseFPElementsAttr>(value).mapValues(
      value.getElementType(), [&](const APFloat &result) {
        APFloat number(step.number);
        bool lossy;
        number.convert(result.getSemantics(), APFloat::rmNearestTiesToEven,
                       &lossy);
        APFloat before =
            step.kind == Step::Scale ? result / number : result - number;
        return before.bitcastToAPInt();
      });
}
