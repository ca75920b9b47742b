// Import of DepthToSpace and SpaceToDepth: the elements of a block of space
// become channels, and back.

#include "lib/Import/OpTable.h"
#include "lib/Import/Windows.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// The side of a block of an operand [N, C, H, W], whose channels or space it
/// must divide; none after an error.
static std::optional<int64_t> readSide(Importer &n, bool ofChannels,
                                       bool ofSpace) {
  int64_t side = n.intAttr("blocksize", 0);
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  if (n.hasFailed())
    return std::nullopt;
  if (side < 1 || side > 1 << 16) {
    n.error() << "expected a 'blocksize' from 1 to " << (1 << 16) << ", found "
              << side;
    return std::nullopt;
  }
  int64_t channels = ofChannels ? side * side : 1, space = ofSpace ? side : 1;
  if (shape.size() != 4 || shape[1] % channels != 0 || shape[2] % space != 0 ||
      shape[3] % space != 0) {
    n.error() << "expected a tensor [N, C, H, W] whose C is a multiple of "
              << channels << ", H and W of " << space << ", found "
              << n.operand(0).getType();
    return std::nullopt;
  }
  return side;
}

/// Whether channels are in the order DCR, and not CRD; none after an error.
static std::optional<bool> readMode(Importer &n) {
  std::string mode = n.stringAttr("mode", "DCR");
  if (mode == "DCR" || mode == "CRD")
    return mode == "DCR";
  n.error() << "expected 'mode' to be 'DCR' or 'CRD', found '" << mode << "'";
  return std::nullopt;
}

/// Channels are [side, side, C] with `mode` DCR, [C, side, side] with CRD.
static LogicalResult importDepthToSpace(Importer &n) {
  std::optional<bool> isDepthFirst = readMode(n);
  std::optional<int64_t> side =
      readSide(n, /*ofChannels=*/true, /*ofSpace=*/false);
  if (!side || !isDepthFirst)
    return failure();
  SmallVector<int64_t> shape(Importer::shape(n.operand(0)));
  int64_t rows = shape[0], channels = shape[1] / (*side * *side);
  Value parts =
      *isDepthFirst
          ? n.reshape(n.operand(0),
                      {rows, *side, *side, channels, shape[2], shape[3]})
          : n.reshape(n.operand(0),
                      {rows, channels, *side, *side, shape[2], shape[3]});
  Value placed = *isDepthFirst ? n.transpose(parts, {0, 3, 4, 1, 5, 2})
                               : n.transpose(parts, {0, 1, 4, 2, 5, 3});
  return n.finish(
      n.reshape(placed, {rows, channels, shape[2] * *side, shape[3] * *side}));
}

static LogicalResult importSpaceToDepth(Importer &n) {
  std::optional<bool> isDepthFirst = readMode(n);
  std::optional<int64_t> side =
      readSide(n, /*ofChannels=*/false, /*ofSpace=*/true);
  if (!side || !isDepthFirst)
    return failure();
  SmallVector<int64_t> shape(Importer::shape(n.operand(0)));
  int64_t high = shape[2] / *side, wide = shape[3] / *side;
  Value parts =
      n.reshape(n.operand(0), {shape[0], shape[1], high, *side, wide, *side});
  Value placed = *isDepthFirst ? n.transpose(parts, {0, 3, 5, 1, 2, 4})
                               : n.transpose(parts, {0, 1, 3, 5, 2, 4});
  return n.finish(
      n.reshape(placed, {shape[0], shape[1] * *side * *side, high, wide}));
}

/// Of columns [N, C · prod(k), prod(p)] the picture [N, C, S…] whose windows
/// they are, those that overlap added up.
static LogicalResult importCol2Im(Importer &n) {
  SmallVector<int64_t> sizes = n.constantInts(1), block = n.constantInts(2);
  if (n.hasFailed())
    return failure();
  if (sizes.empty() || sizes.size() != block.size() ||
      Importer::rank(n.operand(0)) != 3)
    return n.error() << "expected columns [N, C, L], and as many sizes of a "
                        "block as of the picture, found "
                     << n.operand(0).getType() << ", " << block.size()
                     << " and " << sizes.size();
  auto isOutside = [](int64_t size) { return size < 1 || size > 1 << 24; };
  if (llvm::any_of(sizes, isOutside) || llvm::any_of(block, isOutside))
    return n.error()
           << "expected sizes of the picture and of a block from 1 to "
           << (1 << 24) << ", found [" << sizes << "] and [" << block << "]";
  std::optional<Windows> windows = readWindows(n, sizes, ArrayRef(block));
  if (!windows)
    return failure();
  auto counts = countWindows(n, sizes, *windows);
  if (!counts)
    return failure();
  ArrayRef<int64_t> shape = Importer::shape(n.operand(0));
  int64_t places = ShapedType::getNumElements(block);
  if (shape[1] % places != 0 || shape[2] != ShapedType::getNumElements(*counts))
    return n.error() << "expected a multiple of " << places << " channels and "
                     << ShapedType::getNumElements(*counts)
                     << " windows, found " << n.operand(0).getType();
  SmallVector<int64_t> split{shape[0], shape[1] / places}, order{0, 1};
  llvm::append_range(split, block);
  llvm::append_range(split, *counts);
  int64_t space = sizes.size();
  for (int64_t part : {space, int64_t(0)})
    for (int64_t dim = 0; dim < space; ++dim)
      order.push_back(2 + part + dim);
  return n.finish(scatterWindows(
      n, n.transpose(n.reshape(n.operand(0), split), order), *windows, sizes));
}

ArrayRef<OpRow> accel::import::blockOps() {
  static const OpRow rows[] = {
      {"", "Col2Im", 18, 3, 3, importCol2Im},
      {"", "DepthToSpace", 1, 1, 1, importDepthToSpace},
      {"", "SpaceToDepth", 1, 1, 1, importSpaceToDepth},
  };
  return rows;
}
