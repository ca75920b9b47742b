// torch.autocast's lists: in which type each operation runs.

#ifndef ACCEL_LIB_PRECISION_AUTOCASTLISTS_H
#define ACCEL_LIB_PRECISION_AUTOCASTLISTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace accel::precision {

enum class AutocastList { Cuda, Cpu };

/// The list that a setting calls so: cuda or cpu.
std::optional<AutocastList> parseAutocastList(llvm::StringRef name);

/// In which type an operation of PyTorch runs.
enum class CastPolicy {
  Low,    ///< in 16 bits
  Wide,   ///< in float32
  Follows ///< in the type of its operands; of several in the widest
};

/// What the list says of an operator of ATen, by its name without an overload
/// ("layer_norm"). One that is on no list follows its operands.
CastPolicy getPolicyOfCall(AutocastList list, llvm::StringRef name);

/// What the list says of the operator of ATen that an op of nn stands for by
/// itself, where no file says of which call it is.
CastPolicy getPolicyOfOp(AutocastList list, mlir::Operation *op);

} // namespace accel::precision

#endif // ACCEL_LIB_PRECISION_AUTOCASTLISTS_H
