// What each op of one rank's program computes, in terms of the logical one.

#ifndef ACCEL_LIB_VERIFY_FOLLOW_H
#define ACCEL_LIB_VERIFY_FOLLOW_H

#include "Logical.h"
#include "Pieces.h"
#include <map>

namespace accel::verify {

/// A rank's number along axes, times a factor: where its piece begins.
struct Offset {
  Axes axes;
  int64_t factor = 1;
};

/// What is known of a local value. None of these: nothing.
struct Known {
  /// The values of the logical program that it holds a piece of, and, where
  /// equal elements leave it open, each piece that it may be.
  std::vector<Piece> pieces;
  mlir::Attribute splat;        ///< all elements are this
  std::optional<Offset> offset; ///< all elements are this
  /// The sum over micro-batches that it is, so far, with further terms: of each
  /// what it may be.
  mlir::StringAttr sum;
  std::vector<std::vector<Piece>> terms;
  dist::Reduction combines = dist::Reduction::sum; ///< how terms came in

  bool isNothing() const { return pieces.empty() && !splat && !offset && !sum; }
  bool isZero() const;
  /// Whether it changes nothing where it is combined with others.
  bool isIdentityOf(dist::Reduction kind) const;
};

/// Follows one rank's ops in order.
class Follower {
public:
  Follower(const Logical &logical, dist::MeshOp mesh)
      : logical(logical), mesh(mesh), maker(mesh) {}

  /// Finds what the op's results hold; an error if that is nothing of the
  /// logical program.
  mlir::LogicalResult follow(mlir::Operation *op);
  Known &at(mlir::Value value) { return known[value]; }
  /// The pieces of `wanted`, a root of the logical program, that a value holds.
  std::vector<Piece> hold(mlir::Value value, mlir::Value wanted);
  PieceMaker &getMaker() { return maker; }

private:
  using Operands = std::vector<std::vector<Piece>>;

  mlir::LogicalResult followCollective(dist::CollectiveOpInterface op);
  void followSource(mlir::Operation *op);
  bool followOffset(mlir::Operation *op, Known &result);
  bool followSum(mlir::Operation *op, Known &result);
  void followCounter(mlir::Operation *op, Known &result);
  void followMerged(mlir::Operation *op, Known &result);
  void followOp(mlir::Operation *op);
  std::vector<std::vector<Piece>> apply(mlir::Operation *whole,
                                        const Operands &operands,
                                        llvm::ArrayRef<bool> zeros,
                                        mlir::Operation *local);
  Logical::Ops findScatters(mlir::Value updates);
  std::vector<Piece> applyScatter(mlir::Operation *whole,
                                  mlir::Operation *local);
  std::vector<Piece> addTerms(llvm::ArrayRef<Piece> lhs,
                              llvm::ArrayRef<Piece> rhs);

  const Logical &logical;
  dist::MeshOp mesh;
  PieceMaker maker;
  llvm::DenseMap<mlir::Value, Known> known;
  std::string why; ///< the last thing that kept an op from following
};

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_FOLLOW_H
