// Calls of the traced program whose meaning in training is not in the nodes
// that the exporter writes for them. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_CALLMEANING_H
#define ACCEL_LIB_ONNX_CALLMEANING_H

#include "ParameterBuilder.h"
#include "TracedProgram.h"

namespace accel::onnxio {

/// Whether a node draws random numbers when the model runs.
bool drawsRandomNumbers(const onnx::NodeProto &node, const OnnxFile &file);

/// Whether the table in CallMeaning.cpp has a row for the operator.
bool hasMeaningRow(llvm::StringRef op);

/// Appends what of the calls' meaning is lost: the rows of the table in
/// CallMeaning.cpp, regions whose gradient mode the file does not tell, and
/// autograd functions, whose backward it does not hold.
void checkCallMeaning(const TracedProgram &program,
                      const ParameterBuilder &builder,
                      std::vector<Doubt> &doubts);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_CALLMEANING_H
