// Attributes, types and locations as the file format has them.

#include "Convert.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::emit;

FailureOr<rt::DType> emit::convertType(Location loc, Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  if (std::optional<rt::DType> dtype = rt::dtypeFromName(name))
    return *dtype;
  return emitError(loc) << "expected an element type of the executable format, "
                           "found "
                        << type;
}

FailureOr<rt::View> emit::convertView(Location loc, plan::ViewAttr view,
                                      const BufferIndices &buffers) {
  auto buffer = buffers.find(view.getBuffer());
  if (buffer == buffers.end())
    return emitError(loc) << "found no buffer " << view.getBuffer();
  FailureOr<rt::DType> dtype = convertType(loc, view.getElement());
  if (failed(dtype))
    return failure();
  rt::View result;
  result.buffer = buffer->second;
  result.offset = view.getOffset();
  for (plan::AxisStrideAttr stride : view.getAxes())
    result.axes.push_back({stride.getAxis().str(), stride.getBytes()});
  result.dtype = *dtype;
  result.shape.assign(view.getShape().begin(), view.getShape().end());
  result.strides.assign(view.getStrides().begin(), view.getStrides().end());
  return result;
}

rt::Part emit::convertPart(plan::PartAttr part) {
  rt::Part result;
  result.shape.assign(part.getShape().begin(), part.getShape().end());
  for (auto dim : part.getAxes().getAsRange<ArrayAttr>()) {
    auto &axes = result.axes.emplace_back();
    for (auto name : dim.getAsRange<StringAttr>())
      axes.push_back(name.str());
  }
  if (dist::InterleavedAttr interleaved = part.getInterleaved())
    result.interleaved =
        rt::Interleaved{interleaved.getDim(), interleaved.getSizes().vec(),
                        interleaved.getBy(), interleaved.getTimes()};
  return result;
}

FailureOr<rt::Form> emit::convertForm(Location loc, DictionaryAttr form) {
  rt::Form result;
  if (!form)
    return result;
  for (NamedAttribute named : form) {
    Attribute value = named.getValue();
    rt::FormValue &target = result[named.getName().str()];
    bool known =
        llvm::TypeSwitch<Attribute, bool>(value)
            .Case([&](UnitAttr) { return target = int64_t(1), true; })
            .Case([&](BoolAttr flag) {
              return target = int64_t(flag.getValue()), true;
            })
            .Case([&](IntegerAttr integer) {
              return target = integer.getValue().getSExtValue(), true;
            })
            .Case([&](FloatAttr number) {
              return target = number.getValueAsDouble(), true;
            })
            .Case([&](StringAttr text) { return target = text.str(), true; })
            .Case([&](DenseI64ArrayAttr list) {
              return target = list.asArrayRef().vec(), true;
            })
            .Default([](Attribute) { return false; });
    if (!known)
      return emitError(loc) << "expected integers, numbers, strings or lists "
                               "of integers in a form, found "
                            << value;
  }
  return result;
}

FailureOr<std::string> emit::getBytes(Location loc, Attribute value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return emitError(loc) << "expected the data of a resource, found none";
    return std::string(blob->getData().data(), blob->getData().size());
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return emitError(loc) << "expected a value whose elements are known, found "
                          << value;
  int64_t count = dense.getNumElements();
  std::string bytes;
  if (dense.getElementType().isInteger(1)) {
    bytes.reserve(count);
    for (bool element : dense.getValues<bool>())
      bytes.push_back(element);
    return bytes;
  }
  ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat())
    return std::string(raw.data(), raw.size());
  bytes.reserve(raw.size() * count);
  for (int64_t i = 0; i < count; ++i)
    bytes.append(raw.data(), raw.size());
  return bytes;
}

static void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc))
    names.insert(name.getName().getValue());
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNames(part, names);
  else if (auto call = dyn_cast<CallSiteLoc>(loc))
    collectNames(call.getCallee(), names);
}

std::string emit::getNodeNames(Operation *op) {
  llvm::SetVector<StringRef> names;
  collectNames(op->getLoc(), names);
  std::string text = llvm::join(names, ", ");
  if (auto inserted = op->getAttrOfType<StringAttr>("plan.inserted_by"))
    text += (text.empty() ? "" : " ") + ("(" + inserted.getValue() + ")").str();
  if (text.empty())
    text = op->getName().getStringRef().str();
  return text;
}
