// Low-rank adapters (LoRA), by the names of their two matrices: what stands
// beside them is as a rule not trained, which no file of torch.onnx.export
// says.
#ifndef ACCEL_LIB_ONNX_ADAPTERS_H
#define ACCEL_LIB_ONNX_ADAPTERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::onnxio {

/// Where a name has the matrix of an adapter (`q_proj` of
/// `q_proj.lora_A.default.weight`), and which of the two it is.
struct AdapterName {
  llvm::StringRef module;
  bool isSecond;
};
/// None of a name that is no adapter's.
std::optional<AdapterName> readAdapterName(llvm::StringRef name);

/// A module of `names`, of all parameters, that has both matrices of an adapter
/// and parameters of its own beside them; none if there is no such module.
std::optional<std::string>
findAdaptedModule(llvm::ArrayRef<llvm::StringRef> names);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_ADAPTERS_H
