// Parameters of files that acc-export wrote (python/): it declares them, so
// that nothing is to be found out. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_DECLAREDPARAMETERS_H
#define ACCEL_LIB_ONNX_DECLAREDPARAMETERS_H

#include "Parameters.h"

namespace accel::onnxio {

/// Whether the file is marked as one of acc-export: the model's property
/// `accel.export`.
bool hasDeclaredParameters(const OnnxFile &file);

/// The table as the graph's property `accel.parameters` declares it: names,
/// ties and `requires_grad`; a use is an operand that is the initializer.
/// `trained` is false where PyTorch would give no gradient: `requires_grad` is
/// false, or nothing uses the parameter. Fails, with an error located in the
/// file, where the property is malformed or the file does not hold what it
/// says. Requires hasDeclaredParameters.
mlir::FailureOr<ParameterTable> readDeclaredParameters(const OnnxFile &file);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_DECLAREDPARAMETERS_H
