// Walks from nodes back to the operands that are parameters.
#include "ParameterDependence.h"

using namespace llvm;

namespace accel::onnxio {

ParameterDependence::ParameterDependence(const TracedProgram &program,
                                         const ParameterBuilder &builder)
    : program(program), builder(builder) {
  for (unsigned i = 0; i < builder.size(); ++i)
    builder.forEachClaim(i, [&](const InitializerUse &use) {
      claims[{use.node, use.operand}] = i;
      reached.insert(use.node);
    });
  // What was merged with a parameter counts: its own user may be gone.
  for (const InitializerUse &use : initializerUses(program.file))
    if (builder.find(use.tensor->name()))
      reached.insert(use.node);
  // Nodes come after what they read.
  for (const onnx::NodeProto &node : program.file.graph().node())
    if (any_of(node.input(),
               [&](const std::string &input) { return reaches(input); }))
      reached.insert(&node);
}

/// Names in the signature's order.
std::vector<std::string>
ParameterDependence::collect(ArrayRef<const onnx::NodeProto *> nodes) const {
  SmallVector<const onnx::NodeProto *> work(nodes);
  llvm::DenseSet<const onnx::NodeProto *> seen(work.begin(), work.end());
  llvm::SmallDenseSet<unsigned> found;
  while (!work.empty()) {
    const onnx::NodeProto *each = work.pop_back_val();
    for (int i = 0; i < each->input_size(); ++i) {
      if (auto it = claims.find({each, unsigned(i)}); it != claims.end())
        found.insert(it->second);
      const onnx::NodeProto *maker = program.maker(each->input(i));
      if (maker && seen.insert(maker).second)
        work.push_back(maker);
    }
  }
  SmallVector<unsigned> sorted(found.begin(), found.end());
  llvm::sort(sorted);
  std::vector<std::string> names;
  for (unsigned parameter : sorted)
    names.push_back(builder.nameOf(parameter).str());
  return names;
}

std::vector<std::string> ParameterDependence::of(const Call &call) const {
  return collect(call.nodes);
}

std::vector<std::string> ParameterDependence::of(StringRef value) const {
  const onnx::NodeProto *maker = program.maker(value);
  return maker ? collect(maker) : std::vector<std::string>();
}

bool ParameterDependence::reaches(StringRef value) const {
  const onnx::NodeProto *maker = program.maker(value);
  return maker && reached.contains(maker);
}

} // namespace accel::onnxio
