// Parts of an interleaved dimension: what a rank cuts out of its shares is its
// share of what the logical program cuts out, and so with what is joined.

#include "Follow.h"

#include "dialects/NN/NN.h"

using namespace mlir;
using namespace accel;
using namespace accel::equivalence;

/// What an op cuts away along the one dimension that it changes; `dim` is none
/// if it changes several, or does not keep neighbours.
namespace {
struct CutAway {
  std::optional<unsigned> dim;
  int64_t before = 0, after = 0;
};
} // namespace

static CutAway getCut(nn::SliceOp slice) {
  CutAway cut;
  for (auto [dim, size] : llvm::enumerate(shapeOf(slice.getInput()))) {
    int64_t start = slice.getStarts()[dim], kept = slice.getSizes()[dim];
    if (start == 0 && kept == size)
      continue;
    if (cut.dim || slice.getSteps()[dim] != 1)
      return {};
    cut = {unsigned(dim), start, size - start - kept};
  }
  return cut;
}

/// Whether a piece has one share of each part along a dimension.
static bool isShare(const Dim &dim, int64_t by, PieceMaker &maker) {
  int64_t ranks = 1;
  for (StringAttr axis : dim.axes)
    ranks *= maker.getSize(axis);
  return !dim.free && dim.order.empty() && dim.padding == 0 && ranks == by &&
         by > 1 && (dim.parts.empty() || dim.parts.by == by);
}

/// The parts that are left of shares, cut as `cut` says: none if it cuts one
/// apart. `whole` gets what is cut away of the parts themselves.
static std::optional<Interleaving>
cutShares(const Interleaving &parts, const CutAway &cut, CutAway &whole) {
  auto first = parts.sizes.begin(), last = parts.sizes.end();
  whole.dim = cut.dim;
  for (int64_t left = cut.before; left > 0; ++first) {
    if (first == last || *first / parts.by > left)
      return std::nullopt;
    left -= *first / parts.by;
    whole.before += *first;
  }
  for (int64_t left = cut.after; left > 0; --last) {
    if (first == last || *(last - 1) / parts.by > left)
      return std::nullopt;
    left -= *(last - 1) / parts.by;
    whole.after += *(last - 1);
  }
  if (last - first == 1)
    return Interleaving();
  return Interleaving{{first, last}, parts.by};
}

void Follower::followCutShares(Operation *op, Known &result) {
  auto local = dyn_cast<nn::SliceOp>(op);
  CutAway cut = local ? getCut(local) : CutAway();
  if (!cut.dim)
    return;
  for (Piece piece : at(local.getInput()).pieces) {
    Dim &dim = piece.dims[*cut.dim];
    CutAway whole;
    if (dim.parts.empty() || !isShare(dim, dim.parts.by, maker))
      continue;
    std::optional<Interleaving> left = cutShares(dim.parts, cut, whole);
    if (!left)
      continue;
    dim.parts = *left;
    dim.zeros = false;
    for (Operation *reader : logical.getReaders(piece.logical)) {
      auto slice = dyn_cast<nn::SliceOp>(reader);
      CutAway logicalCut = slice ? getCut(slice) : CutAway();
      if (logicalCut.dim != whole.dim || logicalCut.before != whole.before ||
          logicalCut.after != whole.after)
        continue;
      Piece made = piece;
      made.logical = logical.rootOf(slice);
      if (maker.fits(made, local.getType()))
        insert(result.pieces, made);
    }
  }
}

void Follower::followJoinedShares(Operation *local, Known &result) {
  auto op = dyn_cast<nn::ConcatOp>(local);
  if (!op)
    return;
  unsigned at = op.getDim();
  auto join = [&](nn::ConcatOp whole, const Piece &first) {
    Piece made = first;
    made.logical = logical.rootOf(whole);
    Dim &dim = made.dims[at];
    dim.zeros = false;
    int64_t by = 1;
    for (StringAttr axis : dim.axes)
      by *= maker.getSize(axis);
    dim.parts = {{}, by};
    for (auto [number, input] : llvm::enumerate(op.getInputs())) {
      Value wanted = logical.rootOf(whole.getInputs()[number]);
      bool isFound = false;
      for (const Piece &piece : hold(input, wanted)) {
        const Dim &part = piece.dims[at];
        if (!isShare(part, by, maker) || part.axes != dim.axes ||
            piece.partial != made.partial || piece.reduction != made.reduction)
          continue;
        // Beside the parts they are alike, or equal elements, of which any are
        // as good.
        std::vector<Dim> mine = made.dims, theirs = piece.dims;
        mine[at] = theirs[at] = {dim.axes, false};
        std::optional<std::vector<Dim>> joined =
            joinDims(mine, theirs, wanted, maker);
        if (!joined)
          continue;
        for (size_t other = 0; other < made.dims.size(); ++other)
          if (other != at)
            made.dims[other] = (*joined)[other];
        if (part.parts.empty())
          dim.parts.sizes.push_back(shapeOf(wanted)[at]);
        else
          llvm::append_range(dim.parts.sizes, part.parts.sizes);
        isFound = true;
        break;
      }
      if (!isFound)
        return;
    }
    for (Dim &other : made.dims)
      other.zeros = false;
    if (maker.fits(made, op.getType()))
      insert(result.pieces, made);
  };
  for (const Piece &piece : this->at(op.getInputs().front()).pieces)
    for (Operation *reader : logical.getReaders(piece.logical))
      if (auto whole = dyn_cast<nn::ConcatOp>(reader);
          whole && whole.getDim() == op.getDim() &&
          whole.getInputs().size() == op.getInputs().size() &&
          logical.rootOf(whole.getInputs().front()) == piece.logical)
        join(whole, piece);
}
