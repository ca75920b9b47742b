// The text of nn that is not declared in td: types that are written once, the
// values of constants and states, ranges of files and the names of files.

#include "dialects/NN/NN.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace accel::nn;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Type withElement(Type type, Type element) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), element,
                               tensor.getEncoding());
}

/// Operands, then the result. Those in `booleans` are the others' type in i1.
static ParseResult parseTypes(OpAsmParser &parser, ArrayRef<Type *> types,
                              ArrayRef<unsigned> booleans = {}) {
  auto loc = parser.getCurrentLocation();
  Type written;
  if (parser.parseType(written))
    return failure();
  if (auto function = dyn_cast<FunctionType>(written)) {
    if (function.getNumInputs() != types.size() - 1 ||
        function.getNumResults() != 1)
      return parser.emitError(loc)
             << "expected a function type of " << types.size() - 1
             << " operands and one result, found " << written;
    for (auto [type, input] : llvm::zip(types, function.getInputs()))
      *type = input;
    *types.back() = function.getResult(0);
    return success();
  }
  if (!isa<RankedTensorType>(written))
    return parser.emitError(loc)
           << "expected a tensor or a function type, found " << written;
  for (auto [index, type] : llvm::enumerate(types))
    *type = llvm::is_contained(booleans, index)
                ? withElement(written, parser.getBuilder().getI1Type())
                : written;
  return success();
}

static void printTypes(OpAsmPrinter &printer, ArrayRef<Type> types,
                       unsigned one, ArrayRef<unsigned> booleans = {}) {
  auto agrees = [&](auto each) {
    auto [index, type] = each;
    Type expected = types[one];
    if (llvm::is_contained(booleans, index))
      expected =
          withElement(expected, IntegerType::get(expected.getContext(), 1));
    return type == expected;
  };
  if (llvm::all_of(llvm::enumerate(types), agrees))
    printer << types[one];
  else
    printer.printFunctionalType(types.drop_back(), types.take_back());
}

