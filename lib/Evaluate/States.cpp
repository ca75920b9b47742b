// Reading states from the attributes and files that hold their first values.

#include "lib/Evaluate/States.h"

#include "TensorFiles.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

static FailureOr<Tensor> loadFile(nn::StateOp state, nn::RangeAttr file) {
  RankedTensorType type = state.getLogicalType();
  auto buffer = llvm::MemoryBuffer::getFile(file.getPath(), /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return state.emitOpError() << "cannot read '" << file.getPath()
                               << "': " << buffer.getError().message();
  StringRef bytes = (*buffer)->getBuffer();
  if (file.getOffset() > bytes.size() ||
      bytes.size() - file.getOffset() < file.getBytes())
    return state.emitOpError()
           << "expected " << file.getBytes() << " bytes at byte "
           << file.getOffset() << " of '" << file.getPath()
           << "', found a file of " << bytes.size() << " bytes";
  bytes = bytes.substr(file.getOffset(), file.getBytes());
  if (std::optional<uint64_t> expected = file.getHash()) {
    uint64_t hash = llvm::xxh3_64bits(bytes);
    if (hash != *expected)
      return state.emitOpError() << "expected bytes of hash " << *expected
                                 << " at byte " << file.getOffset() << " of '"
                                 << file.getPath() << "', found hash " << hash;
  }
  ArrayRef<char> data(bytes.data(), bytes.size());
  ArrayRef<int64_t> perm = file.getPermutation();
  // Dimension d of the file is dimension perm[d] of the state.
  SmallVector<int64_t> fileShape(type.getShape());
  SmallVector<int64_t> strides = getRowMajorStrides(fileShape);
  if (!perm.empty()) {
    for (auto [dim, from] : llvm::enumerate(perm))
      fileShape[dim] = type.getDimSize(from);
    for (auto [dim, stride] : llvm::enumerate(getRowMajorStrides(fileShape)))
      strides[perm[dim]] = stride;
  }
  Type stored = state.getStored().value_or(type.getElementType());
  Tensor value =
      Tensor::fromBytes(RankedTensorType::get(fileShape, stored), data);
  if (!llvm::is_sorted(perm))
    value = value.strided(type.getShape(), strides);
  return convertTo(value, type, state.getLoc(), "the state");
}

/// The members one after another.
static FailureOr<Tensor> loadStack(nn::StateOp state) {
  Tensor whole(state.getLogicalType());
  int64_t to = 0;
  for (FlatSymbolRefAttr name : state.getMembers()) {
    auto member =
        SymbolTable::lookupNearestSymbolFrom<nn::StateOp>(state, name);
    FailureOr<Tensor> row = loadState(member);
    if (failed(row))
      return failure();
    for (int64_t from = 0; from < row->getNumElements(); ++from, ++to)
      if (whole.isFloat())
        whole.mutableFloats()[to] = row->floats()[from];
      else
        whole.mutableInts()[to] = row->ints()[from];
  }
  return whole;
}

static FailureOr<Tensor> loadLogical(nn::StateOp state) {
  if (!state.getMembers().empty())
    return loadStack(state);
  if (auto file = dyn_cast<nn::RangeAttr>(state.getInit()))
    return loadFile(state, file);
  FailureOr<Tensor> value =
      Tensor::fromElements(cast<ElementsAttr>(state.getInit()));
  if (failed(value))
    return state.emitOpError() << "expected an 'init' that can be read, found "
                                  "an attribute without its data";
  return value;
}

FailureOr<Tensor> evaluate::loadState(nn::StateOp state) {
  FailureOr<Tensor> value = loadLogical(state);
  auto type = cast<RankedTensorType>(state.getType());
  if (failed(value) || value->hasType(type))
    return value;
  Tensor padded(type);
  int64_t from = 0;
  forEachPosition(value->getShape(), getRowMajorStrides(type.getShape()), 0,
                  [&](int64_t to) {
                    if (padded.isFloat())
                      padded.mutableFloats()[to] = value->floats()[from++];
                    else
                      padded.mutableInts()[to] = value->ints()[from++];
                  });
  return padded;
}
