// Parameters that no call of the graph names: one that is used is the same, or
// they were folded away.

#ifndef ACCEL_LIB_ONNX_TIEPARAMETERS_H
#define ACCEL_LIB_ONNX_TIEPARAMETERS_H

#include "ParameterBuilder.h"
#include "llvm/ADT/StringSet.h"

namespace accel::onnxio {

/// Ties parameters that are not `named` by a call, nor used, to the one that
/// they are another name of: as their module uses it, as modules beside it
/// share it, or as --original-weights has equal values. `folded`: those that
/// something in the file was computed from. What stays open, or was believed,
/// is a note.
void tieUnnamedParameters(const OnnxFile &file, ParameterBuilder &builder,
                          llvm::ArrayRef<bool> named,
                          const llvm::StringSet<> &folded,
                          std::vector<std::string> &notes);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_TIEPARAMETERS_H
