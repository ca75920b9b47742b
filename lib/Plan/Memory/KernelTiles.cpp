// A tile's function is the kernel's with fewer rows: shapes that only name rows
// are gone, and numbers are repeated in each tile.

#include "KernelTiles.h"

#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "dialects/Plan/Storage.h"

#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

/// Where no dimension says it: the longest row of a tile.
static constexpr int64_t kLongestRow = 1024;

static std::string quote(Operation *op) {
  return "'" + op->getName().getStringRef().str() + "'";
}

/// A number, which a tile can repeat: what has more dimensions than that it
/// cannot.
static bool isNumber(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() == 1 && tensor.getRank() <= 2;
}

bool KernelTiles::isAll(Type type) const {
  return cast<RankedTensorType>(type).getNumElements() == count;
}

std::optional<std::string> KernelTiles::findObstacle(Operation &op) const {
  if (!op.hasTrait<nn::Elementwise>() &&
      !isa<nn::ConstantOp, nn::ReshapeOp, nn::BroadcastOp>(op))
    return quote(&op) + " does not compute element by element";
  auto isKnown = [&](Type type) { return isAll(type) || isNumber(type); };
  if (!llvm::all_of(op.getOperandTypes(), isKnown) ||
      !llvm::all_of(op.getResultTypes(), isKnown))
    return quote(&op) + " has a tensor of another size than the state";
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue())
               ? std::nullopt
               : std::optional<std::string>(quote(&op) + " is of many numbers");
  return std::nullopt;
}

std::optional<std::string>
KernelTiles::findObstacle(const BufferTable &buffers) const {
  for (Operation &op : function.front().without_terminator())
    if (std::optional<std::string> obstacle = findObstacle(op))
      return obstacle;
  for (Type type : function.getArgumentTypes())
    if (!isAll(type) && !isNumber(type))
      return "it reads a tensor of another size";
  if (!llvm::all_of(function.getResultTypes(),
                    [&](Type type) { return isAll(type); }))
    return "it makes a tensor of another size";
  bool isApart = false;
  CommandOpInterface(kernel).forEachView([&](ViewAttr view, Access) {
    isApart |= view.getNumElements() == count && !view.isContiguous();
  });
  if (isApart)
    return "elements of it lie apart";
  if (kernel.getForm() || kernel.getScratch())
    return "it has a form of its own";
  if (writeElsewhere({kernel}, buffers))
    return "it writes elsewhere in what it reads";
  return std::nullopt;
}

std::optional<Tiling>
KernelTiles::choose(int64_t most, function_ref<bool(ViewAttr)> isStored) const {
  auto type = cast<RankedTensorType>(function.getResultTypes().front());
  Tiling tiling{1, 0, 0};
  if (type.getRank() > 1 && type.getShape().back() <= most) {
    tiling.width = type.getShape().back();
  } else {
    tiling.width = std::min(most, kLongestRow);
    while (count % tiling.width != 0)
      --tiling.width;
  }
  if (tiling.width < 2)
    return std::nullopt;
  tiling.rows = count / tiling.width;
  int64_t mostRows = most / tiling.width;
  // Of a sector that two tiles share each would have to read the other's part.
  int64_t unit = 1;
  CommandOpInterface(kernel).forEachView([&](ViewAttr view, Access) {
    if (view.getNumElements() == count && isStored(view))
      unit =
          std::max(unit, kStorageSector /
                             std::gcd(kStorageSector,
                                      tiling.width * view.getElementBytes()));
  });
  if (unit > mostRows)
    unit = 1;
  // As even as can be: none is much smaller than the others.
  int64_t even =
      llvm::divideCeil(tiling.rows, llvm::divideCeil(tiling.rows, mostRows));
  tiling.rowsOfTile = std::min<int64_t>(llvm::alignTo(even, unit),
                                        llvm::alignDown(mostRows, unit));
  return tiling;
}

