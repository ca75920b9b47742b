// Tensors of files: their headers are read by who owns the formats
// (accel-rt/TensorFileFormat.h), their elements become tensors here.

#include "TensorFiles.h"

#include "accel-rt/TensorFileFormat.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

static InFlightDiagnostic emitFileError(MLIRContext *context, StringRef path) {
  return emitError(FileLineColLoc::get(context, path, 0, 0));
}

/// The element types that files and nn have in common.
static SmallVector<std::pair<rt::DType, Type>>
commonTypes(MLIRContext *context) {
  Builder b(context);
  return {{rt::DType::F64, b.getF64Type()},
          {rt::DType::F32, b.getF32Type()},
          {rt::DType::F16, b.getF16Type()},
          {rt::DType::BF16, b.getBF16Type()},
          {rt::DType::F8E4M3FN, b.getType<Float8E4M3FNType>()},
          {rt::DType::F8E5M2, b.getType<Float8E5M2Type>()},
          {rt::DType::F8E8M0FNU, b.getType<Float8E8M0FNUType>()},
          {rt::DType::F4E2M1FN, b.getType<Float4E2M1FNType>()},
          {rt::DType::F8E4M3FNUZ, b.getType<Float8E4M3FNUZType>()},
          {rt::DType::F8E5M2FNUZ, b.getType<Float8E5M2FNUZType>()},
          {rt::DType::F6E2M3FN, b.getType<Float6E2M3FNType>()},
          {rt::DType::F6E3M2FN, b.getType<Float6E3M2FNType>()},
          {rt::DType::I4, b.getIntegerType(4)},
          {rt::DType::I2, b.getIntegerType(2)},
          {rt::DType::UI4, b.getIntegerType(4, /*isSigned=*/false)},
          {rt::DType::UI2, b.getIntegerType(2, /*isSigned=*/false)},
          {rt::DType::I64, b.getI64Type()},
          {rt::DType::I32, b.getI32Type()},
          {rt::DType::I16, b.getIntegerType(16)},
          {rt::DType::I8, b.getIntegerType(8)},
          {rt::DType::UI64, b.getIntegerType(64, /*isSigned=*/false)},
          {rt::DType::UI32, b.getIntegerType(32, /*isSigned=*/false)},
          {rt::DType::UI16, b.getIntegerType(16, /*isSigned=*/false)},
          {rt::DType::UI8, b.getIntegerType(8, /*isSigned=*/false)},
          {rt::DType::I1, b.getI1Type()}};
}

LogicalResult evaluate::writeNpy(StringRef path, const Tensor &tensor,
                                 bool asDouble, MLIRContext *context) {
  Builder b(context);
  Type element = tensor.getElementType();
  // NumPy has no others.
  bool isKnown = element.isF16() || element.isF32() || element.isF64();
  if (tensor.isFloat() && (asDouble || !isKnown))
    element = asDouble ? Type(b.getF64Type()) : Type(b.getF32Type());
  Tensor written = tensor;
  if (element != tensor.getElementType()) {
    written = Tensor(tensor.getShape(), element);
    llvm::copy(tensor.floats(), written.mutableFloats().begin());
  }
  const auto types = commonTypes(context);
  const auto *type =
      llvm::find_if(types, [&](auto &one) { return one.second == element; });
  assert(type != types.end() && "a tensor of a type that no file has");
  std::string header = rt::npyHeader(type->first, tensor.getShape().vec());
  std::vector<char> bytes(written.getNumElements() * written.getElementBytes());
  written.toBytes(bytes);
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << header;
    os.write(bytes.data(), bytes.size());
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return emitFileError(context, path)
           << "cannot be written: " << error.message();
  return success();
}

