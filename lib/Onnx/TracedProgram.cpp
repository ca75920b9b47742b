// Reads the calls of the traced program from the nodes' metadata.
#include "TracedProgram.h"
#include "NodeInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace accel::onnxio {

bool Call::takes(StringRef value) const {
  return is_contained(values, value.str());
}

bool Call::reads(StringRef value) const {
  return any_of(nodes, [&](const onnx::NodeProto *node) {
    return is_contained(node->input(), value);
  });
}

StringRef operatorOfName(StringRef value) {
  StringRef name = value.rtrim("0123456789");
  return name.size() < value.size() && name.consume_back("_") ? name : value;
}

/// How many arguments of an operator may be tensors; where it is less than all,
/// what else names values names sizes.
static unsigned tensorArguments(StringRef op) {
  return StringSwitch<unsigned>(op)
      .Cases({"full", "zeros", "ones", "empty", "arange"}, 0)
      .Cases({"view", "_unsafe_view", "reshape", "expand", "slice", "repeat",
              "full_like", "new_full", "new_zeros", "new_ones", "narrow",
              "unflatten", "constant_pad_nd", "roll", "split", "chunk"},
             1)
      .Default(~0u);
}

/// Every `%name` in Python text, outside strings.
static void collectValues(StringRef text, std::vector<std::string> &values) {
  forEachUnquoted(text, [&](size_t at) {
    if (text[at] == '%') {
      StringRef name = text.substr(at + 1).take_while(
          [](char each) { return isAlnum(each) || each == '_'; });
      if (!is_contained(values, name.str()))
        values.push_back(name.str());
    }
    return true;
  });
}

TracedProgram::TracedProgram(const OnnxFile &file) : file(file) {
  inputs = readSignature(file.graph());
  for (const SignatureOutput &output : readSignatureOutputs(file.graph()))
    (output.mutated.empty() ? results : changed)
        .push_back(output.mutated.empty() ? output.value : output.mutated);
  for (const SignatureInput &input : inputs) {
    byPlaceholder[input.placeholder] = &input;
    if (input.kind == SignatureInput::Parameter ||
        input.kind == SignatureInput::Buffer)
      byTarget[input.target] = &input;
  }
  // Exporters may rename inputs, and keep their order.
  auto given = llvm::make_filter_range(inputs, [](const SignatureInput &input) {
    return input.kind == SignatureInput::User;
  });
  for (auto [value, input] : llvm::zip(file.inputs(), given))
    placeholders[value->name()] = input.placeholder;
  auto addType = [&](const onnx::ValueInfoProto &value) {
    int32_t type = value.type().tensor_type().elem_type();
    if (type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::DOUBLE ||
        type == onnx::TensorProto::FLOAT16 ||
        type == onnx::TensorProto::BFLOAT16)
      floats.insert(value.name());
  };
  llvm::for_each(file.graph().input(), addType);
  llvm::for_each(file.graph().value_info(), addType);
  for (const onnx::ValueInfoProto &value : file.graph().value_info())
    for (const onnx::StringStringEntryProto &entry : value.metadata_props())
      if (entry.key() == "pkg.onnxscript.optimizer.folded_from")
        folded[value.name()] = parsePythonList(entry.value());
  readNodes(file.graph());
  collectOperands();
  // Without either sign it is taken for optimized, of which less is believed.
  optimized = !folded.empty() ||
              none_of(file.graph().node(), [](const onnx::NodeProto &node) {
                return node.op_type() == "Constant";
              });
}

void TracedProgram::readNodes(const onnx::GraphProto &graph) {
  for (const onnx::NodeProto &node : graph.node()) {
    for (const std::string &output : node.output())
      makers[output] = &node;
    if (std::optional<TracedCall> text = tracedCall(node)) {
      Call *&call = byResult[text->result];
      if (!call) {
        call = &list.emplace_back();
        call->text = std::move(*text);
        ArrayRef<TracedArgument> arguments = call->text.arguments;
        for (const TracedArgument &argument :
             arguments.take_front(tensorArguments(call->text.op)))
          collectValues(argument.text, call->values);
      }
      call->nodes.push_back(&node);
      callOfNode[&node] = call;
    }
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      readNodes(attribute.g());
      for (const onnx::GraphProto &inner : attribute.graphs())
        readNodes(inner);
    }
  }
}

void TracedProgram::collectOperands() {
  for (Call &call : list) {
    llvm::StringSet<> seen;
    for (const onnx::NodeProto *node : call.nodes)
      for (const std::string &output : node->output())
        seen.insert(output);
    for (const onnx::NodeProto *node : call.nodes)
      for (const std::string &input : node->input())
        if (!input.empty() && seen.insert(input).second)
          call.operands.push_back(input);
  }
}

const SignatureInput *TracedProgram::input(StringRef placeholder) const {
  return byPlaceholder.lookup(placeholder);
}
const SignatureInput *TracedProgram::target(StringRef name) const {
  return byTarget.lookup(name);
}
const Call *TracedProgram::callOf(const onnx::NodeProto &node) const {
  return callOfNode.lookup(&node);
}
const Call *TracedProgram::find(StringRef result) const {
  return byResult.lookup(result);
}
const onnx::NodeProto *TracedProgram::maker(StringRef value) const {
  return makers.lookup(value);
}

bool TracedProgram::isThere(StringRef value) const {
  return input(value) || find(value) || maker(value);
}

const std::vector<std::string> *
TracedProgram::foldedFrom(StringRef tensor) const {
  auto it = folded.find(tensor);
  return it == folded.end() ? nullptr : &it->second;
}

std::vector<std::string>
TracedProgram::foldedParameters(StringRef tensor) const {
  std::vector<std::string> names;
  if (const std::vector<std::string> *from = foldedFrom(tensor))
    for (const std::string &name : *from) {
      const SignatureInput *input = target(name);
      if (input && input->kind == SignatureInput::Parameter)
        names.push_back(input->target);
    }
  return names;
}

} // namespace accel::onnxio
