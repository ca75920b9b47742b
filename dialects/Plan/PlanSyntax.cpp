// Readers and writers of the parts of plan ops.

#include "dialects/Plan/PlanSyntax.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static constexpr StringLiteral kReleases = "releases";

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// The strides of elements that follow each other in row-major order.
static SmallVector<int64_t> getRowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t next = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    strides[dim] = next;
    next *= shape[dim];
  }
  return strides;
}

/// `256 + dp*1024`, either of them alone.
static ParseResult parseOffset(AsmParser &parser, int64_t &offset,
                               SmallVectorImpl<AxisStrideAttr> &axes) {
  OptionalParseResult number = parser.parseOptionalInteger(offset);
  if (number.has_value() && failed(*number))
    return failure();
  bool more = !number.has_value() || succeeded(parser.parseOptionalPlus());
  for (; more; more = succeeded(parser.parseOptionalPlus())) {
    std::string axis;
    int64_t bytes;
    if (parser.parseKeywordOrString(&axis) || parser.parseStar() ||
        parser.parseInteger(bytes))
      return failure();
    axes.push_back(AxisStrideAttr::get(parser.getContext(), axis, bytes));
  }
  return success();
}

static void printOffset(AsmPrinter &printer, ViewAttr view) {
  if (view.getOffset() == 0 && view.getAxes().empty())
    return;
  printer << " at ";
  if (view.getOffset() != 0) {
    printer << view.getOffset();
    if (!view.getAxes().empty())
      printer << " + ";
  }
  llvm::interleave(
      view.getAxes(), printer.getStream(),
      [&](AxisStrideAttr axis) {
        printer.printKeywordOrString(axis.getAxis());
        printer << '*' << axis.getBytes();
      },
      " + ");
}

/// A view whose buffer has been read.
static ParseResult parseViewIn(AsmParser &parser, StringAttr buffer,
                               ViewAttr &view) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  int64_t offset = 0;
  SmallVector<AxisStrideAttr> axes;
  if (parser.parseLSquare() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("at")) &&
      failed(parseOffset(parser, offset, axes)))
    return failure();
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  if (succeeded(parser.parseOptionalKeyword("strides"))) {
    strides.clear();
    auto parseStride = [&] {
      return parser.parseInteger(strides.emplace_back());
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       parseStride))
      return failure();
  }
  if (parser.parseRSquare())
    return failure();
  view = ViewAttr::getChecked(
      [&] { return parser.emitError(place); }, parser.getContext(),
      FlatSymbolRefAttr::get(buffer), offset, ArrayRef(axes), element,
      ArrayRef(shape), ArrayRef(strides));
  return success(view != nullptr);
}

ParseResult plan::parseView(AsmParser &parser, ViewAttr &view) {
  StringAttr buffer;
  return failure(parser.parseSymbolName(buffer) ||
                 parseViewIn(parser, buffer, view));
}

void plan::printView(AsmPrinter &printer, ViewAttr view) {
  printer.printSymbolName(view.getBuffer().getValue());
  printer << '[';
  for (int64_t size : view.getShape())
    printer << size << 'x';
  printer << view.getElement();
  printOffset(printer, view);
  if (view.getStrides() != ArrayRef(getRowMajorStrides(view.getShape())))
    printer << " strides [" << view.getStrides() << ']';
  printer << ']';
}

Attribute ViewAttr::parse(AsmParser &parser, Type) {
  ViewAttr view;
  if (parser.parseLess() || parseView(parser, view) || parser.parseGreater())
    return {};
  return view;
}

void ViewAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printView(printer, *this);
  printer << '>';
}

ParseResult plan::parseViews(OpAsmParser &parser, ArrayAttr &views) {
  SmallVector<Attribute> list;
  StringAttr buffer;
  if (succeeded(parser.parseOptionalSymbolName(buffer))) {
    ViewAttr view;
    if (parseViewIn(parser, buffer, view))
      return failure();
    list.push_back(view);
    while (succeeded(parser.parseOptionalComma())) {
      if (parseView(parser, view))
        return failure();
      list.push_back(view);
    }
  }
  views = parser.getBuilder().getArrayAttr(list);
  return success();
}

