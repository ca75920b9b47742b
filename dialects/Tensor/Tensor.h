// A tensor in memory, for the reference evaluator and for folding constants:
// floats are held as double whatever their type, integers as int64.

#ifndef ACCEL_DIALECTS_TENSOR_TENSOR_H
#define ACCEL_DIALECTS_TENSOR_TENSOR_H

#include "accel-rt/NumberFormat.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <vector>

namespace accel {

/// What is known of a type of floats that tensors have, of kNumberFormats.
const rt::NumberFormat &getNumberFormat(mlir::Type type);

/// `value` rounded to the nearest of such a type, ties to even.
double roundToType(double value, mlir::Type type);

/// `value` reduced to the range of an integer type of up to 64 bits: sign- or
/// zero-extended from its low bits; 0 or 1 for i1.
int64_t wrapToType(int64_t value, mlir::Type type);

/// A statically shaped, row-major tensor. Copies share their elements until one
/// of them is written (copy on write), so passing and reshaping cost nothing.
class Tensor {
public:
  /// No tensor: false when tested.
  Tensor() = default;

  /// Zeros. Requires a float or an integer of at most 64 bits as element type;
  /// the bits of a ui64 are held as those of an int64.
  Tensor(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  explicit Tensor(mlir::RankedTensorType type)
      : Tensor(type.getShape(), type.getElementType()) {}

  /// The elements of an attribute: dense, splat, or a resource. Fails where the
  /// attribute gives no access to its values (an external or absent resource).
  static mlir::FailureOr<Tensor> fromElements(mlir::ElementsAttr elements);

  /// From the little-endian, row-major bytes of the elements; i1 takes a byte
  /// (any non-zero is true). Requires exactly as many bytes as the shape and
  /// type take.
  static Tensor fromBytes(mlir::RankedTensorType type,
                          llvm::ArrayRef<char> bytes);

  explicit operator bool() const { return element != nullptr; }

  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return shape.size(); }
  int64_t getDimSize(int64_t dim) const { return shape[dim]; }
  mlir::Type getElementType() const { return element; }
  mlir::RankedTensorType getType() const {
    return mlir::RankedTensorType::get(shape, element);
  }
  int64_t getNumElements() const {
    return mlir::ShapedType::getNumElements(shape);
  }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(element); }

  /// Whether shape and element type are those of `type`, its encoding aside.
  bool hasType(mlir::RankedTensorType type) const {
    return element == type.getElementType() &&
           llvm::ArrayRef<int64_t>(shape) == type.getShape();
  }

  /// The elements. Requires isFloat() to be what the name says.
  llvm::ArrayRef<double> floats() const { return *floatData; }
  llvm::ArrayRef<int64_t> ints() const { return *intData; }
  /// Those of an unsigned type.
  llvm::ArrayRef<uint64_t> unsignedInts() const {
    return {reinterpret_cast<const uint64_t *>(intData->data()),
            intData->size()};
  }
  /// The same for writing. Written integers must be in the type's range
  /// (wrapToType); floats may be more exact than their type.
  llvm::MutableArrayRef<double> mutableFloats();
  llvm::MutableArrayRef<int64_t> mutableInts();

  /// Any element as a double.
  double asDouble(int64_t index) const {
    if (isFloat())
      return (*floatData)[index];
    int64_t value = (*intData)[index];
    return element.isUnsignedInteger()
               ? static_cast<double>(static_cast<uint64_t>(value))
               : static_cast<double>(value);
  }

  /// The same elements under another shape of as many elements.
  Tensor reshape(llvm::ArrayRef<int64_t> newShape) const;

  /// A copy of the elements at offset + sum of index · stride, in row-major
  /// order of `newShape`; strides and offset count elements, may be negative or
  /// zero, and must stay within the tensor.
  Tensor strided(llvm::ArrayRef<int64_t> newShape,
                 llvm::ArrayRef<int64_t> strides, int64_t offset = 0) const;

  /// Rounds every float to the element type; integers are always in range.
  void roundToElementType();

  /// Bytes of one element as fromBytes and toBytes count them.
  int64_t getElementBytes() const;
  /// The elements' bytes (rounded to the type), as fromBytes reads them.
  /// Requires `bytes` to be of exactly the size they take.
  void toBytes(llvm::MutableArrayRef<char> bytes) const;

  /// The tensor as an attribute of `type`, which must be of its shape and
  /// element type (an encoding may differ). One value throughout gives a splat.
  mlir::DenseElementsAttr toElements(mlir::ShapedType type) const;
  mlir::DenseElementsAttr toElements() const { return toElements(getType()); }

private:
  llvm::SmallVector<int64_t, 4> shape;
  mlir::Type element;
  std::shared_ptr<std::vector<double>> floatData;
  std::shared_ptr<std::vector<int64_t>> intData;
};

/// Row-major strides of a shape, in elements.
llvm::SmallVector<int64_t> getRowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Calls `visit(position)` for offset + sum of index · stride, in row-major
/// order of the indices of `shape`.
void forEachPosition(llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<int64_t> strides, int64_t offset,
                     llvm::function_ref<void(int64_t)> visit);

} // namespace accel

#endif // ACCEL_DIALECTS_TENSOR_TENSOR_H
