// Type inference, verification and folding of the ops that move elements.

#include "dialects/NN/NN.h"
#include "dialects/NN/NNDims.h"

using namespace mlir;
using namespace accel::nn;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult ReshapeOp::verify() {
  if (tensorType(getInput()).getNumElements() != getType().getNumElements())
    return emitOpError() << "expected " << getType().getNumElements()
                         << " elements, found "
                         << tensorType(getInput()).getNumElements();
  if (tensorType(getInput()).getElementType() != getType().getElementType())
    return emitOpError() << "expected element type "
                         << getType().getElementType() << ", found "
                         << tensorType(getInput()).getElementType();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (tensorType(getInput()).getEncoding() || getType().getEncoding())
    return {};
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            TransposeOp::Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto input = tensorType(adaptor.getInput());
  ArrayRef<int64_t> perm = adaptor.getPermutation();
  SmallVector<int64_t> shape;
  llvm::SmallBitVector seen(input.getRank());
  for (int64_t dim : perm) {
    if (dim < 0 || dim >= input.getRank() || seen[dim])
      break;
    seen.set(dim);
    shape.push_back(input.getDimSize(dim));
  }
  if (shape.size() != perm.size() ||
      static_cast<int64_t>(perm.size()) != input.getRank())
    return emitOptionalError(loc, "expected a permutation of ", input.getRank(),
                             " dimensions, found [", perm, "]");
  types.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && llvm::is_sorted(getPermutation()))
    return getInput();
  auto inner = getInput().getDefiningOp<TransposeOp>();
  if (!inner || tensorType(inner.getInput()).getEncoding() ||
      getType().getEncoding())
    return {};
  SmallVector<int64_t> combined;
  for (int64_t dim : getPermutation())
    combined.push_back(inner.getPermutation()[dim]);
  setPermutation(combined);
  getInputMutable().assign(inner.getInput());
  return getResult();
}

LogicalResult BroadcastOp::verify() {
  auto input = tensorType(getInput());
  int64_t lead = getType().getRank() - input.getRank();
  bool valid = lead >= 0;
  for (int64_t dim = 0; valid && dim < input.getRank(); ++dim)
    valid = input.getDimSize(dim) == 1 ||
            input.getDimSize(dim) == getType().getDimSize(lead + dim);
  if (!valid)
    return emitOpError() << "expected a shape that broadcasts to ["
                         << getType().getShape() << "], found ["
                         << input.getShape() << "]";
  if (input.getElementType() != getType().getElementType())
    return emitOpError() << "expected element type "
                         << getType().getElementType() << ", found "
                         << input.getElementType();
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    if (!getType().getEncoding())
      return splat.resizeSplat(getType());
  return {};
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc,
                                        SliceOp::Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto input = tensorType(adaptor.getInput());
  size_t rank = input.getRank();
  if (adaptor.getStarts().size() != rank || adaptor.getSizes().size() != rank ||
      adaptor.getSteps().size() != rank)
    return emitOptionalError(
        loc, "expected ", rank, " starts, sizes and steps, found ",
        adaptor.getStarts().size(), ", ", adaptor.getSizes().size(), " and ",
        adaptor.getSteps().size());
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t start = adaptor.getStarts()[dim], size = adaptor.getSizes()[dim];
    int64_t last = start + (size - 1) * adaptor.getSteps()[dim];
    int64_t extent = input.getDimSize(dim);
    if (size < 0 || (size > 0 && (start < 0 || start >= extent || last < 0 ||
                                  last >= extent)))
      return emitOptionalError(loc, "expected a slice within dimension ", dim,
                               " of size ", extent, ", found elements ", start,
                               " to ", last);
  }
  types.push_back(
      RankedTensorType::get(adaptor.getSizes(), input.getElementType()));
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  // Nothing is read of what it cuts nothing out of.
  if (llvm::is_contained(getSizes(), 0))
    return DenseElementsAttr::get(getType(), ArrayRef<Attribute>());
  // Of one element no step is taken.
  bool whole = getInput().getType() == getType() &&
               llvm::all_of(llvm::zip_equal(getSizes(), getSteps()),
                            [](std::tuple<int64_t, int64_t> dim) {
                              auto [size, step] = dim;
                              return size == 1 || step == 1;
                            });
  return whole ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         ConcatOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(loc, "expected at least one input, found none");
  auto first = tensorType(adaptor.getInputs().front());
  int64_t dim = adaptor.getDim();
  if (failed(verifyDim(loc, dim, first.getRank())))
    return failure();
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    auto type = tensorType(input);
    bool fits = type.getRank() == first.getRank() &&
                type.getElementType() == first.getElementType();
    for (int64_t d = 0; fits && d < first.getRank(); ++d)
      fits = d == dim || type.getDimSize(d) == first.getDimSize(d);
    if (!fits)
      return emitOptionalError(loc, "expected inputs that agree with ", first,
                               " outside dimension ", dim, ", found ", type);
    shape[dim] += type.getDimSize(dim);
  }
  types.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  auto isEmpty = [](Value input) {
    return cast<RankedTensorType>(input.getType()).getNumElements() == 0;
  };
  // What has no elements joins none; of nothing but such one is the result.
  if (getInputs().size() > 1 && llvm::any_of(getInputs(), isEmpty)) {
    SmallVector<Value> kept(llvm::make_filter_range(
        getInputs(), [&](Value input) { return !isEmpty(input); }));
    if (kept.empty())
      return DenseElementsAttr::get(getType(), ArrayRef<Attribute>());
    getInputsMutable().assign(kept);
    return getResult();
  }
  return getInputs().size() == 1 && getInputs()[0].getType() == getType()
             ? OpFoldResult(getInputs()[0])
             : OpFoldResult();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> loc,
                                      PadOp::Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  auto input = tensorType(adaptor.getInput());
  auto value = tensorType(adaptor.getValue());
  if (value.getRank() != 0 || value.getElementType() != input.getElementType())
    return emitOptionalError(loc, "expected a scalar of ",
                             input.getElementType(), " to pad with, found ",
                             value);
  size_t rank = input.getRank();
  if (adaptor.getLow().size() != rank || adaptor.getHigh().size() != rank)
    return emitOptionalError(
        loc, "expected ", rank, " low and high paddings, found ",
        adaptor.getLow().size(), " and ", adaptor.getHigh().size());
  SmallVector<int64_t> shape;
  for (auto [size, low, high] :
       llvm::zip(input.getShape(), adaptor.getLow(), adaptor.getHigh())) {
    if (low < 0 || high < 0)
      return emitOptionalError(loc, "expected paddings of at least 0, found ",
                               std::min(low, high));
    shape.push_back(size + low + high);
  }
  types.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         GatherOp::Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto table = tensorType(adaptor.getTable());
  int64_t dim = adaptor.getDim();
  if (failed(verifyDim(loc, dim, table.getRank())))
    return failure();
  SmallVector<int64_t> shape(table.getShape().take_front(dim));
  llvm::append_range(shape, tensorType(adaptor.getIndices()).getShape());
  llvm::append_range(shape, table.getShape().drop_front(dim + 1));
  types.push_back(RankedTensorType::get(shape, table.getElementType()));
  return success();
}

