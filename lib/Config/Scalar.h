// What the text of a scalar means: in YAML as PyYAML's safe_load resolves it
// (YAML 1.1, where NO is false and 1e8 a string), in JSON as Python's json
// does.

#ifndef ACCEL_LIB_CONFIG_SCALAR_H
#define ACCEL_LIB_CONFIG_SCALAR_H

#include "Document.h"
#include <optional>

namespace accel::config {

struct Scalar {
  enum class Type { Null, Bool, Int, Float, String };
  Type type = Type::String;
  bool flag = false;
  int64_t integer = 0;
  double number = 0; ///< of an Int too
};

/// Requires a scalar node.
Scalar resolveScalar(const Node &node, Syntax syntax);

/// "null", "the bool false", "the string 'x'", "a list" …: what a message calls
/// the value that it found.
std::string describeValue(const Node &node, Syntax syntax);

/// True of a string that is spelt like a number, which YAML 1.1 takes for a
/// string all the same: 1e8, 1.5e3 (its floats have a point and a signed
/// exponent).
bool looksLikeNumber(llvm::StringRef text);

/// `value` as few digits as tell it: 1, 0.001, 1e-05.
std::string formatNumber(double value);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_SCALAR_H
