// Import of Loop and Scan: a copy of the body for each iteration, of which the
// compiler must know how many there are.

#include "lib/Import/OpTable.h"
#include "lib/Import/Subgraphs.h"
#include "lib/Import/Tensors.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

namespace {
/// Iterations of one body.
class Iterations {
public:
  Iterations(Importer &n, const onnx::GraphProto &body) : n(n), body(body) {}

  /// One iteration of what its inputs are; the outputs, none after an error.
  SmallVector<ImportedValue> run(ArrayRef<ImportedValue> inputs) {
    // Each makes nodes of its own.
    constexpr int64_t kMostNodes = int64_t(1) << 18;
    n.graph.iterated += body.node_size() + 1;
    if (n.graph.iterated > kMostNodes) {
      n.error() << "expected at most " << kMostNodes
                << " nodes in all iterations of the model's loops, found more";
      return {};
    }
    for (auto [index, input] : llvm::enumerate(inputs))
      n.graph.define(body.input(index).name(), input);
    return importSubgraph(n, body);
  }

private:
  Importer &n;
  const onnx::GraphProto &body;
};
} // namespace

static const onnx::GraphProto *readBody(Importer &n) {
  const auto *body = n.attribute("body", onnx::AttributeProto::GRAPH);
  if (body)
    return &body->g();
  n.error() << "expected a 'body'";
  return nullptr;
}

/// What an iteration gives, as a slice of a result along `axis`.
static Value asSlice(Importer &n, const ImportedValue &value, int64_t axis) {
  if (value.isSequence) {
    n.error() << "expected tensors to be put together, found a sequence";
    return nullptr;
  }
  SmallVector<int64_t> shape(Importer::shape(value.tensor));
  axis = n.normalizeAxis(axis, shape.size() + 1);
  if (n.hasFailed())
    return nullptr;
  shape.insert(shape.begin() + axis, 1);
  return n.reshape(value.tensor, shape);
}

/// Whether a condition holds, which must be known; an absent one does.
static bool holds(Importer &n, Value condition) {
  if (!condition)
    return true;
  DenseElementsAttr known = Importer::constantOf(condition);
  if (!known || known.getNumElements() != 1 ||
      !known.getElementType().isInteger(1)) {
    n.error() << "expected a condition that is known when it is compiled, "
                 "found one that the run computes, "
              << condition.getType();
    return false;
  }
  return *known.getValues<bool>().begin();
}

/// No slices of what an output is declared to be, where nothing is known but
/// that; an error where it is not declared.
static Value makeEmpty(Importer &n, const onnx::ValueInfoProto &output) {
  const auto &type = output.type().tensor_type();
  Type element = elementType(type.elem_type(), n.loc.getContext());
  SmallVector<int64_t> shape{0};
  for (const auto &dim : type.shape().dim())
    shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  if (element && type.has_shape() && isAddressable(shape) &&
      llvm::all_of(shape, [](int64_t size) { return size >= 0; }))
    return n.splat(shape, computeType(element, n.graph.options.f64), 0);
  n.error() << "expected an iteration, or a declared type of output '"
            << output.name() << "' of the body, of which there is none";
  return nullptr;
}

/// Operands: how often at most, whether at all, the values carried along.
/// Results: those behind the last iteration, and what all of them give.
static LogicalResult importLoop(Importer &n) {
  const onnx::GraphProto *body = readBody(n);
  if (!body)
    return failure();
  int64_t carried = std::max<int64_t>(0, int64_t(n.operandCount()) - 2),
          scanned = body->output_size() - 1 - carried;
  if (body->input_size() != carried + 2 || scanned < 0 ||
      n.node.output_size() > carried + scanned)
    return n.error() << "expected a body of " << carried + 2
                     << " inputs and the outputs that the node has, found "
                     << body->input_size() << " and " << body->output_size();
  int64_t most = std::numeric_limits<int64_t>::max();
  if (n.operand(0))
    most = n.constantInt(0);
  Value condition = n.operand(1);
  SmallVector<ImportedValue> values;
  for (int64_t index = 0; index < carried; ++index)
    values.push_back(n.imported(index + 2));
  if (n.hasFailed())
    return failure();
  Iterations iterations(n, *body);
  SmallVector<SmallVector<Value>> slices(scanned);
  for (int64_t count = 0; count < most && holds(n, condition); ++count) {
    SmallVector<ImportedValue> inputs{
        ImportedValue::of(n.ints(count, {})),
        ImportedValue::of(n.splat({}, n.graph.builder.getI1Type(), 1))};
    llvm::append_range(inputs, values);
    SmallVector<ImportedValue> outputs = iterations.run(inputs);
    if (n.hasFailed())
      return failure();
    condition = outputs[0].tensor;
    values.assign(outputs.begin() + 1, outputs.begin() + 1 + carried);
    for (int64_t index = 0; index < scanned; ++index)
      slices[index].push_back(asSlice(n, outputs[1 + carried + index], 0));
  }
  if (n.hasFailed())
    return failure();
  for (int64_t index = 0; index < carried; ++index)
    n.setResult(index, values[index]);
  for (int64_t index = 0; index < scanned; ++index) {
    if (!n.wantsResult(carried + index))
      continue;
    const onnx::ValueInfoProto &output = body->output(int(1 + carried + index));
    n.setResult(carried + index, slices[index].empty()
                                     ? makeEmpty(n, output)
                                     : n.concat(slices[index], 0));
  }
  return n.finish();
}

