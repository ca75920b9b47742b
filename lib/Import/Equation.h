// The equation of an Einsum as it is written: a label for each dimension of
// each operand and of the result.
#ifndef ACCEL_LIB_IMPORT_EQUATION_H
#define ACCEL_LIB_IMPORT_EQUATION_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace accel::import {

/// A dimension's name: its letter, or for those that "..." stands for numbers
/// from -1 down, the last of them being -1: they are aligned at their ends.
using Label = int;
using Labels = llvm::SmallVector<Label>;

struct Equation {
  llvm::SmallVector<Labels> operands;
  Labels result;
};

/// The equation for operands of these ranks, "..." expanded and the result made
/// explicit; none if it is no equation, or not one of theirs.
std::optional<Equation> readEquation(llvm::StringRef text,
                                     llvm::ArrayRef<int64_t> ranks);

/// The label as it is written.
std::string spellLabel(Label label);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_EQUATION_H