ParseResult accel::nn::parseOneType(OpAsmParser &parser, Type &operand,
                                    Type &result) {
  return parseTypes(parser, {&operand, &result});
}
ParseResult accel::nn::parseOneType(OpAsmParser &parser, Type &lhs, Type &rhs,
                                    Type &result) {
  return parseTypes(parser, {&lhs, &rhs, &result});
}
ParseResult accel::nn::parsePredicateType(OpAsmParser &parser, Type &operand,
                                          Type &result) {
  return parseTypes(parser, {&operand, &result}, 1);
}
ParseResult accel::nn::parsePredicateType(OpAsmParser &parser, Type &lhs,
                                          Type &rhs, Type &result) {
  return parseTypes(parser, {&lhs, &rhs, &result}, 2);
}
ParseResult accel::nn::parseSelectType(OpAsmParser &parser, Type &condition,
                                       Type &onTrue, Type &onFalse,
                                       Type &result) {
  return parseTypes(parser, {&condition, &onTrue, &onFalse, &result}, 0u);
}
void accel::nn::printOneType(OpAsmPrinter &printer, Operation *, Type operand,
                             Type result) {
  printTypes(printer, {operand, result}, 0);
}
void accel::nn::printOneType(OpAsmPrinter &printer, Operation *, Type lhs,
                             Type rhs, Type result) {
  printTypes(printer, {lhs, rhs, result}, 0);
}
void accel::nn::printPredicateType(OpAsmPrinter &printer, Operation *,
                                   Type operand, Type result) {
  printTypes(printer, {operand, result}, 0, 1);
}
void accel::nn::printPredicateType(OpAsmPrinter &printer, Operation *, Type lhs,
                                   Type rhs, Type result) {
  printTypes(printer, {lhs, rhs, result}, 0, 2);
}
void accel::nn::printSelectType(OpAsmPrinter &printer, Operation *,
                                Type condition, Type onTrue, Type onFalse,
                                Type result) {
  printTypes(printer, {condition, onTrue, onFalse, result}, 3, 0u);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

ParseResult accel::nn::parseConstantValue(OpAsmParser &parser,
                                          ElementsAttr &value, Type &result) {
  auto loc = parser.getCurrentLocation();
  Attribute written;
  if (parser.parseAttribute(written))
    return failure();
  value = dyn_cast<ElementsAttr>(written);
  auto type =
      value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  if (!type)
    return parser.emitError(loc)
           << "expected the elements of a tensor, found " << written;
  result = type;
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    value = dense.reshape(plain);
  else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    value = DenseResourceElementsAttr::get(plain, resource.getRawHandle());
  return success();
}

void accel::nn::printConstantValue(OpAsmPrinter &printer, Operation *,
                                   ElementsAttr value, Type result) {
  printer.printAttributeWithoutType(value);
  printer << " : " << result;
}

//===----------------------------------------------------------------------===//
// Files and ranges of them
//===----------------------------------------------------------------------===//

OpAsmAliasResult FileAttr::getAlias(raw_ostream &os) const {
  StringRef name = llvm::sys::path::filename(getPath());
  if (name.empty() || !llvm::isAlpha(name.front()))
    os << "file_";
  for (char c : name)
    os << (llvm::isAlnum(c) ? c : '_');
  return OpAsmAliasResult::FinalAlias;
}

/// `#file[offset : bytes] hash N transposed [1, 0]`
static Attribute parseRange(AsmParser &parser) {
  FileAttr file;
  uint64_t offset, bytes, hash;
  SmallVector<int64_t> permutation;
  if (parser.parseAttribute(file) || parser.parseLSquare() ||
      parser.parseInteger(offset) || parser.parseColon() ||
      parser.parseInteger(bytes) || parser.parseRSquare())
    return {};
  bool hasHash = succeeded(parser.parseOptionalKeyword("hash"));
  if (hasHash && parser.parseInteger(hash))
    return {};
  auto parseDim = [&] {
    return parser.parseInteger(permutation.emplace_back());
  };
  if (succeeded(parser.parseOptionalKeyword("transposed")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  return RangeAttr::get(parser.getContext(), file, offset, bytes,
                        hasHash ? std::optional(hash) : std::nullopt,
                        permutation);
}

static void printRange(AsmPrinter &printer, RangeAttr range) {
  printer << range.getFile() << '[' << range.getOffset() << " : "
          << range.getBytes() << ']';
  if (range.getHash())
    printer << " hash " << *range.getHash();
  if (!range.getPermutation().empty()) {
    printer << " transposed [";
    llvm::interleaveComma(range.getPermutation(), printer.getStream());
    printer << ']';
  }
}

Attribute RangeAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  Attribute range = parseRange(parser);
  return range && succeeded(parser.parseGreater()) ? range : Attribute();
}

void RangeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printRange(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// States: `nn.state moment @m : tensor<8x2xf32> logical [7, 2] = dense<0.0>`
//===----------------------------------------------------------------------===//

ParseResult StateOp::parse(OpAsmParser &parser, OperationState &result) {
  auto &properties = result.getOrAddProperties<Properties>();
  MLIRContext *context = parser.getContext();
  auto loc = parser.getCurrentLocation();
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword))) {
    std::optional<StateRole> role = symbolizeStateRole(keyword);
    if (!role)
      return parser.emitError(loc)
             << "expected a role (parameter, moment, accumulator, counter, "
                "buffer) or a name, found '"
             << keyword << "'";
    properties.role = StateRoleAttr::get(context, *role);
  }
  TypeAttr type;
  if (parser.parseSymbolName(properties.sym_name) || parser.parseColon())
    return failure();
  loc = parser.getCurrentLocation();
  if (parser.parseAttribute(type))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(type.getValue());
  if (!tensor)
    return parser.emitError(loc)
           << "expected a tensor, found " << type.getValue();
  properties.type = type;
  SmallVector<int64_t> shape(tensor.getShape());
  if (succeeded(parser.parseOptionalKeyword("logical"))) {
    shape.clear();
    auto parseSize = [&] { return parser.parseInteger(shape.emplace_back()); };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSize))
      return failure();
    properties.logical = DenseI64ArrayAttr::get(context, shape);
  }
  if (succeeded(parser.parseOptionalKeyword("from"))) {
    properties.init = parseRange(parser);
    if (!properties.init)
      return failure();
  } else if (parser.parseEqual() ||
             parser.parseAttribute(
                 properties.init,
                 RankedTensorType::get(shape, tensor.getElementType()))) {
    return failure();
  }
  return parser.parseOptionalAttrDict(result.attributes);
}

void StateOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  if (getRole() != StateRole::parameter)
    printer << stringifyStateRole(getRole()) << ' ';
  printer.printSymbolName(getSymName());
  printer << " : " << getType();
  if (std::optional<ArrayRef<int64_t>> logical = getLogical()) {
    printer << " logical [";
    llvm::interleaveComma(*logical, printer.getStream());
    printer << ']';
  }
  if (auto range = dyn_cast<RangeAttr>(getInit())) {
    printer << " from ";
    printRange(printer, range);
  } else {
    printer << " = ";
    printer.printAttributeWithoutType(getInit());
  }
  SmallVector<StringRef> written{getSymNameAttrName(), getTypeAttrName(),
                                 getInitAttrName(), getRoleAttrName(),
                                 getLogicalAttrName()};
  if (getChunk() == 0)
    written.push_back(getChunkAttrName());
  printer.printOptionalAttrDict((*this)->getAttrs(), written);
}
