// What the report says of calls that are believed without a rule. Private to
// lib/Onnx.
#ifndef ACCEL_LIB_ONNX_REMARKCALLS_H
#define ACCEL_LIB_ONNX_REMARKCALLS_H

#include "ParameterBuilder.h"
#include "TracedProgram.h"

namespace accel::onnxio {

/// One sentence for each operator among the calls on the way from a parameter
/// of which no table of ours says anything: it is taken for what its nodes
/// compute.
std::vector<std::string> remarkCalls(const TracedProgram &program,
                                     const ParameterBuilder &builder);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_REMARKCALLS_H
