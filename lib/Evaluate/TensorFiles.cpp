// Reading and writing .npy files, and reading ONNX's TensorProto.

#include "TensorFiles.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "onnx-schema/onnx-ml.pb.h"
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

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

/// The element type of a NumPy type string such as `<f4`; null if nn has none.
static Type typeOfNpy(MLIRContext *context, StringRef descr) {
  Builder b(context);
  return llvm::StringSwitch<Type>(descr)
      .Case("<f8", b.getF64Type())
      .Case("<f4", b.getF32Type())
      .Case("<f2", b.getF16Type())
      .Case("<i8", b.getI64Type())
      .Case("<i4", b.getI32Type())
      .Case("<i2", b.getIntegerType(16))
      .Case("|i1", b.getIntegerType(8))
      .Case("|u1", b.getIntegerType(8, /*isSigned=*/false))
      .Case("|b1", b.getI1Type())
      .Default(Type());
}

static std::string npyOfType(Type type) {
  if (type.isBF16())
    return "<f4";
  if (type.isInteger(1))
    return "|b1";
  unsigned bytes = type.getIntOrFloatBitWidth() / 8;
  std::string kind = isa<FloatType>(type)       ? "f"
                     : type.isUnsignedInteger() ? "u"
                                                : "i";
  return (bytes == 1 ? "|" : "<") + kind + std::to_string(bytes);
}

/// The text after `'key':` in a .npy header, a Python dictionary.
static StringRef npyField(StringRef header, StringRef key) {
  return header.split(("'" + key + "':").str()).second.ltrim();
}

static FailureOr<Tensor> readNpy(StringRef path, StringRef data,
                                 MLIRContext *context) {
  if (!data.consume_front("\x93NUMPY") || data.size() < 6)
    return emitFileError(context, path) << "expected a .npy file, found none";
  size_t lengthBytes = data[0] == 1 ? 2 : 4, length = 0;
  for (size_t i = lengthBytes; i > 0; --i)
    length = length << 8 | static_cast<uint8_t>(data[1 + i]);
  data = data.drop_front(2 + lengthBytes);
  if (length > data.size())
    return emitFileError(context, path) << "expected a header of " << length
                                        << " bytes, found " << data.size();
  StringRef header = data.take_front(length);
  data = data.drop_front(length);
  StringRef descr = npyField(header, "descr").drop_front().split('\'').first;
  Type element = typeOfNpy(context, descr);
  if (!element)
    return emitFileError(context, path)
           << "expected elements of a float, integer or bool type, found '"
           << descr << "'";
  if (!npyField(header, "fortran_order").starts_with("False"))
    return emitFileError(context, path)
           << "expected elements in C order, found Fortran order";
  SmallVector<int64_t> shape;
  StringRef sizes = npyField(header, "shape").split(')').first;
  sizes.consume_front("(");
  for (sizes = sizes.ltrim(); !sizes.empty(); sizes = sizes.ltrim(", ")) {
    int64_t size;
    if (sizes.consumeInteger(10, size) || size < 0)
      return emitFileError(context, path)
             << "expected sizes in the header's shape, found '" << sizes << "'";
    shape.push_back(size);
  }
  auto type = RankedTensorType::get(shape, element);
  uint64_t bytes =
      type.getNumElements() * Tensor({}, element).getElementBytes();
  if (data.size() != bytes)
    return emitFileError(context, path)
           << "expected " << bytes << " bytes of elements, found "
           << data.size();
  return Tensor::fromBytes(type, ArrayRef<char>(data.data(), data.size()));
}

