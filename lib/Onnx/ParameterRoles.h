// Which operand of which node a call's argument became: the table that tells
// weight from bias, and a matrix from its transpose. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_PARAMETERROLES_H
#define ACCEL_LIB_ONNX_PARAMETERROLES_H

#include "TracedCall.h"
#include "llvm/ADT/SmallVector.h"

namespace accel::onnxio {

/// The argument of a traced call that an operand is.
struct OperandRole {
  const TracedArgument *argument;
  /// operand = transpose(argument, permutation)
  llvm::SmallVector<int64_t, 4> permutation;
};

/// True for calls whose operands the table knows. For those an operand that it
/// does not list is no argument; for others anything may be one.
bool isKnownCall(const TracedCall &call);

/// The argument that operand `operand` of `node`, an initializer of the given
/// rank, is by the table; nothing where the table does not say, or where the
/// initializer cannot be the argument as it was.
std::optional<OperandRole> operandRole(const TracedCall &call,
                                       const onnx::NodeProto &node,
                                       unsigned operand, unsigned rank);

/// The argument of an elementwise call (`add`, `mul`, …) that operand `operand`
/// of `node`, the operator that does the call's work, is; null where it is none
/// as it was (the other term of an `add` with `alpha`).
const TracedArgument *elementwiseArgument(const TracedCall &call,
                                          const onnx::NodeProto &node,
                                          unsigned operand);

/// The argument that is a bias of `call`, and which operand of `node` it would
/// be had the exporter not removed it (-1: an addition to the result). Nothing
/// where `node` is not the operator that takes the bias.
struct BiasRole {
  const TracedArgument *argument;
  int operand;
};
std::optional<BiasRole> biasRole(const TracedCall &call,
                                 const onnx::NodeProto &node);

/// The identity permutation.
llvm::SmallVector<int64_t, 4> identityPermutation(unsigned rank);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_PARAMETERROLES_H
