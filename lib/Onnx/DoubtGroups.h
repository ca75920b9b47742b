// Doubts by what was found: a file in which the exporter did one thing at
// twenty places has one sentence about it.
#ifndef ACCEL_LIB_ONNX_DOUBTGROUPS_H
#define ACCEL_LIB_ONNX_DOUBTGROUPS_H

#include "Parameters.h"

namespace accel::onnxio {

/// Doubts whose messages differ only in the names that they quote.
struct DoubtGroup {
  const Doubt *first;
  /// How many there are besides the first.
  unsigned others = 0;
  /// What the messages of the others name first, each once.
  std::vector<std::string> names;
  /// The parameters of all, each once.
  std::vector<std::string> parameters;

  /// The message of the first, and that the same is so of others.
  std::string message() const;
};

/// In the order of the first of each.
std::vector<DoubtGroup> groupDoubts(llvm::ArrayRef<Doubt> doubts);

/// The first of the names, in quotes, and how many others there are.
std::string quoteFew(llvm::ArrayRef<std::string> names);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_DOUBTGROUPS_H
