// From a loaded ONNX file to a module of nn: the first phase's front half. The
// importer specialises the model on concrete dimensions and evaluates whatever
// is known then, so that shape arithmetic never becomes part of the program.
#ifndef ACCEL_LIB_IMPORT_IMPORT_H
#define ACCEL_LIB_IMPORT_IMPORT_H

#include "lib/Onnx/OnnxFile.h"
#include "lib/Onnx/Parameters.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace accel::import {

/// What the caller decides about an import.
struct ImportOptions {
  /// Sizes of symbolic dimensions (`--dim batch=8`), by the symbol's name in
  /// the file, whatever it looks like ("2" is a name).
  llvm::StringMap<int64_t> dims;
  /// Values of inputs that are known when the model is compiled (`--input
  /// axes=FILE`): they are constants of the program and no inputs of it.
  llvm::StringMap<mlir::DenseElementsAttr> values;
  /// Floats are computed as f64; casts of a model in f32 to a narrower type
  /// still round to it. States keep the type their bytes are stored in as
  /// `stored`.
  bool f64 = false;
  /// For a module that will be trained: zero biases that the exporter removed
  /// are put back as states, states that are not to be trained are `frozen`,
  /// dropout in training mode is imported; undecided initializers are an error.
  bool forTraining = false;
  /// Whether batch norms of a module for training take statistics of the batch
  /// and keep running ones, or go by running ones that stay as they are; unless
  /// it is said, as the file says, and an error where it does not.
  std::optional<bool> trainsBatchNorms;
  /// Parameters of which a use was folded are held constant, as the table says
  /// (`IdentifyOptions::allowFolded`), instead of being an error.
  bool allowFolded = false;
  /// Parts of the batch, one after another in it, that run by themselves:
  /// micro-batches of ranks.
  int64_t batchParts = 1;
  /// Says of products that they make a mean (`nn.mean`), which nothing else
  /// tells from a sum that the model scales.
  bool marksMeans = false;
  /// Says of which traced calls the nodes are (`nn.calls`): an operator of
  /// PyTorch may be several of ONNX.
  bool marksCalls = false;
  /// Takes hashes of weights in files of external data, too, which reads them.
  /// Those in the model file have been read, and always have one.
  bool hashWeights = false;
};

/// The newest opset of the default domain whose meaning the tables hold, and
/// the oldest.
inline constexpr int64_t kOldestOpset = 1;
inline constexpr int64_t kNewestOpset = 28;

/// Imports the model as a module with `accel.phase = "nn"`: one `nn.state` for
/// each parameter that is used, and one function `@main` with `nn.entry`, whose
/// arguments are the model's inputs in order and then the states in the table's
/// order.
///
/// A symbolic dimension without a size takes that of the only size bound in the
/// same place of another input, if the model has a meaning with no other size
/// ("unified by use"); else it is an error.
///
/// Requires the Evaluate models of nn in the context's registry: constants are
/// folded with them. Returns null after a located error: unknown operator,
/// attribute or opset, unbound or contradicting dimension, shape known only at
/// run time; or one for each size in `options` that no input asks for.
mlir::OwningOpRef<mlir::ModuleOp>
importOnnx(const onnxio::OnnxFile &file, const onnxio::ParameterTable &table,
           const ImportOptions &options, mlir::MLIRContext *context);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_IMPORT_H
