// Where the rows of a batch are in an input, as `--batch-dim` says it.

#ifndef ACCEL_LIB_NAMES_BATCHDIM_H
#define ACCEL_LIB_NAMES_BATCHDIM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace accel {

/// The dimension of an input that holds the rows of a batch: what `batchDims`,
/// each INPUT=K or INPUT=none, say of it, or the first; none for an input
/// without one.
std::optional<unsigned> batchDimOf(llvm::StringRef input,
                                   llvm::ArrayRef<std::string> batchDims);

} // namespace accel

#endif // ACCEL_LIB_NAMES_BATCHDIM_H
