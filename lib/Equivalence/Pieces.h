// What a local value holds.

#ifndef ACCEL_LIB_EQUIVALENCE_PIECES_H
#define ACCEL_LIB_EQUIVALENCE_PIECES_H

#include "OpMaps.h"
#include "dialects/Dist/Dist.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace accel::equivalence {

using Axes = llvm::SmallVector<mlir::StringAttr, 3>;

/// A range of a position in row-major order, as a digit of it: `size` steps of
/// `stride` elements.
struct Digit {
  int64_t size, stride;
  bool operator==(const Digit &other) const {
    return size == other.size && stride == other.stride;
  }
};

/// The order of a dimension whose elements come as digits that are all of it,
/// each once, go through it: empty for its own.
std::vector<Digit> makeOrder(llvm::ArrayRef<Digit> digits);

/// Parts of a dimension, one after another, and how many shares of each there
/// are: the first of every part come before the second (#dist.interleaved).
struct Interleaving {
  std::vector<int64_t> sizes;
  int64_t by = 1;

  bool empty() const { return sizes.empty(); }
  bool operator==(const Interleaving &other) const {
    return sizes == other.sizes && by == other.by;
  }
};

/// A dimension of a piece: the axes that split it, major to minor; or all
/// elements along it are equal, and any part is as good as another.
struct Dim {
  Axes axes;
  bool free = false;
  /// The order in which the logical dimension's elements come before axes split
  /// them, major to minor; empty: the logical one.
  std::vector<Digit> order = {};
  /// In whose order they split it; it has no other `order` then.
  Interleaving parts = {};
  /// How many elements stand behind the logical ones, and whether they are
  /// known to be 0. Else they may be anything.
  int64_t padding = 0;
  bool zeros = false;
  /// Whether they are what changes no largest, or no smallest element.
  std::optional<dist::Reduction> extreme = std::nullopt;

  /// Whether pieces of either are pieces of both, what pads them aside.
  bool isSplitLike(const Dim &other) const {
    return free == other.free && axes == other.axes && order == other.order &&
           parts == other.parts && padding == other.padding;
  }
  bool isPlain() const {
    return order.empty() && parts.empty() && padding == 0;
  }
  /// Whether of `ranks` ranks, which an axis tells apart, each has each
  /// `ranks`-th of `size` elements.
  bool isStriped(int64_t ranks, int64_t size) const {
    return !free && parts.empty() && padding == 0 && ranks < size &&
           order == std::vector<Digit>{{ranks, 1}, {size / ranks, ranks}};
  }
  bool operator==(const Dim &other) const {
    return isSplitLike(other) && zeros == other.zeros &&
           extreme == other.extreme;
  }
};

/// A piece of a value of the logical program, or a term of it.
struct Piece {
  mlir::Value logical;
  std::vector<Dim> dims;
  Axes partial; ///< the axes whose terms make the value, in the mesh's order
  dist::Reduction reduction = dist::Reduction::sum; ///< and how they do

  /// Whether terms, if it is one, are added up.
  bool isSum() const {
    return partial.empty() || reduction == dist::Reduction::sum;
  }
  bool operator==(const Piece &other) const {
    return logical == other.logical && dims == other.dims &&
           partial == other.partial &&
           (partial.empty() || reduction == other.reduction);
  }
};

/// A piece of equal elements.
Piece makeFree(mlir::Value logical);

/// Pieces as ops and collectives make them, on one mesh.
class PieceMaker {
public:
  explicit PieceMaker(dist::MeshOp mesh) : mesh(mesh) {}

  /// What a local op computes of the results of `logical`, its operands holding
  /// `operands`; on failure `why` says what does not hold. The op's own types
  /// must be those of the pieces. `ownRows`: of a table whose indices are the
  /// rank's own.
  mlir::FailureOr<std::vector<Piece>>
  applyOp(mlir::Operation *logical, llvm::ArrayRef<Piece> operands,
          mlir::Operation *local, std::string &why, bool ownRows = false);
  /// Dimensions of equal elements that `logical` reduces, or merges with
  /// others, can be read as split over any axes that leave their sizes:
  /// `operands`, in each such way.
  std::vector<std::vector<Piece>> getReadings(mlir::Operation *logical,
                                              std::vector<Piece> operands,
                                              mlir::Operation *local);
  /// What a collective makes of a piece.
  mlir::FailureOr<Piece> applyCollective(dist::CollectiveOpInterface op,
                                         Piece piece, std::string &why);

  /// The piece that a layout describes.
  Piece get(mlir::Value logical, dist::LayoutAttr layout);
  /// Whether a type is one rank's of a piece; free dimensions have any size.
  bool fits(const Piece &piece, mlir::Type local);
  /// "[{dp}, {}] partial {mb} of 'node'".
  std::string describe(const Piece &piece);
  Axes dropUnits(llvm::ArrayRef<mlir::StringAttr> axes);
  /// Axes over which something is partial, in the mesh's order.
  Axes inOrder(Axes axes) {
    normalize(axes);
    return axes;
  }
  /// Puts the axes that split a dimension in an order of its own into the
  /// mesh's, and what they split first with them: the same pieces, said in one
  /// way.
  void sortAxes(Dim &dim);
  /// The same of a dimension of `size` elements that axes split in its own
  /// order.
  Dim inMeshOrder(Dim dim, int64_t size);
  int64_t countRanks(llvm::ArrayRef<mlir::StringAttr> axes);
  int64_t getSize(mlir::StringAttr axis) {
    if (auto own = mesh.findAxisSize(axis))
      return *own;
    auto place = places.find(axis);
    return place == places.end() ? 1 : place->second;
  }
  /// An axis, minor to the mesh's, of the places of so many equal parts that a
  /// rank makes one after another.
  mlir::StringAttr getPlaces(int64_t count) {
    auto axis = mlir::StringAttr::get(mesh.getContext(),
                                      "place of " + llvm::Twine(count));
    places[axis] = count;
    return axis;
  }

  /// Each sequence of axes, none of them in `used`, that leaves a rank `part`
  /// of `whole` elements.
  std::vector<Axes> findSplits(const Axes &used, int64_t whole, int64_t part);

private:
  void addSplits(llvm::ArrayRef<mlir::StringAttr> axes, int64_t whole,
                 int64_t part, Axes taken, std::vector<Axes> &splits);
  bool isSplit(const Piece &piece, mlir::StringAttr axis);
  void normalize(Axes &partial);
  mlir::FailureOr<std::vector<Piece>> applyReshape(mlir::Operation *logical,
                                                   const Piece &operand,
                                                   mlir::Operation *local,
                                                   std::string &why);
  mlir::LogicalResult passPadding(mlir::Operation *logical, const OpMap &map,
                                  llvm::ArrayRef<Piece> operands,
                                  std::vector<std::optional<Dim>> &splits,
                                  std::string &why);
  /// That the rows of causal attention are those that its `row_steps` say.
  mlir::LogicalResult checkCausalRows(mlir::Operation *logical,
                                      mlir::Operation *local, const OpMap &map,
                                      std::vector<std::optional<Dim>> &splits,
                                      std::string &why);
  mlir::LogicalResult permute(dist::PermuteOp op, Piece &piece);

  dist::MeshOp mesh;
  llvm::MapVector<mlir::StringAttr, int64_t> places;
};

/// The dimensions of a reshape's operand along which elements are equal and
/// stay so, whatever shape they are given: a bit each.
llvm::SmallBitVector getStayingEqual(mlir::Operation *logical,
                                     const Piece &operand,
                                     mlir::Operation *local);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PIECES_H
