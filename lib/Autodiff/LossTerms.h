// A loss as numerators over denominators, each a sum over the rows of a batch:
// of more rows than a batch has, the loss is that of the sums. Private to the
// library.

#ifndef ACCEL_LIB_AUTODIFF_LOSSTERMS_H
#define ACCEL_LIB_AUTODIFF_LOSSTERMS_H

#include "mlir/IR/Builders.h"

namespace accel::autodiff {

/// What a value is to the rows of a batch. Free: the same whatever they are.
/// Rows: some dimension has them. Sum: a sum of what each comes to by itself,
/// times what is free. Mean: a Sum plus what is free. Mixed: anything else.
enum class RowKind { Free, Rows, Sum, Mean, Mixed };

/// A numerator over max(denominator + plus, least). Without a denominator it is
/// a Mean, or free.
struct LossTerm {
  mlir::Value numerator, denominator;
  double plus = 0;
  std::optional<double> least = std::nullopt;
};

/// The terms whose sum `loss` is, as scalars of its type; one at least has a
/// denominator. Nothing where the loss is no such sum, or a Mean. What it takes
/// is built at `builder`, and may be left there unused.
std::optional<llvm::SmallVector<LossTerm>>
splitLoss(mlir::OpBuilder &builder, mlir::Value loss,
          llvm::function_ref<RowKind(mlir::Value)> kindOf);

/// What `accel.separate_rows` says of the terms; `results` gets them, by the
/// names that are said.
mlir::ArrayAttr
nameTerms(mlir::Builder &builder, llvm::ArrayRef<LossTerm> terms,
          llvm::SmallVectorImpl<std::pair<std::string, mlir::Value>> &results);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_LOSSTERMS_H
