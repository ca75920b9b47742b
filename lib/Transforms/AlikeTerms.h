// Terms of a sum that compute the same, each with parameters and numbers of its
// own: what a loop over experts leaves behind.

#ifndef ACCEL_LIB_TRANSFORMS_ALIKETERMS_H
#define ACCEL_LIB_TRANSFORMS_ALIKETERMS_H

#include "dialects/NN/NN.h"

namespace accel::transforms {

/// Values that are computed by the same ops on the same values, but for where
/// they read parameters (each its own, of one type), constants (each another
/// whole number throughout) and slices (of one value, each at another place).
class AlikeTerms {
public:
  /// The first term; the others are told by what takes the place of its values
  /// in them.
  explicit AlikeTerms(mlir::Value first) : terms{first} {}

  /// Whether `term` is like the first, and so has become one of them.
  bool add(mlir::Value term);

  llvm::ArrayRef<mlir::Value> getTerms() const { return terms; }
  mlir::Value getFirst() const { return terms.front(); }
  /// What stands in each term where `value`, of the first one, does.
  llvm::SmallVector<mlir::Value> getAll(mlir::Value value) const;
  /// Whether these are not one value.
  bool varies(mlir::Value value) const;
  /// Whether a parameter that varies has a part in it.
  bool variesByParameter(mlir::Value value) const;
  /// The values of the first term that a parameter which varies has a part in,
  /// these parameters among them.
  llvm::SmallVector<mlir::Value> getOfParameters() const;

private:
  using Places = llvm::MapVector<mlir::Value, mlir::Value>;
  bool compare(mlir::Value one, mlir::Value other, Places &places) const;

  llvm::SmallVector<mlir::Value> terms;
  llvm::SmallVector<Places> others; ///< Of each term but the first.
};

/// The number that is a constant's every element; nothing if there is none.
std::optional<int64_t> getNumber(mlir::Value value);
/// Whether a value is an argument that a state is given by.
bool isStateArgument(mlir::Value value);

} // namespace accel::transforms

#endif // ACCEL_LIB_TRANSFORMS_ALIKETERMS_H