LogicalResult evaluate::writeNpy(StringRef path, const Tensor &tensor,
                                 bool asDouble, MLIRContext *context) {
  Builder b(context);
  Type element = tensor.getElementType();
  if (tensor.isFloat() && (asDouble || element.isBF16()))
    element = asDouble ? Type(b.getF64Type()) : Type(b.getF32Type());
  Tensor written = tensor;
  if (element != tensor.getElementType()) {
    written = Tensor(tensor.getShape(), element);
    llvm::copy(tensor.floats(), written.mutableFloats().begin());
  }
  std::string header = "{'descr': '" + npyOfType(element) +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.getShape())
    header += std::to_string(size) + ",";
  header += "), }";
  header.resize(llvm::alignTo(header.size() + 11, 64) - 11, ' ');
  header += '\n';
  std::vector<char> bytes(written.getNumElements() * written.getElementBytes());
  written.toBytes(bytes);
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size())
       << static_cast<char>(header.size() >> 8) << header;
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

//===----------------------------------------------------------------------===//
// TensorProto
//===----------------------------------------------------------------------===//

static Type typeOfOnnx(MLIRContext *context, int32_t type) {
  Builder b(context);
  switch (type) {
  case onnx::TensorProto::FLOAT:
    return b.getF32Type();
  case onnx::TensorProto::DOUBLE:
    return b.getF64Type();
  case onnx::TensorProto::FLOAT16:
    return b.getF16Type();
  case onnx::TensorProto::BFLOAT16:
    return b.getBF16Type();
  case onnx::TensorProto::INT64:
    return b.getI64Type();
  case onnx::TensorProto::INT32:
    return b.getI32Type();
  case onnx::TensorProto::INT16:
    return b.getIntegerType(16);
  case onnx::TensorProto::INT8:
    return b.getIntegerType(8);
  case onnx::TensorProto::UINT8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case onnx::TensorProto::BOOL:
    return b.getI1Type();
  default:
    return Type();
  }
}

/// The bytes of typed data: 16-bit floats and small integers are stored as
/// int32, of which the low bytes are the element.
static std::string bytesOfTypedData(const onnx::TensorProto &proto,
                                    int64_t elementBytes) {
  std::string bytes;
  auto append = [&](const auto &values, size_t size) {
    for (auto value : values)
      bytes.append(reinterpret_cast<const char *>(&value), size);
  };
  append(proto.float_data(), 4);
  append(proto.double_data(), 8);
  append(proto.int64_data(), 8);
  append(proto.int32_data(), elementBytes);
  return bytes;
}

static FailureOr<Tensor> readPb(StringRef path, StringRef data,
                                MLIRContext *context, std::string *name) {
  onnx::TensorProto proto;
  if (!proto.ParseFromArray(data.data(), data.size()))
    return emitFileError(context, path)
           << "expected an ONNX tensor, found other bytes";
  Type element = typeOfOnnx(context, proto.data_type());
  if (!element || proto.external_data_size())
    return emitFileError(context, path)
           << "expected elements of a float, integer or bool type in the file, "
              "found type "
           << proto.data_type()
           << (proto.external_data_size() ? " in another file" : "");
  SmallVector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; }))
    return emitFileError(context, path) << "expected sizes of at least 0";
  if (name)
    *name = proto.name();
  auto type = RankedTensorType::get(shape, element);
  int64_t size = Tensor({}, element).getElementBytes();
  std::string bytes =
      proto.has_raw_data() ? proto.raw_data() : bytesOfTypedData(proto, size);
  if (static_cast<int64_t>(bytes.size()) != type.getNumElements() * size)
    return emitFileError(context, path)
           << "expected " << type.getNumElements() * size
           << " bytes of elements, found " << bytes.size();
  return Tensor::fromBytes(type, ArrayRef<char>(bytes.data(), bytes.size()));
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

FailureOr<Tensor> evaluate::readTensorFile(StringRef path, MLIRContext *context,
                                           std::string *name) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitFileError(context, path)
           << "cannot be read: " << buffer.getError().message();
  StringRef data = (*buffer)->getBuffer();
  return path.ends_with(".pb") ? readPb(path, data, context, name)
                               : readNpy(path, data, context);
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
