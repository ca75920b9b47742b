// What `--report=parameters` prints where a training step is built of them.

#ifndef ACCEL_LIB_ONNX_PARAMETERREPORT_H
#define ACCEL_LIB_ONNX_PARAMETERREPORT_H

#include "Parameters.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

namespace accel::onnxio {

/// As without `updates`; in JSON a parameter that is among them has its own as
/// `update`.
void printParameterReport(const ParameterTable &table, llvm::raw_ostream &os,
                          bool json,
                          const llvm::StringMap<llvm::json::Object> &updates);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_PARAMETERREPORT_H
