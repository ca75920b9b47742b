// Which batch norms a module for training trains, and what they keep. Private
// to the library.
#ifndef ACCEL_LIB_IMPORT_TRAINEDNORMS_H
#define ACCEL_LIB_IMPORT_TRAINEDNORMS_H

#include "Import.h"
#include "lib/Onnx/BatchNorms.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::import {

struct TrainedNorms {
  llvm::DenseSet<const onnx::NodeProto *> nodes;
  /// Their running statistics, each once.
  std::vector<onnxio::BatchNorms::Statistic> statistics;
  /// Which of them operands 3 and 4 of each node are.
  llvm::DenseMap<std::pair<const onnx::NodeProto *, unsigned>, unsigned> uses;
};

/// Decides by `ImportOptions::trainsBatchNorms`, else by what the file says of
/// each; none where nothing is trained. Norms in subgraphs are left out.
///
/// Fails, with a located error, where the file does not tell the mode, where no
/// initializer holds running statistics, where others read them, and where an
/// option speaks of norms that are not there.
mlir::FailureOr<TrainedNorms>
findTrainedNorms(const onnxio::OnnxFile &file,
                 const onnxio::ParameterTable &table,
                 const ImportOptions &options);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_TRAINEDNORMS_H
