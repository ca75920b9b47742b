// ONNX element types and tensors as MLIR types and attributes.
#ifndef ACCEL_LIB_IMPORT_TENSORS_H
#define ACCEL_LIB_IMPORT_TENSORS_H

#include "lib/Onnx/OnnxFile.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace accel::import {

/// The element type that ONNX numbers `dataType`, or null for those nn has not.
mlir::Type elementType(int32_t dataType, mlir::MLIRContext *context);

/// The type `element` is computed in: itself, or f64 for floats with `f64`.
mlir::Type computeType(mlir::Type element, bool f64);

/// Whether offsets of elements, and products of some of the sizes, can be
/// computed with. Requires sizes from 0 on.
bool isAddressable(llvm::ArrayRef<int64_t> shape);

/// What is written out, element by element, as a mask or a table that counts:
/// more is no model's, and would not fit in memory.
inline constexpr int64_t kMostMaskElements = int64_t(1) << 28;

/// A number of an f32 program as a program in f64 would have it: float32's
/// machine epsilon, which `torch.finfo(x.dtype).eps` and norms without an
/// epsilon of their own are, becomes float64's.
double widenNumber(double number);

/// The tensor's value, its floats widened to f64 if `f64` is set. Emits an
/// error at `loc` and returns null for element types that nn has not.
mlir::DenseElementsAttr tensorValue(const onnxio::OnnxFile &file,
                                    const onnx::TensorProto &tensor, bool f64,
                                    mlir::Location loc);

/// A tensor of one value everywhere, which must be representable in `element`
/// (it is rounded to it).
mlir::DenseElementsAttr splatValue(llvm::ArrayRef<int64_t> shape,
                                   mlir::Type element, double value);

/// The tensor whose transpose by `permutation` is `value`.
mlir::DenseElementsAttr transposeBack(mlir::DenseElementsAttr value,
                                      llvm::ArrayRef<int64_t> permutation);

/// The elements of a constant of integers (i1 included) as 64-bit numbers.
llvm::SmallVector<int64_t> integerElements(mlir::ElementsAttr value);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_TENSORS_H
