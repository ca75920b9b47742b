// Calls of the traced program whose meaning in training is not in the nodes
// that the exporter writes for them. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_CALLMEANING_H
#define ACCEL_LIB_ONNX_CALLMEANING_H

#include "ParameterBuilder.h"
#include "TracedProgram.h"

namespace accel::onnxio {

/// Whether a node draws random numbers when the model runs.
bool drawsRandomNumbers(const onnx::NodeProto &node, const OnnxFile &file);

/// Whether the user's own lines, as the node's stack trace quotes them, speak
/// of a detached value.
bool speaksOfDetaching(const onnx::NodeProto &node);

/// Whether those lines speak of an autograd function, but for those whose
/// backward is known to be the derivative of their forward.
bool speaksOfFunction(const onnx::NodeProto &node);

/// One sentence for each operator among the calls on the way from a parameter
/// of which no table of ours says anything: it is taken for what its nodes
/// compute.
std::vector<std::string> remarkCalls(const TracedProgram &program,
                                     const ParameterBuilder &builder);

/// Appends what of the calls' meaning is lost: the rows of the table in
/// CallMeaning.cpp, regions whose gradient mode the file does not tell, and
/// autograd functions, whose backward it does not hold.
void checkCallMeaning(const TracedProgram &program,
                      const ParameterBuilder &builder,
                      std::vector<Doubt> &doubts);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_CALLMEANING_H
