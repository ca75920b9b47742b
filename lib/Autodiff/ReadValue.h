// Values of `--set`: what a key of an optimizer or a schedule takes, and its
// reading.

#ifndef ACCEL_LIB_AUTODIFF_READVALUE_H
#define ACCEL_LIB_AUTODIFF_READVALUE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <vector>

namespace accel::autodiff {

enum class ValueType {
  Count,       ///< an integer from `least` to `most`
  NonNegative, ///< a number of at least 0
  Positive,    ///< above 0
  Signed,      ///< any number
  Share,       ///< from 0 to 1
  Fraction,    ///< at least 0 and less than 1
  Rate,        ///< above 0, or "lr", the same as that, kept as 0
  Flag,        ///< true or false
  Word,        ///< one of `words`, kept as its place among them
  Counts,      ///< ascending integers of at least 1, separated by commas
  Betas        ///< two fractions
};

/// What a value must be.
struct ValueSpec {
  ValueType type;
  llvm::ArrayRef<llvm::StringLiteral> words = {};
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
};

/// Reads a value into its numbers, of which only Counts and Betas have several;
/// fails with what was expected as `key`. Numbers are finite.
llvm::Expected<std::vector<double>>
readValue(const ValueSpec &spec, llvm::StringRef key, llvm::StringRef value);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_READVALUE_H