func::FuncOp KernelTiles::makeFunction(const Tiling &tiling,
                                       int64_t rows) const {
  func::FuncOp tile = function.clone();
  auto shrink = [&](Type type) -> Type {
    return isAll(type) ? RankedTensorType::get(
                             {rows, tiling.width},
                             cast<RankedTensorType>(type).getElementType())
                       : type;
  };
  for (BlockArgument argument : tile.getArguments())
    argument.setType(shrink(argument.getType()));
  for (Operation &op : llvm::make_early_inc_range(tile.front())) {
    if (isa<nn::ReshapeOp, nn::BroadcastOp>(op) &&
        op.getOperand(0).getType() == shrink(op.getResult(0).getType())) {
      op.getResult(0).replaceAllUsesWith(op.getOperand(0));
      op.erase();
      continue;
    }
    for (OpResult result : op.getResults())
      result.setType(shrink(result.getType()));
    if (auto constant = dyn_cast<nn::ConstantOp>(op))
      constant.setValueAttr(cast<SplatElementsAttr>(constant.getValue())
                                .resizeSplat(typeOf(constant.getResult())));
  }
  tile.setFunctionType(
      FunctionType::get(tile.getContext(), tile.front().getArgumentTypes(),
                        tile.front().getTerminator()->getOperandTypes()));
  tile->setAttr(kRowsAttr, Builder(tile).getI64IntegerAttr(rows));
  tile.setSymName((function.getSymName() + "_tile").str());
  return tile;
}

ViewAttr KernelTiles::cut(ViewAttr view, const Tiling &tiling, int64_t first,
                          int64_t rows) const {
  if (view.getNumElements() != count)
    return view;
  int64_t begin =
      view.getOffset() + first * tiling.width * view.getElementBytes();
  return ViewAttr::get(view.getContext(), view.getBuffer(), begin,
                       view.getAxes(), view.getElement(), {rows, tiling.width},
                       {tiling.width, 1});
}

KernelOp KernelTiles::create(Operation *before, const Tiling &tiling,
                             int64_t first, func::FuncOp ofTile,
                             int64_t grid) const {
  int64_t rows = ofTile->getAttrOfType<IntegerAttr>(kRowsAttr).getInt();
  OpBuilder builder(before);
  auto cutAll = [&](ArrayAttr views) {
    SmallVector<Attribute> all;
    for (auto view : views.getAsRange<ViewAttr>())
      all.push_back(cut(view, tiling, first, rows));
    return builder.getArrayAttr(all);
  };
  auto tile =
      KernelOp::create(builder, kernel.getLoc(), ofTile.getSymName(),
                       cutAll(kernel.getInputs()), cutAll(kernel.getOutputs()),
                       /*scratch=*/nullptr, rows, grid,
                       /*form=*/nullptr, kernel.getStream());
  tile->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  return tile;
}

bool accel::plan::writeElsewhere(ArrayRef<KernelOp> kernels,
                                 const BufferTable &buffers) {
  struct Touched {
    BufferOp buffer;
    ViewAttr view;
    bool isWritten;
  };
  SmallVector<Touched> all;
  for (KernelOp kernel : kernels)
    CommandOpInterface(kernel).forEachView([&](ViewAttr view, Access access) {
      all.push_back({buffers.getRoot(buffers.lookup(view)), view,
                     access != Access::Read});
    });
  auto areSame = [](ViewAttr lhs, ViewAttr rhs) {
    return lhs.getOffset() == rhs.getOffset() &&
           lhs.getAxes() == rhs.getAxes() &&
           lhs.getElementBytes() == rhs.getElementBytes() &&
           lhs.getNumElements() == rhs.getNumElements();
  };
  for (auto one = all.begin(); one != all.end(); ++one)
    for (auto other = std::next(one); other != all.end(); ++other)
      if (one->buffer == other->buffer &&
          (one->isWritten || other->isWritten) &&
          !areSame(one->view, other->view))
        return true;
  return false;
}
