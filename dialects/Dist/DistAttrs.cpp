// The text of the dist attributes, and what they check without a mesh in sight.

#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace accel::dist;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

bool AxesAttr::contains(StringRef axis) const {
  return llvm::any_of(getNames(),
                      [&](StringAttr name) { return name == axis; });
}

ParseResult accel::dist::parseAxisList(AsmParser &parser, AxesAttr &axes) {
  SmallVector<StringAttr> names;
  bool open = false;
  auto parseName = [&]() -> ParseResult {
    if (open)
      return parser.emitError(parser.getCurrentLocation(),
                              "expected '?' to end a list of axes");
    if (succeeded(parser.parseOptionalQuestion())) {
      open = true;
      return success();
    }
    std::string name;
    if (failed(parser.parseKeywordOrString(&name)))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                            parseName)))
    return failure();
  axes = AxesAttr::get(parser.getContext(), names, open);
  return success();
}

void accel::dist::printAxisList(AsmPrinter &printer, AxesAttr axes) {
  printer << '{';
  llvm::interleaveComma(
      axes.getNames(), printer.getStream(),
      [&](StringAttr name) { printer.printKeywordOrString(name.getValue()); });
  if (axes.getOpen())
    printer << (axes.empty() ? "?" : ", ?");
  printer << '}';
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  AxesAttr axes;
  if (parser.parseLess() || parseAxisList(parser, axes) ||
      parser.parseGreater())
    return {};
  return axes;
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxisList(printer, *this);
  printer << '>';
}

static ParseResult parseDims(AsmParser &parser, SmallVector<AxesAttr> &dims) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parseAxisList(parser, dims.emplace_back());
  });
}

static void printDims(AsmPrinter &printer, ArrayRef<AxesAttr> dims) {
  printer << '[';
  llvm::interleaveComma(dims, printer.getStream(),
                        [&](AxesAttr axes) { printAxisList(printer, axes); });
  printer << ']';
}

/// That no axis stands twice in some lists.
static LogicalResult
verifyUniqueAxes(function_ref<InFlightDiagnostic()> emitError,
                 ArrayRef<AxesAttr> lists) {
  llvm::SmallDenseSet<StringAttr> seen;
  for (AxesAttr axes : lists)
    for (StringAttr name : axes.getNames())
      if (!seen.insert(name).second)
        return emitError() << "expected every axis once, found " << name
                           << " twice";
  return success();
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<AxesAttr> dims;
  AxesAttr partial = AxesAttr::get(parser.getContext(), ArrayRef<StringRef>());
  Reduction reduction = Reduction::sum;
  auto loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseComma() || parseDims(parser, dims))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("partial") || parser.parseEqual() ||
        parseAxisList(parser, partial))
      return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    if (parser.parseKeyword("reduce") || parser.parseEqual())
      return {};
    auto at = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    auto kind = symbolizeReduction(keyword);
    if (!kind) {
      parser.emitError(at) << "expected sum, max or min, found '" << keyword
                           << "'";
      return {};
    }
    reduction = *kind;
  }
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return ShardingAttr::getChecked(function_ref<InFlightDiagnostic()>(emitError),
                                  parser.getContext(), mesh,
                                  ArrayRef<AxesAttr>(dims), partial, reduction);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << ", ";
  printDims(printer, getDims());
  if (isPartial()) {
    printer << ", partial = ";
    printAxisList(printer, getPartial());
    if (getReduction() != Reduction::sum)
      printer << ", reduce = " << stringifyReduction(getReduction());
  }
  printer << '>';
}

/// Dimension by dimension, what splits it: `dp_replicate-all`.
static void nameDims(raw_ostream &os, ArrayRef<AxesAttr> dims) {
  auto nameAxes = [&](AxesAttr axes) {
    llvm::interleave(
        axes.getNames(), os, [&](StringAttr n) { os << n.str(); }, "_");
    if (axes.getOpen())
      os << (axes.empty() ? "any" : "_any");
    else if (axes.empty())
      os << "all";
  };
  llvm::interleave(dims, os, nameAxes, "-");
}

static void nameAxes(raw_ostream &os, AxesAttr axes) {
  for (StringAttr name : axes.getNames())
    os << '_' << name.str();
}

OpAsmAliasResult ShardingAttr::getAlias(raw_ostream &os) const {
  if (getDims().empty())
    os << "scalar";
  nameDims(os, getDims());
  if (isPartial()) {
    os << '-' << stringifyReduction(getReduction()) << "_over";
    nameAxes(os, getPartial());
  }
  return OpAsmAliasResult::OverridableAlias;
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   FlatSymbolRefAttr, ArrayRef<AxesAttr> dims,
                                   AxesAttr partial, Reduction reduction) {
  if (partial.getOpen())
    return emitError() << "expected a closed list of partial axes";
  if (partial.empty() && reduction != Reduction::sum)
    return emitError() << "expected no reduction other than sum without "
                          "partial axes, found '"
                       << stringifyReduction(reduction) << "'";
  SmallVector<AxesAttr> lists(dims);
  lists.push_back(partial);
  return verifyUniqueAxes(emitError, lists);
}

LogicalResult ShardingAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getDims().size())
    return emitError() << "expected a sharding of " << shape.size()
                       << " dimensions, found " << getDims().size();
  if (llvm::any_of(getDims(), [](AxesAttr axes) { return axes.getOpen(); }))
    return emitError() << "expected closed lists of axes in a tensor's type";
  return success();
}

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, int64_t rank) {
  MLIRContext *context = mesh.getContext();
  SmallVector<AxesAttr> dims(rank,
                             AxesAttr::get(context, ArrayRef<StringRef>()));
  return get(context, mesh, dims);
}

