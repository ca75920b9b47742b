// Where the elements of a tensor stand in another: what reshapes and transposes
// mean, however they are put together.

#ifndef ACCEL_LIB_EQUIVALENCE_VIEWS_H
#define ACCEL_LIB_EQUIVALENCE_VIEWS_H

#include "Pieces.h"

namespace accel::equivalence {

/// A digit of a position in the root of a view.
struct ViewDigit : Digit {
  bool free = false; ///< elements along it are equal
  /// Of these a rank holds so many, where it does not hold all.
  int64_t held = 0;

  /// Takes the first `count` positions as a digit of their own, and leaves the
  /// rest; false if that is no whole number.
  bool takeMajor(int64_t count, ViewDigit &taken);
  bool operator==(const ViewDigit &other) const {
    return Digit::operator==(other) && free == other.free && held == other.held;
  }
};

/// Joins digits that stand next to each other in the root as well.
void merge(std::vector<ViewDigit> &digits);

/// A tensor each element of which is one of `root`'s, in row-major order: along
/// each dimension, major to minor, digits of its position there. What a rank
/// holds begins where its coordinates say.
struct View {
  mlir::Value root;
  std::vector<std::vector<ViewDigit>> dims;
  std::vector<std::pair<mlir::StringAttr, Digit>> ranks;
  /// Ranges of a position in the root whose elements come interleaved: digits
  /// of these are of the position that has.
  std::vector<std::pair<Digit, Interleaving>> interleaved = {};
  Axes partial;
  dist::Reduction reduction = dist::Reduction::sum;

  /// The view of a tensor as it is.
  static View of(mlir::Value root);
  /// What a reshape to `shape`, or a transpose, makes of it; false if digits
  /// would have to be cut where they have no boundary.
  bool reshape(llvm::ArrayRef<int64_t> shape);
  /// Reads equal elements, where a rank holds all of them, in the order that
  /// they have: digits that may be cut and joined with others as such.
  void orderEqual();
  void transpose(llvm::ArrayRef<int64_t> permutation);
  /// Digits of the root for a range of the positions along a dimension, major
  /// to minor.
  std::optional<std::vector<ViewDigit>> getDigits(unsigned dim,
                                                  Digit range) const;
};

/// What a rank holds of a piece whose logical value is `whole`, as a view of
/// its root.
std::optional<View> getView(const View &whole, const Piece &piece,
                            llvm::ArrayRef<int64_t> local, PieceMaker &maker);

/// Of equal elements any part is as good as another: the view with each digit
/// of which a rank holds a part read as one that axes split, in every way.
std::vector<View> readAsSplit(const View &view, PieceMaker &maker);

/// Shares of interleaved parts of one size, as digits of the position itself;
/// none if there are no such parts, or no digits say it.
std::optional<View> readAsDigits(View view);

/// A range of the positions along a dimension of a tensor.
struct Located {
  unsigned dim;
  Digit digit;
};

/// Where the digits of a view are in `whole`, a view of the same root: those of
/// each dimension, and those of ranks. None if one is in several places.
struct LocatedView {
  std::vector<std::vector<Located>> dims;
  std::vector<Located> ranks;
};
std::optional<LocatedView> locate(const View &view, const View &whole);

/// A view as a piece of `value`, which is the view `whole` of the same root;
/// none if its dimensions are others.
std::optional<Piece> getPiece(View view, mlir::Value value, const View &whole);

/// What a collective that moves elements, or adds terms up, makes of a view;
/// false if that is none.
bool moveView(View &view, dist::CollectiveOpInterface op, PieceMaker &maker);

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_VIEWS_H
