// Finding or making the loss of a step.

#include "NNBuilder.h"
#include "dialects/Accel/Accel.h"
#include "lib/Autodiff/BuildStep.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

/// What exporters and PyTorch leave out of a loss.
static constexpr int64_t kIgnoredLabel = -100;

FailureOr<Value> autodiff::findOutput(func::FuncOp entry, StringRef name) {
  Operation *terminator = entry.getBody().front().getTerminator();
  std::string names;
  for (unsigned index = 0; index < entry.getNumResults(); ++index) {
    auto output = entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
    if (!output)
      continue;
    if (output == name)
      return terminator->getOperand(index);
    names += (names.empty() ? "'" : ", '") + output.str() + "'";
  }
  return entry.emitError() << "expected one of the outputs (" << names
                           << ") in --loss, found '" << name << "'";
}

FailureOr<Value> autodiff::addInput(func::FuncOp entry, StringRef name,
                                    RankedTensorType type, StringRef what) {
  OpBuilder builder(entry.getContext());
  unsigned place = entry.getNumArguments();
  for (unsigned index = 0; index < entry.getNumArguments(); ++index) {
    if (entry.getArgAttr(index, nn::kStateAttr))
      place = std::min(place, index);
    auto input = entry.getArgAttrOfType<StringAttr>(index, nn::kInputAttr);
    if (input && input == name)
      return entry.emitError() << "expected a new name for " << what
                               << ", found the input '" << name << "'";
  }
  Location loc = NameLoc::get(builder.getStringAttr(name));
  auto attributes = builder.getDictionaryAttr(
      builder.getNamedAttr(nn::kInputAttr, builder.getStringAttr(name)));
  if (failed(entry.insertArgument(place, type, attributes, loc)))
    return failure();
  return Value(entry.getArgument(place));
}

static FailureOr<Value> buildCrossEntropy(func::FuncOp entry, StringRef spec) {
  auto [logitsName, labelsName] = spec.split(',');
  FailureOr<Value> found = findOutput(entry, logitsName);
  if (failed(found))
    return failure();
  Value logits = *found;
  RankedTensorType type = typeOf(logits);
  if (!isa<FloatType>(type.getElementType()) || type.getRank() < 1)
    return emitError(logits.getLoc())
           << "expected logits of floats, of rank 1 or more, found output '"
           << logitsName << "' of type " << type;
  OpBuilder builder(entry.getBody().front().getTerminator());
  FailureOr<Value> labels = addInput(
      entry, labelsName,
      RankedTensorType::get(type.getShape().drop_back(), builder.getI64Type()),
      "the labels of --loss");
  if (failed(labels))
    return failure();
  entry->getParentOfType<ModuleOp>()->setAttr(
      kUnshiftedLabelsAttr, builder.getStringAttr(labelsName));
  NNBuilder build{builder, NameLoc::get(builder.getStringAttr("loss"))};
  if (!type.getElementType().isF64())
    logits = build.cast(logits, builder.getF32Type());
  Value losses = nn::CrossEntropyOp::create(builder, build.loc, logits, *labels,
                                            kIgnoredLabel);
  Value counts = build.cast(
      build.compare(nn::ComparePredicate::ne, *labels,
                    build.splat(typeOf(*labels), double(kIgnoredLabel))),
      typeOf(losses).getElementType());
  return build.div(build.sumFrom(losses, 0), build.sumFrom(counts, 0));
}

FailureOr<Value> autodiff::buildLoss(func::FuncOp entry, StringRef spec) {
  if (spec.consume_front("cross_entropy:"))
    return buildCrossEntropy(entry, spec);
  FailureOr<Value> loss = findOutput(entry, spec);
  if (failed(loss))
    return failure();
  RankedTensorType type = typeOf(*loss);
  if (type.getNumElements() != 1 || !isa<FloatType>(type.getElementType()))
    return emitError(loss->getLoc())
           << "expected a loss of one float, found output '" << spec
           << "' of type " << type;
  OpBuilder builder(entry.getBody().front().getTerminator());
  NNBuilder build{builder, NameLoc::get(builder.getStringAttr("loss"))};
  Value scalar = build.toScalar(*loss);
  return type.getElementType().isF64()
             ? scalar
             : build.cast(scalar, builder.getF32Type());
}