void plan::printViews(OpAsmPrinter &printer, Operation *, ArrayAttr views) {
  llvm::interleaveComma(views.getAsRange<ViewAttr>(), printer,
                        [&](ViewAttr view) { printView(printer, view); });
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

ParseResult plan::parsePart(AsmParser &parser, PartAttr &part) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  SmallVector<Attribute> axes;
  auto parseDim = [&] {
    SmallVector<Attribute> names;
    if (parser.parseInteger(shape.emplace_back()))
      return failure();
    while (succeeded(parser.parseOptionalSlash())) {
      std::string name;
      if (parser.parseKeywordOrString(&name))
        return failure();
      names.push_back(parser.getBuilder().getStringAttr(name));
    }
    axes.push_back(parser.getBuilder().getArrayAttr(names));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return failure();
  dist::InterleavedAttr interleaved;
  if (succeeded(parser.parseOptionalKeyword("interleaved")) &&
      !(interleaved = dyn_cast_or_null<dist::InterleavedAttr>(
            dist::InterleavedAttr::parse(parser, {}))))
    return failure();
  part =
      PartAttr::getChecked([&] { return parser.emitError(place); },
                           parser.getContext(), ArrayRef<int64_t>(shape),
                           parser.getBuilder().getArrayAttr(axes), interleaved);
  return success(part != nullptr);
}

void plan::printPart(AsmPrinter &printer, PartAttr part) {
  printer << '[';
  llvm::interleaveComma(
      llvm::zip_equal(part.getShape(), part.getAxes()), printer, [&](auto dim) {
        auto [size, axes] = dim;
        printer << size;
        for (auto axis :
             cast<ArrayAttr>(axes).template getAsRange<StringAttr>()) {
          printer << '/';
          printer.printKeywordOrString(axis);
        }
      });
  printer << ']';
  if (part.getInterleaved()) {
    printer << " interleaved ";
    part.getInterleaved().print(printer);
  }
}

Attribute PartAttr::parse(AsmParser &parser, Type) {
  PartAttr part;
  if (parser.parseLess() || parsePart(parser, part) || parser.parseGreater())
    return {};
  return part;
}

void PartAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printPart(printer, *this);
  printer << '>';
}

/// The part that a view is where it is the whole.
static PartAttr getWhole(ViewAttr view) {
  Builder builder(view.getContext());
  SmallVector<Attribute> axes(view.getShape().size(), builder.getArrayAttr({}));
  return PartAttr::get(view.getContext(), view.getShape(),
                       builder.getArrayAttr(axes));
}

ParseResult plan::parseViewOf(OpAsmParser &parser, ViewAttr &view,
                              PartAttr &part) {
  if (parseView(parser, view))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("of")))
    return parsePart(parser, part);
  part = getWhole(view);
  return success();
}

void plan::printViewOf(OpAsmPrinter &printer, Operation *, ViewAttr view,
                       PartAttr part) {
  printView(printer, view);
  if (part == getWhole(view))
    return;
  printer << " of ";
  printPart(printer, part);
}

//===----------------------------------------------------------------------===//
// Names and forms
//===----------------------------------------------------------------------===//

ParseResult plan::parseName(OpAsmParser &parser, StringAttr &name) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  name = parser.getBuilder().getStringAttr(text);
  return success();
}

void plan::printName(OpAsmPrinter &printer, Operation *, StringAttr name) {
  printer.printKeywordOrString(name);
}

ParseResult plan::parseNames(OpAsmParser &parser, ArrayAttr &names) {
  SmallVector<Attribute> list;
  std::string text;
  if (succeeded(parser.parseOptionalKeywordOrString(&text))) {
    list.push_back(parser.getBuilder().getStringAttr(text));
    while (succeeded(parser.parseOptionalComma())) {
      if (parser.parseKeywordOrString(&text))
        return failure();
      list.push_back(parser.getBuilder().getStringAttr(text));
    }
  }
  names = parser.getBuilder().getArrayAttr(list);
  return success();
}

void plan::printNames(OpAsmPrinter &printer, Operation *, ArrayAttr names) {
  llvm::interleaveComma(
      names.getAsRange<StringAttr>(), printer,
      [&](StringAttr name) { printer.printKeywordOrString(name); });
}

ParseResult plan::parseCombine(OpAsmParser &parser, CombineAttr &combine) {
  for (uint64_t number = 0; number <= getMaxEnumValForCombine(); ++number)
    if (auto one = static_cast<Combine>(number);
        succeeded(parser.parseOptionalKeyword(stringifyCombine(one))))
      combine = CombineAttr::get(parser.getContext(), one);
  return success();
}

void plan::printCombine(OpAsmPrinter &printer, Operation *,
                        CombineAttr combine) {
  if (combine)
    printer << ' ' << stringifyCombine(combine.getValue());
}

ParseResult plan::parseForm(OpAsmParser &parser, DictionaryAttr &form) {
  return parser.parseAttribute(form);
}

