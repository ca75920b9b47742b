// What a file says of its batch norms: which are trained, and where their
// running statistics are. Works on any model, converts no operator.
#ifndef ACCEL_LIB_ONNX_BATCHNORMS_H
#define ACCEL_LIB_ONNX_BATCHNORMS_H

#include "OnnxFile.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace accel::onnxio {

class BatchNorms {
public:
  explicit BatchNorms(const OnnxFile &file);

  /// The BatchNormalization nodes of the main graph, in its order.
  llvm::ArrayRef<const onnx::NodeProto *> nodes() const { return norms; }

  /// Whether one takes statistics of the batch, by its traced call (PyTorch's
  /// exporter leaves `training_mode` out) or else by its own words. Nothing
  /// where an exporter for inference may have changed the mode: then a file for
  /// training looks like any other.
  std::optional<bool> isTrained(const onnx::NodeProto &norm) const;

  /// Whether running variances of a file are of samples, divided by one less
  /// than there are numbers, as PyTorch has them; ONNX divides by all.
  static bool areUnbiased(const OnnxFile &file);

  /// A running statistic, by the user's name of it.
  struct Statistic {
    std::string name;
    /// Holds its first value, and stands for another tensor as well where an
    /// exporter has merged equal ones.
    const onnx::TensorProto *tensor;
  };
  /// What operand 3 (mean) or 4 (variance) is; nothing where no initializer
  /// holds it, or where its name is lost.
  std::optional<Statistic> findStatistic(const onnx::NodeProto &norm,
                                         int operand) const;

  /// A node that reads the initializer and is not one of `keepers`, the batch
  /// norms that are trained, at any depth, or a copy that is an output; null if
  /// there is none.
  const onnx::NodeProto *
  findOtherReader(const onnx::TensorProto &statistic,
                  const llvm::DenseSet<const onnx::NodeProto *> &keepers) const;

  /// The buffers that the forward of a traced program may change, for batch
  /// norms keep them: running statistics, and the counts of their batches,
  /// which say nothing where there is a momentum.
  llvm::StringSet<> listKept() const;

private:
  const OnnxFile &file;
  std::vector<const onnx::NodeProto *> norms;
  /// Copies (Identity) by what they give.
  llvm::StringMap<const onnx::NodeProto *> copies;
  llvm::StringMap<std::string> buffers; ///< by placeholder
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_BATCHNORMS_H