LogicalResult ScatterAddOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> loc,
                                             ScatterAddOp::Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto init = tensorType(adaptor.getInit());
  auto updates = tensorType(adaptor.getUpdates());
  auto indices = tensorType(adaptor.getIndices());
  int64_t dim = adaptor.getDim(), batch = adaptor.getBatchDims();
  if (batch < 0 || batch > indices.getRank() || batch > init.getRank() ||
      init.getShape().take_front(batch) != indices.getShape().take_front(batch))
    return emitOptionalError(loc, "expected ", batch,
                             " common batch dimensions, found ", init, " and ",
                             indices);
  if (failed(verifyDim(loc, dim, init.getRank(), batch)))
    return failure();
  SmallVector<int64_t> shape(init.getShape().take_front(dim));
  llvm::append_range(shape, indices.getShape().drop_front(batch));
  llvm::append_range(shape, init.getShape().drop_front(dim + 1));
  auto expected = RankedTensorType::get(shape, init.getElementType());
  if (updates.getShape() != expected.getShape() ||
      updates.getElementType() != expected.getElementType())
    return emitOptionalError(loc, "expected updates of type ", expected,
                             ", found ", updates);
  types.push_back(
      RankedTensorType::get(init.getShape(), init.getElementType()));
  return success();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> loc,
                                           GatherNdOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto table = tensorType(adaptor.getTable());
  auto indices = tensorType(adaptor.getIndices());
  int64_t batch = adaptor.getBatchDims();
  if (batch < 0 || batch >= indices.getRank() || batch >= table.getRank() ||
      table.getShape().take_front(batch) !=
          indices.getShape().take_front(batch))
    return emitOptionalError(loc, "expected ", batch,
                             " common batch dimensions, found ", table, " and ",
                             indices);
  int64_t tuple = indices.getShape().back();
  if (tuple > table.getRank() - batch)
    return emitOptionalError(loc, "expected index tuples of at most ",
                             table.getRank() - batch, " entries, found ",
                             tuple);
  SmallVector<int64_t> shape(indices.getShape().drop_back());
  llvm::append_range(shape, table.getShape().drop_front(batch + tuple));
  types.push_back(RankedTensorType::get(shape, table.getElementType()));
  return success();
}
