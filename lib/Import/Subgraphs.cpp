// Import of a subgraph into the block of its node.

#include "Subgraphs.h"

#include "Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

SmallVector<ImportedValue>
import::importSubgraph(NodeImporter &n, const onnx::GraphProto &graph) {
  SmallVector<ImportedValue> outputs;
  auto fail = [&] {
    n.fail();
    return SmallVector<ImportedValue>();
  };
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    DenseElementsAttr value =
        tensorValue(n.graph.file, tensor, n.graph.options.f64, n.loc);
    if (!value)
      return fail();
    n.graph.define(tensor.name(), ImportedValue::of(n.constant(value)));
  }
  if (failed(n.graph.importNodes(graph)))
    return fail();
  for (const onnx::ValueInfoProto &output : graph.output()) {
    const ImportedValue *value = n.graph.lookup(output.name(), n.loc);
    if (!value)
      return fail();
    outputs.push_back(*value);
  }
  return outputs;
}