void plan::printForm(OpAsmPrinter &printer, Operation *, DictionaryAttr form) {
  printer << '{';
  llvm::interleaveComma(form, printer, [&](NamedAttribute entry) {
    printer.printKeywordOrString(entry.getName());
    Attribute value = entry.getValue();
    if (isa<UnitAttr>(value))
      return;
    printer << " = ";
    auto typed = dyn_cast<TypedAttr>(value);
    if (typed &&
        (typed.getType().isSignlessInteger(64) || typed.getType().isF64()))
      printer.printAttributeWithoutType(value);
    else
      printer.printAttribute(value);
  });
  printer << '}';
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Reads an integer as an attribute of i64.
static ParseResult parseNumber(OpAsmParser &parser, IntegerAttr &number) {
  int64_t value;
  if (parser.parseInteger(value))
    return failure();
  number = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

ParseResult plan::parseSlotStride(OpAsmParser &parser, IntegerAttr &stride,
                                  IntegerAttr bytes) {
  stride = bytes;
  if (succeeded(parser.parseOptionalKeyword("stride")))
    return parseNumber(parser, stride);
  return success();
}

void plan::printSlotStride(OpAsmPrinter &printer, Operation *,
                           IntegerAttr stride, IntegerAttr bytes) {
  if (stride != bytes)
    printer << " stride " << stride.getInt();
}

ParseResult plan::parseMicroBatch(OpAsmParser &parser, IntegerAttr &offset,
                                  UnitAttr &turn) {
  offset = parser.getBuilder().getI64IntegerAttr(0);
  if (failed(parser.parseOptionalKeyword("micro_batch")))
    return success();
  if (failed(parser.parseOptionalKeyword("turn")))
    return parseNumber(parser, offset);
  turn = parser.getBuilder().getUnitAttr();
  if (failed(parser.parseOptionalPlus()))
    return success();
  return parseNumber(parser, offset);
}

void plan::printMicroBatch(OpAsmPrinter &printer, Operation *,
                           IntegerAttr offset, UnitAttr turn) {
  if (turn)
    printer << " micro_batch turn";
  if (offset.getInt() != 0)
    printer << (turn ? " + " : " micro_batch ") << offset.getInt();
}

ParseResult plan::parseRows(OpAsmParser &parser, IntegerAttr &rows,
                            IntegerAttr &grid) {
  if (parseNumber(parser, rows))
    return failure();
  grid = rows;
  if (succeeded(parser.parseOptionalKeyword("by")))
    return parseNumber(parser, grid);
  return success();
}

void plan::printRows(OpAsmPrinter &printer, Operation *, IntegerAttr rows,
                     IntegerAttr grid) {
  printer << rows.getInt();
  if (grid != rows)
    printer << " by " << grid.getInt();
}

ParseResult plan::parseNeighbour(OpAsmParser &parser, StringAttr &axis,
                                 IntegerAttr &delta) {
  if (parseName(parser, axis))
    return failure();
  // A minus is the number's own.
  (void)parser.parseOptionalPlus();
  return parseNumber(parser, delta);
}

void plan::printNeighbour(OpAsmPrinter &printer, Operation *, StringAttr axis,
                          IntegerAttr delta) {
  printer.printKeywordOrString(axis);
  int64_t number = delta.getInt();
  if (number < 0)
    printer << " - " << -static_cast<uint64_t>(number);
  else
    printer << " + " << number;
}

ParseResult plan::parseValue(OpAsmParser &parser, TypedAttr &value,
                             ViewAttr target) {
  return parser.parseAttribute(value, target.getElement());
}

void plan::printValue(OpAsmPrinter &printer, Operation *, TypedAttr value,
                      ViewAttr) {
  printer.printAttributeWithoutType(value);
}

//===----------------------------------------------------------------------===//
// Attributes of dialects
//===----------------------------------------------------------------------===//

ParseResult plan::parseAttributes(OpAsmParser &parser,
                                  NamedAttrList &attributes) {
  if (succeeded(parser.parseOptionalKeyword(kReleases))) {
    ArrayAttr views;
    if (parseViews(parser, views))
      return failure();
    attributes.set(kReleasesAttr, views);
  }
  SMLoc place = parser.getCurrentLocation();
  NamedAttrList others;
  if (parser.parseOptionalAttrDict(others))
    return failure();
  for (NamedAttribute attribute : others) {
    StringRef name = attribute.getName();
    if (!name.contains('.') || name == kReleasesAttr)
      return parser.emitError(place)
             << "expected attributes of dialects in braces, found '" << name
             << "': what a command has of its own is written before them";
    attributes.push_back(attribute);
  }
  return success();
}

void plan::printAttributes(OpAsmPrinter &printer, Operation *op,
                           DictionaryAttr) {
  SmallVector<NamedAttribute> others;
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (attribute.getName() != kReleasesAttr)
      others.push_back(attribute);
  if (auto views = op->getAttrOfType<ArrayAttr>(kReleasesAttr)) {
    printer << ' ' << kReleases << ' ';
    printViews(printer, op, views);
  }
  printer.printOptionalAttrDict(others);
}
