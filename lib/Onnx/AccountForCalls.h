// The border check: whether training the file is training what the user wrote.
// Exporters fold, merge and drop what inference does not need; every argument
// of every traced call must still be there, or its absence be harmless.
// Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_ACCOUNTFORCALLS_H
#define ACCEL_LIB_ONNX_ACCOUNTFORCALLS_H

#include "ParameterBuilder.h"
#include "TracedProgram.h"

namespace accel::onnxio {

/// Everything of which the file does not show that it means in training what
/// the traced program means, in the graph's order. Of an optimized file:
/// - an initializer that was folded from a parameter, or that holds one merged
///   with something else, and that no claim explains;
/// - a parameter among a call's arguments that none of its operands is;
/// - an argument whose call is gone and that stopped a gradient, drew random
///   numbers, or multiplied by a parameter that happens to be 1.
/// Of any file: what CallMeaning.h lists.
/// Requires that `builder` holds all claims and ties.
std::vector<Doubt> accountForCalls(const TracedProgram &program,
                                   const ParameterBuilder &builder);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_ACCOUNTFORCALLS_H
