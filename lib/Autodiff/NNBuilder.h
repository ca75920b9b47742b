// Short names for the nn ops that gradients and updates are written in. Private
// to the library.

#ifndef ACCEL_LIB_AUTODIFF_NNBUILDER_H
#define ACCEL_LIB_AUTODIFF_NNBUILDER_H

#include "dialects/NN/NN.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Transforms/FoldConstants.h"
#include "mlir/IR/Builders.h"

namespace accel::autodiff {

/// The location of what is built for the gradient of `op`: its own, marked.
mlir::Location gradientLoc(mlir::Operation *op);
/// Of a value: of the op that makes it, or of the argument.
mlir::Location gradientLoc(mlir::Value value);

/// Builds at `builder`, every op at `loc`. Operands are of one type; a scalar
/// is a tensor of rank 0.
struct NNBuilder {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::RankedTensorType scalarType(mlir::Type element) const {
    return mlir::RankedTensorType::get({}, element);
  }

  /// One number everywhere, rounded to the element type.
  mlir::Value splat(mlir::RankedTensorType type, double value) const;
  mlir::Value f64(double value) const {
    return splat(scalarType(builder.getF64Type()), value);
  }
  mlir::Value i64(int64_t value) const;

  /// Any op of one result, whose type is inferred or comes first; what stands
  /// for it if it folds, like all arithmetic on constants.
  template <typename Op, typename... Args>
  mlir::Value make(Args &&...args) const {
    Op op = Op::create(builder, loc, std::forward<Args>(args)...);
    return op->getNumOperands() == 0 ? op->getResult(0)
                                     : transforms::foldOrKeep(builder, op);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) const {
    return make<nn::AddOp>(a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) const {
    return make<nn::SubOp>(a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) const {
    return make<nn::MulOp>(a, b);
  }
  mlir::Value div(mlir::Value a, mlir::Value b) const {
    return make<nn::DivOp>(a, b);
  }
  mlir::Value neg(mlir::Value a) const { return make<nn::NegOp>(a); }
  mlir::Value matmul(mlir::Value a, mlir::Value b, bool transposeA = false,
                     bool transposeB = false) const {
    return make<nn::MatmulOp>(a, b, transposeA, transposeB);
  }
  mlir::Value sqrt(mlir::Value a) const { return make<nn::SqrtOp>(a); }
  mlir::Value sin(mlir::Value a) const { return make<nn::SinOp>(a); }
  mlir::Value cos(mlir::Value a) const { return make<nn::CosOp>(a); }
  mlir::Value select(mlir::Value condition, mlir::Value a,
                     mlir::Value b) const {
    return make<nn::SelectOp>(condition, a, b);
  }
  mlir::Value compare(nn::ComparePredicate predicate, mlir::Value a,
                      mlir::Value b) const {
    return make<nn::CompareOp>(predicate, a, b);
  }
  /// `number` everywhere, in the type of `like`.
  mlir::Value splat(double number, mlir::Value like) const {
    return splat(typeOf(like), number);
  }
  mlir::Value scale(mlir::Value value, double factor) const {
    return mul(value, splat(factor, value));
  }
  /// A constant of one dimension, rounded to a float type.
  mlir::Value numbers(llvm::ArrayRef<double> values, mlir::Type element) const;
  /// Each element's index in dimension `dim`, as i64.
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim) const;
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  /// Broadcast as nn.broadcast does it.
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  /// The transpose of `broadcast`: sums down to `shape`.
  mlir::Value sumTo(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  /// The sum over ascending `dims`; the value itself if there are none.
  mlir::Value sum(mlir::Value value, llvm::ArrayRef<int64_t> dims) const;
  /// The value, which lacks `dims` of `shape`, repeated along them.
  mlir::Value expand(mlir::Value value, llvm::ArrayRef<int64_t> dims,
                     llvm::ArrayRef<int64_t> shape) const;
  /// Swaps the last two dimensions.
  mlir::Value swapLast(mlir::Value value) const;
  /// The value in another element type; itself if it has it.
  mlir::Value cast(mlir::Value value, mlir::Type element) const;
  /// A scalar repeated to a shape.
  mlir::Value spread(mlir::Value scalar, llvm::ArrayRef<int64_t> shape) const;
  /// The scalar in the element type of `like`, repeated to its shape.
  mlir::Value like(mlir::Value scalar, mlir::Value like) const;
  /// The sum over dimensions [from, rank) that are left.
  mlir::Value sumFrom(mlir::Value value, int64_t from) const;
  /// The same elements as a scalar; requires one.
  mlir::Value toScalar(mlir::Value value) const;
  /// Whether |scalar| is neither infinite nor NaN.
  mlir::Value isFinite(mlir::Value scalar) const;
};

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_NNBUILDER_H
