// The walk over the nodes: finds each operator's row, resolves operands, and
// evaluates what is known.

#include "GraphImporter.h"

#include "NodeImporter.h"
#include "OpTable.h"
#include "Tensors.h"
#include "lib/Onnx/NodeInfo.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

const ImportedValue *GraphImporter::lookup(StringRef name, Location loc) {
  auto found = values.find(name);
  if (found != values.end())
    return &found->second;
  const onnx::TensorProto *tensor = file.findInitializer(name);
  if (!tensor) {
    emitError(loc) << "no value called '" << name << "'";
    return nullptr;
  }
  Location own = NameLoc::get(StringAttr::get(loc.getContext(), name));
  DenseElementsAttr value = tensorValue(file, *tensor, options.f64, loc);
  if (!value)
    return nullptr;
  return &(values[name] =
               ImportedValue::of(nn::ConstantOp::create(builder, own, value)));
}

bool GraphImporter::isNarrow() {
  auto isNarrowType = [&](int32_t dtype) {
    Type type = elementType(dtype, builder.getContext());
    return isa_and_nonnull<FloatType>(type) &&
           type.getIntOrFloatBitWidth() == 16;
  };
  if (!narrow)
    narrow =
        llvm::any_of(file.graph().initializer(),
                     [&](const onnx::TensorProto &tensor) {
                       return isNarrowType(tensor.data_type());
                     }) ||
        llvm::any_of(file.inputs(), [&](const onnx::ValueInfoProto *input) {
          return isNarrowType(input->type().tensor_type().elem_type());
        });
  return *narrow;
}

LogicalResult GraphImporter::importNodes(const onnx::GraphProto &graph) {
  for (const onnx::NodeProto &node : graph.node())
    if (failed(importNode(node)))
      return failure();
  return success();
}

LogicalResult GraphImporter::importNode(const onnx::NodeProto &node) {
  StringRef domain = node.domain();
  if (domain == "ai.onnx")
    domain = "";
  int64_t version = file.opsetVersion(node);
  NodeImporter importer(*this, node, version);
  if (options.marksCalls) {
    std::string call = onnxio::describeCall(node);
    auto [known, isNew] =
        calls.try_emplace(onnxio::nodeLocationName(node), call);
    if (!isNew && known->second != call)
      known->second.clear(); // bodies of several calls have nodes of one name
  }
  if (domain.empty() && (version < kOldestOpset || version > kNewestOpset))
    return importer.error()
           << "opset " << version << " is not supported, expected "
           << kOldestOpset << " to " << kNewestOpset;
  if (auto decision = decisions.find(&node); decision != decisions.end())
    if (auto made = importDecision(importer, Decision(decision->second)))
      return *made;
  const OpRow *row = findOp(domain, node.op_type(), version);
  if (!row)
    return importer.error() << "not supported";
  if (node.input_size() < row->minOperands ||
      (row->maxOperands >= 0 && node.input_size() > row->maxOperands))
    return importer.error()
           << "expected " << row->minOperands << " to " << row->maxOperands
           << " operands, found " << node.input_size();
  // Of a list none may be left out, in its middle least of all.
  int required = row->maxOperands < 0 ? node.input_size() : row->minOperands;
  for (int index = 0; index < required; ++index)
    if (node.input(index).empty())
      return importer.error()
             << "expected operand #" << index << ", found none";
  if (failed(importer.resolveOperands(row->takesSequences)))
    return failure();
  if (failed(row->function(importer)))
    return failure();
  return importer.restoreAdditions();
}
