// Whether the loss of an evaluation is made of sums of what each row of its
// batch comes to by itself, so that the loss of more rows, and of fewer,
// follows from those of whole batches. Private to the library.

#ifndef ACCEL_LIB_AUTODIFF_SEPARATEROWS_H
#define ACCEL_LIB_AUTODIFF_SEPARATEROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::autodiff {

struct SeparateRows {
  /// The value of `accel.separate_rows`.
  mlir::DictionaryAttr attribute;
  /// The results that it speaks of, by name.
  llvm::SmallVector<std::pair<std::string, mlir::Value>> terms;
};

/// Of an entry whose first result is its loss; nothing where that is not known
/// to be so made. Rows are where `batchDims` say that those of a batch are
/// (lib/Names/BatchDim.h). What terms take is built at the entry's end; more
/// may be left there unused.
std::optional<SeparateRows>
findSeparateRows(mlir::func::FuncOp entry,
                 llvm::ArrayRef<std::string> batchDims);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SEPARATEROWS_H
