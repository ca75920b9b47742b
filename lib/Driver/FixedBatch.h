// The batch that an exporter wrote into the file as a number: what to do where
// it cannot be split.

#ifndef ACCEL_LIB_DRIVER_FIXEDBATCH_H
#define ACCEL_LIB_DRIVER_FIXEDBATCH_H

#include "Phases.h"
#include "lib/Onnx/OnnxFile.h"

namespace accel::driver {

/// Ranks that the batch is split over; none if the mesh is malformed.
std::optional<int64_t> countBatchRanks(llvm::StringRef mesh);

/// Parts of the batch that run by themselves: ranks x micro-batches; none if
/// the mesh is malformed, or their number.
std::optional<int64_t> countBatchParts(const PhaseOptions &options);

/// Refuses a model whose batch has a size in the file that the ranks and
/// micro-batches of `options` do not divide, and says how to export it. A mesh
/// that is malformed is left to the pass that reads it.
mlir::LogicalResult checkFixedBatch(const onnxio::OnnxFile &file,
                                    const PhaseOptions &options);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_FIXEDBATCH_H
