// Topological order of nodes. ONNX demands it and some writers do not keep it.
#include "Internal.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include <queue>

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

void forEachGraph(const onnx::GraphProto &graph,
                  llvm::function_ref<void(const onnx::GraphProto &)> visit) {
  visit(graph);
  for (const onnx::NodeProto &node : graph.node())
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        forEachGraph(attribute.g(), visit);
      for (const onnx::GraphProto &inner : attribute.graphs())
        forEachGraph(inner, visit);
    }
}

/// Calls `use` with every name `node` reads, those of its subgraphs included
/// (names that a subgraph defines itself too: they name no node outside).
static void forEachRead(const onnx::NodeProto &node,
                        llvm::function_ref<void(StringRef)> use) {
  for (const std::string &input : node.input())
    if (!input.empty())
      use(input);
  auto inGraph = [&](const onnx::GraphProto &graph) {
    llvm::StringSet<> own;
    for (const onnx::ValueInfoProto &input : graph.input())
      own.insert(input.name());
    for (const onnx::TensorProto &tensor : graph.initializer())
      own.insert(tensor.name());
    for (const onnx::NodeProto &inner : graph.node())
      for (const std::string &output : inner.output())
        own.insert(output);
    auto useOuter = [&](StringRef name) {
      if (!own.contains(name))
        use(name);
    };
    for (const onnx::NodeProto &inner : graph.node())
      forEachRead(inner, useOuter);
    for (const onnx::ValueInfoProto &output : graph.output())
      useOuter(output.name());
  };
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      inGraph(attribute.g());
    for (const onnx::GraphProto &graph : attribute.graphs())
      inGraph(graph);
  }
}

/// The nodes of one cycle among those that are left over, as text.
static std::string describeCycle(const onnx::GraphProto &graph,
                                 ArrayRef<SmallVector<int>> producers,
                                 ArrayRef<int> missing) {
  int at = 0;
  while (missing[at] == 0)
    ++at;
  SmallVector<int> walked;
  while (!is_contained(walked, at)) {
    walked.push_back(at);
    at = *find_if(producers[at], [&](int from) { return missing[from] > 0; });
  }
  // From the repeated node on it is a cycle, walked against the data's way.
  std::string text;
  auto start = find(walked, at);
  for (auto it = walked.end(); it != start;)
    text += "'" + graph.node(*--it).name() + "' -> ";
  return text + "'" + graph.node(walked.back()).name() + "'";
}

LogicalResult sortNodes(onnx::GraphProto &graph, const Source &source) {
  int count = graph.node_size();
  for (int i = 0; i < count; ++i)
    for (onnx::AttributeProto &attribute :
         *graph.mutable_node(i)->mutable_attribute()) {
      if (attribute.has_g() &&
          failed(sortNodes(*attribute.mutable_g(), source)))
        return failure();
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        if (failed(sortNodes(inner, source)))
          return failure();
    }

  StringMap<int> producerOf;
  for (int i = 0; i < count; ++i)
    for (const std::string &output : graph.node(i).output())
      if (!output.empty())
        producerOf.try_emplace(output, i);
  SmallVector<SmallVector<int>> producers(count), consumers(count);
  SmallVector<int> missing(count, 0);
  bool sorted = true;
  for (int i = 0; i < count; ++i)
    forEachRead(graph.node(i), [&](StringRef name) {
      auto it = producerOf.find(name);
      if (it == producerOf.end())
        return;
      sorted &= it->second < i;
      producers[i].push_back(it->second);
      consumers[it->second].push_back(i);
      ++missing[i];
    });
  if (sorted)
    return success();

  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < count; ++i)
    if (missing[i] == 0)
      ready.push(i);
  SmallVector<int> order;
  while (!ready.empty()) {
    int at = ready.top();
    ready.pop();
    order.push_back(at);
    for (int consumer : consumers[at])
      if (--missing[consumer] == 0)
        ready.push(consumer);
  }
  if (int(order.size()) != count)
    return source.error() << "expected a graph without cycles, found "
                          << describeCycle(graph, producers, missing);
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (int at : order)
    nodes.Add()->Swap(graph.mutable_node(at));
  graph.mutable_node()->Swap(&nodes);
  return success();
}

} // namespace accel::onnxio
