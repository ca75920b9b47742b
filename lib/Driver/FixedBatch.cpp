// Holds the sizes that stand in the file against what they would be split into.

#include "FixedBatch.h"

#include "lib/Names/BatchDim.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace accel;
using namespace accel::driver;

std::optional<int64_t> driver::countBatchRanks(StringRef mesh) {
  int64_t ranks = 1;
  SmallVector<StringRef> axes;
  mesh.split(axes, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef axis : axes) {
    auto [name, text] = axis.split('=');
    int64_t size;
    if (text.getAsInteger(10, size) || size < 1)
      return std::nullopt;
    if (name == "dp" || name == "dp_replicate" || name == "dp_shard")
      ranks *= size;
  }
  return ranks;
}

std::optional<int64_t> driver::countBatchParts(const PhaseOptions &options) {
  std::optional<int64_t> ranks = countBatchRanks(options.place.annotate.mesh);
  int64_t parts;
  if (!ranks || options.place.annotate.microBatches < 1 ||
      llvm::MulOverflow(*ranks, options.place.annotate.microBatches, parts))
    return std::nullopt;
  return parts;
}

LogicalResult driver::checkFixedBatch(const onnxio::OnnxFile &file,
                                      const PhaseOptions &options) {
  std::optional<int64_t> parts = countBatchParts(options);
  if (!parts)
    return success();
  for (const onnx::ValueInfoProto *input : file.inputs()) {
    std::optional<unsigned> batch =
        batchDimOf(input->name(), options.place.annotate.batchDims);
    const onnx::TensorShapeProto &shape = input->type().tensor_type().shape();
    if (!batch || static_cast<int>(*batch) >= shape.dim_size())
      continue;
    const auto &dim = shape.dim(*batch);
    if (!dim.has_dim_value() || dim.dim_value() < 1 ||
        dim.dim_value() % *parts == 0)
      continue;
    return emitError(file.location())
           << "expected the batch of input '" << input->name()
           << "' to be a multiple of "
           << *parts / options.place.annotate.microBatches << " ranks x "
           << options.place.annotate.microBatches
           << " micro-batches, found dimension " << *batch << " fixed at "
           << dim.dim_value()
           << " in the file: export it from a sample of at least 2 rows, with "
              "dynamic_shapes={'"
           << input->name() << "': {" << *batch
           << ": torch.export.Dim('batch')}, ...}, and say --dim batch=N; or "
              "from a sample with as many rows as are trained on; or, where "
              "its "
              "rows are no samples, say --batch-dim "
           << input->name() << "=none";
  }
  return success();
}
