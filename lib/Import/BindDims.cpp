// Unification of symbolic dimensions by use: tried on the model itself, since
// only its operators tell which sizes must agree.

#include "BindDims.h"

#include "lib/Names/Nearest.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include <optional>

using namespace mlir;
using namespace accel;
using namespace accel::import;

/// The size of a dimension, if it is known.
static std::optional<int64_t>
sizeOf(const onnx::TensorShapeProto::Dimension &dim,
       const ImportOptions &options) {
  if (dim.has_dim_value())
    return dim.dim_value();
  auto bound = options.dims.find(dim.dim_param());
  if (bound == options.dims.end())
    return std::nullopt;
  return bound->second;
}

LogicalResult import::checkDims(const onnxio::OnnxFile &file,
                                const ImportOptions &options) {
  llvm::SetVector<StringRef> names;
  for (const onnx::ValueInfoProto *input : file.inputs())
    for (const auto &dim : input->type().tensor_type().shape().dim())
      if (!dim.dim_param().empty())
        names.insert(dim.dim_param());
  SmallVector<StringRef> unknown;
  for (const auto &entry : options.dims)
    if (!names.contains(entry.first()))
      unknown.push_back(entry.first());
  llvm::sort(unknown); // a StringMap has no order
  for (StringRef name : unknown) {
    InFlightDiagnostic diagnostic = emitError(file.location());
    diagnostic << "unknown dimension '" << name << "' of --dim";
    if (names.empty())
      diagnostic << ": the inputs of this model have fixed sizes; export it "
                    "with dynamic_shapes to choose them here";
    else
      diagnostic << suggestName(name, names.getArrayRef())
                 << "; the inputs have " << listNames(names.getArrayRef());
  }
  return success(unknown.empty());
}

LogicalResult import::checkBound(const onnxio::OnnxFile &file,
                                 const ImportOptions &options) {
  llvm::SmallSetVector<StringRef, 4> told;
  for (const onnx::ValueInfoProto *input : file.inputs())
    for (const auto &dim : input->type().tensor_type().shape().dim())
      if (!dim.dim_param().empty() && !options.dims.count(dim.dim_param()) &&
          told.insert(dim.dim_param()))
        emitError(file.location())
            << "dimension '" << dim.dim_param() << "' of input '"
            << input->name() << "' has no size: give it with '--dim "
            << dim.dim_param() << "=N'";
  return success(told.empty());
}

ImportOptions
import::bindDims(const onnxio::OnnxFile &file, const ImportOptions &options,
                 MLIRContext *context,
                 llvm::function_ref<bool(const ImportOptions &)> imports) {
  // The sizes known at each place, and the places of each unbound name.
  std::vector<llvm::SmallSet<int64_t, 2>> known;
  llvm::MapVector<StringRef, SmallVector<unsigned>> unbound;
  for (const onnx::ValueInfoProto *input : file.inputs())
    for (auto [place, dim] :
         llvm::enumerate(input->type().tensor_type().shape().dim())) {
      if (known.size() <= place)
        known.resize(place + 1);
      if (std::optional<int64_t> size = sizeOf(dim, options))
        known[place].insert(*size);
      else if (!dim.dim_param().empty())
        unbound[dim.dim_param()].push_back(place);
    }
  if (unbound.empty())
    return options;

  ImportOptions guess = options;
  for (auto &[name, places] : unbound) {
    llvm::SmallSet<int64_t, 2> candidates;
    for (unsigned place : places)
      for (int64_t size : known[place])
        candidates.insert(size);
    if (candidates.size() != 1)
      return options;
    guess.dims[name] = *candidates.begin();
  }

  ScopedDiagnosticHandler silence(context,
                                  [](Diagnostic &) { return success(); });
  if (!imports(guess))
    return options;
  for (auto &entry : unbound) {
    ImportOptions other = guess;
    ++other.dims[entry.first];
    if (imports(other))
      return options;
  }
  return guess;
}