/// Operands: the states, then what is read slice by slice. Results alike.
static LogicalResult importScan(Importer &n) {
  const onnx::GraphProto *body = readBody(n);
  if (!body)
    return failure();
  int64_t scans = n.intAttr("num_scan_inputs", 0),
          states = int64_t(n.operandCount()) - scans,
          gives = body->output_size() - states;
  if (scans < 1 || states < 0 || gives < 0 ||
      body->input_size() != int64_t(n.operandCount()) ||
      n.node.output_size() > states + gives)
    return n.error() << "expected a body of " << n.operandCount()
                     << " inputs and the outputs that the node has, found "
                     << body->input_size() << " and " << body->output_size();
  auto list = [&](StringRef name, int64_t size) {
    SmallVector<int64_t> found =
        n.intsAttr(name).value_or(SmallVector<int64_t>(size, 0));
    if (int64_t(found.size()) != size && !n.hasFailed())
      n.error() << "expected '" << name << "' to have " << size
                << " elements, found " << found.size();
    return found;
  };
  SmallVector<int64_t> inAxes = list("scan_input_axes", scans),
                       inTurns = list("scan_input_directions", scans),
                       outAxes = list("scan_output_axes", gives),
                       outTurns = list("scan_output_directions", gives);
  if (n.hasFailed())
    return failure();
  SmallVector<ImportedValue> values;
  for (int64_t index = 0; index < states; ++index)
    values.push_back(ImportedValue::of(n.operand(index)));
  int64_t count = -1;
  for (int64_t index = 0; index < scans; ++index) {
    Value x = n.operand(states + index);
    inAxes[index] = n.normalizeAxis(inAxes[index], Importer::rank(x));
    if (n.hasFailed())
      return failure();
    int64_t size = Importer::shape(x)[inAxes[index]];
    if (count >= 0 && size != count)
      return n.error() << "expected as many slices of all operands, found "
                       << count << " and " << size;
    count = size;
  }
  Iterations iterations(n, *body);
  SmallVector<SmallVector<Value>> slices(gives);
  for (int64_t at = 0; at < count; ++at) {
    SmallVector<ImportedValue> inputs(values);
    for (int64_t index = 0; index < scans; ++index) {
      Value x = n.operand(states + index);
      int64_t axis = inAxes[index];
      SmallVector<int64_t> shape(Importer::shape(x));
      shape.erase(shape.begin() + axis);
      Value slice = n.slice(x, axis, inTurns[index] ? count - 1 - at : at, 1);
      inputs.push_back(ImportedValue::of(n.reshape(slice, shape)));
    }
    if (n.hasFailed())
      return failure();
    SmallVector<ImportedValue> outputs = iterations.run(inputs);
    if (n.hasFailed())
      return failure();
    values.assign(outputs.begin(), outputs.begin() + states);
    for (int64_t index = 0; index < gives; ++index)
      slices[index].push_back(
          asSlice(n, outputs[states + index], outAxes[index]));
  }
  if (n.hasFailed())
    return failure();
  for (int64_t index = 0; index < states; ++index)
    n.setResult(index, values[index]);
  for (int64_t index = 0; index < gives; ++index) {
    if (!n.wantsResult(states + index))
      continue;
    if (slices[index].empty())
      return n.error() << "expected one slice or more, found none";
    if (outTurns[index])
      std::reverse(slices[index].begin(), slices[index].end());
    int64_t axis =
        n.normalizeAxis(outAxes[index], Importer::rank(slices[index].front()));
    n.setResult(states + index, n.concat(slices[index], axis));
  }
  return n.finish();
}

/// Of a list of any length all must be there; here the first two need not.
static constexpr int kMostOperands = 1 << 20;

ArrayRef<OpRow> accel::import::loopOps() {
  static const OpRow rows[] = {
      {"", "Loop", 1, 0, kMostOperands, importLoop, true},
      {"", "Scan", 9, 1, -1, importScan},
  };
  return rows;
}
