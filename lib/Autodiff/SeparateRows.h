// Whether the loss of an evaluation is a mean of what each row of its batch
// comes to by itself, so that the loss of fewer rows follows from those of
// whole batches. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_SEPARATEROWS_H
#define ACCEL_LIB_AUTODIFF_SEPARATEROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::autodiff {

/// The value of `accel.separate_rows` for an entry whose first result is its
/// loss; null where that is not known to be such a mean. Rows are where
/// `batchDims` say that those of a batch are (lib/Names/BatchDim.h).
mlir::DictionaryAttr findSeparateRows(mlir::func::FuncOp entry,
                                      llvm::ArrayRef<std::string> batchDims);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SEPARATEROWS_H
