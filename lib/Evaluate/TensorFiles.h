// Tensors in files: NumPy's .npy and ONNX's TensorProto (.pb).

#ifndef ACCEL_LIB_EVALUATE_TENSORFILES_H
#define ACCEL_LIB_EVALUATE_TENSORFILES_H

#include "Interpreter.h"

namespace accel::evaluate {

/// Reads a .npy or .pb file, by its extension. `name`, if given, gets the name
/// that a .pb carries. Fails with an error located at the file.
mlir::FailureOr<Tensor> readTensorFile(llvm::StringRef path,
                                       mlir::MLIRContext *context,
                                       std::string *name = nullptr);

/// Writes a .npy of the tensor's element type; bf16, which NumPy lacks, as f4,
/// and floats as f8 if `asDouble`. Fails with an error located at the file.
mlir::LogicalResult writeNpy(llvm::StringRef path, const Tensor &tensor,
                             bool asDouble, mlir::MLIRContext *context);

/// Reads the tensors of `wanted` from a folder: `<name>.npy` (`/` written
/// `%2F`), else the .pb `<prefix>_K.pb` that carries the name, or, where it
/// carries none of the wanted ones, that whose K is its place in the list.
/// What is not there is left out.
mlir::FailureOr<TensorsByName> readTensors(llvm::StringRef folder,
                                           llvm::ArrayRef<NamedType> wanted,
                                           llvm::StringRef prefix,
                                           mlir::MLIRContext *context);

/// All inputs of an entry's signature from a folder, in their types. Fails,
/// with an error at the module or the file, where one is missing or of another
/// shape or kind.
mlir::FailureOr<TensorsByName>
readInputs(llvm::StringRef folder, mlir::ModuleOp module, EntryKind entry = {});

/// `<folder>/<name>.npy`, `/` in the name written `%2F`.
std::string getTensorPath(llvm::StringRef folder, llvm::StringRef name);

/// The tensor with the element type of `type`, to which floats are rounded.
/// Fails, with an error at `loc` that names it as `what`, where shapes differ,
/// where only one of them is of floats, or where an integer does not fit.
mlir::FailureOr<Tensor> convertTo(const Tensor &tensor,
                                  mlir::RankedTensorType type,
                                  mlir::Location loc, llvm::StringRef what);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_TENSORFILES_H
