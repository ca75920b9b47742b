// How each kind of attribute becomes a field.

#include "AttributeReader.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::emit;

/// Of every command: it stands beside the struct.
static constexpr StringLiteral kStream = "stream";

LogicalResult AttributeReader::read(rt::Command &command) {
  return choose(command.what);
}

template <class... Ts>
LogicalResult AttributeReader::choose(std::variant<Ts...> &command) {
  StringRef kind = op->getName().stripDialect();
  LogicalResult result = failure();
  bool known = isa<plan::PlanDialect>(op->getDialect()) &&
               ((kind == Ts::kKind &&
                 (result = readKind(command.template emplace<Ts>()), true)) ||
                ...);
  if (!known)
    return op->emitOpError() << "is no command that the executable format has";
  return result;
}

LogicalResult AttributeReader::finish() {
  for (StringAttr name : op->getName().getAttributeNames())
    if (name != kStream && !llvm::is_contained(taken, name.getValue()))
      refuse() << "has an attribute '" << name.getValue()
               << "' for which the executable format has no field";
  return failure(failed);
}

Attribute AttributeReader::take(StringRef name) {
  taken.push_back(name);
  if (!llvm::is_contained(op->getName().getAttributeNames(), name))
    refuse() << "has no attribute '" << name
             << "' for a field of the executable format";
  return op->getInherentAttr(name).value_or(Attribute());
}

void AttributeReader::refuse(Attribute attribute, const char *expected) {
  refuse() << "expected " << expected << " for attribute '" << taken.back()
           << "', found " << attribute;
}

void AttributeReader::code(StringRef name, std::string &symbol) {
  taken.push_back(name);
  symbol = names.target->getSymbol(op, names.symbols);
}

/// Of integers alone: what the others hold no message speaks of.
void AttributeReader::origins(StringRef, std::vector<std::string> &inputs,
                              ArrayRef<rt::View> views) {
  for (const rt::View &view : views) {
    bool isInteger = view.dtype > rt::DType::I1 && view.dtype < rt::DType::F16;
    inputs.push_back(isInteger ? names.inputs.lookup(view.buffer) : "");
  }
  if (llvm::all_of(inputs,
                   [](const std::string &name) { return name.empty(); }))
    inputs.clear();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

template <class T> static bool assign(T &value, FailureOr<T> converted) {
  if (succeeded(converted))
    value = std::move(*converted);
  return failed(converted);
}

void AttributeReader::readAs(Attribute attribute, rt::View &view) {
  auto found = dyn_cast<plan::ViewAttr>(attribute);
  if (!found)
    return refuse(attribute, "a view");
  failed |= assign(view, convertView(op->getLoc(), found, names.buffers));
}

void AttributeReader::readAs(Attribute attribute, rt::Part &part) {
  auto found = dyn_cast<plan::PartAttr>(attribute);
  if (!found)
    return refuse(attribute, "a part");
  part = convertPart(found);
}

void AttributeReader::readAs(Attribute attribute, rt::Form &form) {
  auto found = dyn_cast<DictionaryAttr>(attribute);
  if (!found)
    return refuse(attribute, "a form");
  failed |= assign(form, convertForm(op->getLoc(), found));
}

void AttributeReader::readAs(Attribute attribute, rt::DType &dtype) {
  auto found = dyn_cast<TypeAttr>(attribute);
  if (!found)
    return refuse(attribute, "a type");
  failed |= assign(dtype, convertType(op->getLoc(), found.getValue()));
}

void AttributeReader::readAs(Attribute attribute, std::string &text) {
  bool known =
      llvm::TypeSwitch<Attribute, bool>(attribute)
          .Case([&](StringAttr string) { return text = string.str(), true; })
          .Case<plan::CollectiveAttr, plan::CombineAttr, plan::ConvolutionAttr,
                plan::SourceAttr>([&](auto known) {
            text = plan::stringifyEnum(known.getValue()).str();
            return true;
          })
          .Default([](Attribute) { return false; });
  if (!known)
    refuse(attribute, "text");
}

void AttributeReader::readAs(Attribute attribute, int64_t &number) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    number = integer.getInt();
  else if (auto body = dyn_cast<FlatSymbolRefAttr>(attribute))
    number = names.bodies.lookup(body.getAttr());
  else
    refuse(attribute, "an integer");
}

void AttributeReader::readAs(Attribute attribute, double &number) {
  auto found = dyn_cast<FloatAttr>(attribute);
  if (!found)
    return refuse(attribute, "a number");
  number = found.getValueAsDouble();
}

void AttributeReader::readAs(Attribute attribute, bool &flag) {
  if (!isa<UnitAttr>(attribute))
    return refuse(attribute, "a mark");
  flag = true;
}

void AttributeReader::readAs(Attribute attribute,
                             std::vector<int64_t> &numbers) {
  APInt bits;
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute)) {
    numbers = list.asArrayRef().vec();
    return;
  }
  if (auto number = dyn_cast<FloatAttr>(attribute))
    bits = number.getValue().bitcastToAPInt();
  else if (auto integer = dyn_cast<IntegerAttr>(attribute))
    bits = integer.getValue();
  else
    return refuse(attribute, "integers or a number");
  unsigned bytes = llvm::divideCeil(bits.getBitWidth(), 8);
  bits = bits.zext(8 * bytes);
  for (unsigned i = 0; i < bytes; ++i)
    numbers.push_back(bits.extractBitsAsZExtValue(8, 8 * i));
}
