// Small ONNX models out of a fuzzer's bytes: operators of the importer's own
// tables, with the attributes that they know and some that they do not. They
// pass the reader, so that every byte is spent on the importer.

#ifndef ACCEL_TEST_FUZZ_RANDOMMODEL_H
#define ACCEL_TEST_FUZZ_RANDOMMODEL_H

#include "ByteSource.h"
#include "onnx-schema/onnx-ml.pb.h"

#include <vector>

namespace accel::fuzz {

class RandomModel {
public:
  explicit RandomModel(ByteSource &source) : source(source) {}

  onnx::ModelProto build();

private:
  void addInputs(onnx::GraphProto &graph);
  void addInitializer(onnx::GraphProto &graph);
  void addNode(onnx::GraphProto &graph, int depth);
  void addAttributes(onnx::NodeProto &node, int depth);
  void fillAttribute(onnx::AttributeProto &attribute, int depth);
  void fillTensor(onnx::TensorProto &tensor);
  void fillSubgraph(onnx::GraphProto &graph, int depth, bool hasInputs);
  int elementType();
  /// A name that no value has yet.
  std::string newName();
  /// A value that is there; empty, for an operand left out, now and then.
  std::string anyValue();

  ByteSource &source;
  std::vector<std::string> values;
  int numNames = 0;
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_RANDOMMODEL_H
