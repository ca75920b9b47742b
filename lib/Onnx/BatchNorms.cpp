// The mode of a norm is an attribute of ONNX and an argument of PyTorch's
// calls, whose exporter writes neither it nor the running statistics behind the
// call: a copy (Identity) of those before stands for them.
#include "BatchNorms.h"

#include "DeclaredParameters.h"
#include "Internal.h"
#include "TracedCall.h"

using namespace llvm;

namespace accel::onnxio {

static bool isOp(const onnx::NodeProto &node, StringRef op) {
  return node.op_type() == op && canonicalDomain(node.domain()).empty();
}

static bool isCopy(const onnx::NodeProto &node) {
  return isOp(node, "Identity") && node.input_size() == 1 &&
         node.output_size() == 1;
}

BatchNorms::BatchNorms(const OnnxFile &file) : file(file) {
  for (const onnx::NodeProto &node : file.graph().node()) {
    if (isOp(node, "BatchNormalization"))
      norms.push_back(&node);
    if (isCopy(node))
      copies[node.output(0)] = &node;
  }
  if (!norms.empty())
    for (const SignatureInput &input : readSignature(file.graph()))
      if (input.kind == SignatureInput::Buffer)
        buffers[input.placeholder] = input.target;
}

/// batch_norm(input, weight, bias, running_mean, running_var, training, …) and
/// its native forms, of which one has no such argument.
static std::optional<bool> readTraining(const TracedCall &call) {
  StringRef op = call.op;
  if (!op.contains("batch_norm"))
    return std::nullopt;
  if (op.contains("no_training"))
    return false;
  const TracedArgument *training = call.argument(5, "training");
  return training ? std::optional(training->text == "True") : std::nullopt;
}

std::optional<bool> BatchNorms::isTrained(const onnx::NodeProto &norm) const {
  if (std::optional<TracedCall> call = tracedCall(norm))
    if (std::optional<bool> training = readTraining(*call))
      return training;
  for (const onnx::AttributeProto &attribute : norm.attribute())
    if (attribute.name() == "training_mode" && attribute.i() != 0)
      return true;
  // Before opset 14 it is trained if it gives statistics.
  if (norm.output_size() > 1)
    return true;
  if (hasDeclaredParameters(file))
    return false;
  return std::nullopt;
}

bool BatchNorms::areUnbiased(const OnnxFile &file) {
  return file.model().producer_name() == "pytorch" ||
         hasDeclaredParameters(file);
}

std::optional<BatchNorms::Statistic>
BatchNorms::findStatistic(const onnx::NodeProto &norm, int operand) const {
  if (operand >= norm.input_size())
    return std::nullopt;
  StringRef name = norm.input(operand);
  Statistic found{name.str(), file.findInitializer(name)};
  while (!found.tensor) {
    const onnx::NodeProto *copy = copies.lookup(name);
    if (!copy)
      return std::nullopt;
    name = copy->input(0);
    found.tensor = file.findInitializer(name);
  }
  if (hasDeclaredParameters(file))
    found.name = found.tensor->name();
  if (buffers.empty())
    return found;
  // The call names it, or else the initializer does, unless that was merged
  // with another.
  if (std::optional<TracedCall> call = tracedCall(norm))
    if (const TracedArgument *argument = call->argument(
            operand, operand == 3 ? "running_mean" : "running_var"))
      if (auto known = buffers.find(argument->value());
          known != buffers.end()) {
        found.name = known->second;
        return found;
      }
  for (const auto &buffer : buffers)
    if (buffer.second == name) {
      found.name = name.str();
      return found;
    }
  return std::nullopt;
}

const onnx::NodeProto *BatchNorms::findOtherReader(
    const onnx::TensorProto &statistic,
    const DenseSet<const onnx::NodeProto *> &keepers) const {
  StringSet<> outputs;
  for (const onnx::ValueInfoProto &output : file.graph().output())
    outputs.insert(output.name());
  SmallVector<std::string> names{statistic.name()};
  for (size_t next = 0; next < names.size(); ++next) {
    const onnx::NodeProto *other = nullptr;
    forEachGraph(file.graph(), [&](const onnx::GraphProto &graph) {
      for (const onnx::NodeProto &node : graph.node())
        for (auto [operand, input] : enumerate(node.input())) {
          bool isKept =
              keepers.contains(&node) && (operand == 3 || operand == 4);
          if (input != names[next] || isKept)
            continue;
          if (isCopy(node) && &graph == &file.graph() &&
              !outputs.contains(node.output(0)))
            names.push_back(node.output(0));
          else
            other = &node;
        }
    });
    if (other)
      return other;
  }
  return nullptr;
}

StringSet<> BatchNorms::listKept() const {
  StringSet<> kept;
  for (const onnx::NodeProto *norm : norms)
    for (int operand : {3, 4}) {
      std::optional<Statistic> statistic = findStatistic(*norm, operand);
      if (!statistic || isTrained(*norm) != true)
        continue;
      kept.insert(statistic->name);
      StringRef owner = StringRef(statistic->name).rsplit('.').first;
      kept.insert((owner + ".num_batches_tracked").str());
    }
  return kept;
}

} // namespace accel::onnxio