ShardingAttr ShardingAttr::of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<ShardingAttr>(tensor.getEncoding())
                : ShardingAttr();
}

LogicalResult accel::dist::verifySharding(Operation *op, ShardingAttr sharding,
                                          ArrayRef<int64_t> shape) {
  MeshOp mesh = MeshOp::lookup(op, sharding.getMesh());
  if (!mesh)
    return op->emitError() << "no dist.mesh named " << sharding.getMesh();
  if (shape.size() != sharding.getDims().size())
    return op->emitError() << "expected a sharding of " << shape.size()
                           << " dimensions, found "
                           << sharding.getDims().size();
  SmallVector<AxesAttr> lists(sharding.getDims());
  lists.push_back(sharding.getPartial());
  for (AxesAttr axes : lists)
    for (StringAttr axis : axes.getNames())
      if (!mesh.findAxisSize(axis))
        return op->emitError()
               << "mesh " << sharding.getMesh() << " has no axis " << axis;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t ranks = mesh.getGroupSize(sharding.getDims()[dim]);
    if (size % ranks != 0)
      return op->emitError()
             << "dimension " << dim << " of size " << size
             << " cannot be split into " << ranks << " equal parts";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Interleaved dimensions
//===----------------------------------------------------------------------===//

LogicalResult
InterleavedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t dim, ArrayRef<int64_t> sizes, int64_t by,
                        int64_t times) {
  auto isCut = [&](int64_t size) { return size > 0 && size % by == 0; };
  if (dim < 0 || by < 1 || times < 1 || sizes.empty() ||
      !llvm::all_of(sizes, isCut))
    return emitError() << "expected parts that " << by << " divides, found "
                       << sizes << " times " << times << " along dimension "
                       << dim;
  return success();
}

int64_t InterleavedAttr::getSize() {
  return llvm::sum_of(getSizes()) * getTimes();
}

void InterleavedAttr::forEachRun(
    function_ref<void(int64_t, int64_t, int64_t)> run) {
  int64_t to = 0;
  for (int64_t share = 0; share < getBy(); ++share) {
    int64_t start = 0; // of the part
    for (int64_t time = 0; time < getTimes(); ++time)
      for (int64_t size : getSizes()) {
        int64_t count = size / getBy();
        run(start + share * count, to, count);
        start += size;
        to += count;
      }
  }
}

LogicalResult
InterleavedAttr::verifyShape(function_ref<InFlightDiagnostic()> emitError,
                             ArrayRef<int64_t> shape) {
  if (getDim() >= static_cast<int64_t>(shape.size()) ||
      shape[getDim()] != getSize())
    return emitError() << "expected parts of dimension " << getDim() << " of ["
                       << shape << "], found " << getSizes() << " times "
                       << getTimes();
  return success();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<int64_t> shape;
  SmallVector<AxesAttr> dims;
  auto partial =
      AxesAttr::get(parser.getContext(), ArrayRef<StringRef>(), false);
  auto loc = parser.getCurrentLocation();
  auto parseDim = [&]() -> ParseResult {
    dims.push_back(partial);
    if (parser.parseInteger(shape.emplace_back()))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("by")))
      return parseAxisList(parser, dims.back());
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  InterleavedAttr interleaved;
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("interleaved"))) {
      interleaved = {};
      if (parser.parseEqual() ||
          !(interleaved = dyn_cast_or_null<InterleavedAttr>(
                InterleavedAttr::parse(parser, {}))))
        return {};
    } else if (parser.parseKeyword("partial") || parser.parseEqual() ||
               parseAxisList(parser, partial)) {
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return LayoutAttr::getChecked(
      function_ref<InFlightDiagnostic()>(emitError), parser.getContext(), mesh,
      ArrayRef<int64_t>(shape), ArrayRef<AxesAttr>(dims), partial, interleaved);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << " [";
  llvm::interleaveComma(llvm::zip(getShape(), getDims()), printer.getStream(),
                        [&](auto dim) {
                          auto [size, axes] = dim;
                          printer << size;
                          if (axes.empty())
                            return;
                          printer << " by ";
                          printAxisList(printer, axes);
                        });
  printer << ']';
  if (!getPartial().empty()) {
    printer << ", partial = ";
    printAxisList(printer, getPartial());
  }
  if (getInterleaved()) {
    printer << ", interleaved = ";
    getInterleaved().print(printer);
  }
  printer << '>';
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 FlatSymbolRefAttr, ArrayRef<int64_t> shape,
                                 ArrayRef<AxesAttr> dims, AxesAttr partial,
                                 InterleavedAttr interleaved) {
  assert(shape.size() == dims.size() && "the text has one list of both");
  SmallVector<AxesAttr> lists(dims);
  lists.push_back(partial);
  if (llvm::any_of(lists, [](AxesAttr axes) { return axes.getOpen(); }))
    return emitError() << "expected closed lists of axes in a layout";
  if (interleaved && failed(interleaved.verifyShape(emitError, shape)))
    return failure();
  return verifyUniqueAxes(emitError, lists);
}

LogicalResult TaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               TaskKind, int64_t stage, int64_t chunk,
                               int64_t round) {
  if (stage < 0 || chunk < 0 || round < 0)
    return emitError() << "expected stage, chunk and round from 0 up, found "
                       << stage << ", " << chunk << " and " << round;
  return success();
}