FailureOr<Tensor> evaluate::readTensorFile(StringRef path, MLIRContext *context,
                                           std::string *name) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitFileError(context, path)
           << "cannot be read: " << buffer.getError().message();
  StringRef data = (*buffer)->getBuffer();
  rt::TensorHeader header;
  std::optional<std::vector<char>> typed;
  rt::Status status;
  if (path.ends_with(".pb")) {
    status = rt::readTensorProto(data, header, typed);
  } else {
    uint64_t begin = 0;
    status =
        rt::findNpyElements(data.take_front(rt::kNpyStart), data.size(), begin);
    if (status.ok())
      status = rt::readNpyHeader(data.take_front(begin), data.size(), header);
  }
  if (!status.ok())
    return emitFileError(context, path) << status.message();
  const auto types = commonTypes(context);
  const auto *element = llvm::find_if(
      types, [&](auto &one) { return one.first == header.dtype; });
  if (element == types.end())
    return emitFileError(context, path)
           << "expected elements of a type that nn has, found "
           << rt::dtypeName(header.dtype);
  auto type = RankedTensorType::get(header.shape, element->second);
  if (ArrayRef<int64_t>(header.strides) !=
      ArrayRef<int64_t>(computeStrides(header.shape)))
    return emitFileError(context, path)
           << "expected elements in C order, found Fortran order";
  if (name && path.ends_with(".pb"))
    *name = header.name;
  ArrayRef<char> bytes(data.data(), data.size());
  if (typed)
    bytes = *typed;
  return Tensor::fromBytes(
      type, bytes.slice(typed ? 0 : header.offset,
                        *rt::tensorBytes(header.dtype, header.shape)));
}

std::string evaluate::getTensorPath(StringRef folder, StringRef name) {
  std::string file;
  for (char c : name)
    file += c == '/' ? std::string("%2F") : std::string(1, c);
  SmallString<128> path(folder);
  llvm::sys::path::append(path, file + ".npy");
  return path.str().str();
}

FailureOr<TensorsByName> evaluate::readTensors(StringRef folder,
                                               ArrayRef<NamedType> wanted,
                                               StringRef prefix,
                                               MLIRContext *context) {
  if (!llvm::sys::fs::is_directory(folder))
    return emitFileError(context, folder) << "expected a folder, found none";
  TensorsByName found;
  for (unsigned number = 0;; ++number) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, prefix + "_" + Twine(number) + ".pb");
    if (!llvm::sys::fs::exists(path))
      break;
    std::string name;
    FailureOr<Tensor> tensor = readTensorFile(path, context, &name);
    if (failed(tensor))
      return failure();
    bool known = llvm::any_of(
        wanted, [&](const NamedType &each) { return each.name == name; });
    if (!known && number < wanted.size())
      name = wanted[number].name;
    found[name] = *tensor;
  }
  for (const NamedType &each : wanted) {
    std::string path = getTensorPath(folder, each.name);
    if (!llvm::sys::fs::exists(path))
      continue;
    FailureOr<Tensor> tensor = readTensorFile(path, context);
    if (failed(tensor))
      return failure();
    found[each.name] = *tensor;
  }
  return found;
}

FailureOr<Tensor> evaluate::convertTo(const Tensor &tensor,
                                      RankedTensorType type, Location loc,
                                      StringRef what) {
  if (tensor.hasType(type))
    return tensor;
  Tensor result(type);
  bool fits = tensor.getShape() == type.getShape() &&
              tensor.isFloat() == result.isFloat();
  if (fits && tensor.isFloat()) {
    llvm::copy(tensor.floats(), result.mutableFloats().begin());
    result.roundToElementType();
  } else if (fits) {
    for (auto [to, from] : llvm::zip(result.mutableInts(), tensor.ints())) {
      to = wrapToType(from, type.getElementType());
      fits = fits && to == from;
    }
  }
  if (!fits)
    return emitError(loc) << "expected " << what << " of type " << type
                          << ", found "
                          << (tensor.getShape() == type.getShape() &&
                                      tensor.isFloat() == result.isFloat()
                                  ? "values out of its range in "
                                  : "")
                          << tensor.getType();
  return result;
}

FailureOr<TensorsByName> evaluate::readInputs(StringRef folder, ModuleOp module,
                                              EntryKind entry) {
  FailureOr<Signature> signature = getSignature(module, entry);
  if (failed(signature))
    return failure();
  FailureOr<TensorsByName> found =
      readTensors(folder, signature->inputs, "input", module.getContext());
  if (failed(found))
    return failure();
  for (const NamedType &input : signature->inputs) {
    Tensor &tensor = (*found)[input.name];
    if (!tensor)
      return module.emitError() << "expected a file for input '" << input.name
                                << "' in '" << folder << "', found none";
    FailureOr<Tensor> converted = convertTo(tensor, input.type, module.getLoc(),
                                            "input '" + input.name + "'");
    if (failed(converted))
      return failure();
    tensor = *converted;
  }
  return found;
}
