// Small models as torch's dynamo exporter writes them: nodes that name the
// traced call they came from, a graph signature, and what the optimizer says it
// folded. Shared by the tests of parameter identity.
#ifndef ACCEL_TEST_UNIT_ONNX_TRACEDMODEL_H
#define ACCEL_TEST_UNIT_ONNX_TRACEDMODEL_H

#include "TestModel.h"
#include "lib/Onnx/Parameters.h"
#include "llvm/ADT/StringExtras.h"

namespace accel::onnxio {

inline void setProperty(onnx::StringStringEntryProto *entry,
                        const std::string &key, const std::string &value) {
  entry->set_key(key);
  entry->set_value(value);
}

/// A line of a signature.
inline std::string parameter(const std::string &name) {
  std::string placeholder = "p_" + name;
  std::replace(placeholder.begin(), placeholder.end(), '.', '_');
  return placeholder + ": PARAMETER target='" + name + "'\n";
}

/// A model of torch's dynamo exporter: `signature` lists inputs, before the
/// user's `x`.
inline onnx::ModelProto traced(const std::string &signature) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(20);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("main");
  addValue(graph.mutable_input(), "x");
  setProperty(graph.add_metadata_props(),
              "pkg.torch.export.ExportedProgram.graph_signature",
              "\n# inputs\n" + signature + "x: USER_INPUT\n\n# outputs\n");
  return model;
}

/// The text of a traced call; `op` with its namespace: `aten.mul`.
inline std::string call(const std::string &result, const std::string &op,
                        const std::string &arguments,
                        const std::string &keywords = "", unsigned users = 1) {
  return "%" + result + " : [num_users=" + std::to_string(users) +
         "] = call_function[target=torch.ops." + op + ".default](args = (" +
         arguments + "), kwargs = {" + keywords + "})";
}

inline void setCall(onnx::NodeProto *node, const std::string &call,
                    const std::string &module = "") {
  setProperty(node->add_metadata_props(), "pkg.torch.onnx.fx_node", call);
  if (!module.empty())
    setProperty(node->add_metadata_props(), "pkg.torch.onnx.name_scopes",
                "['', '" + module + "', 'call']");
}

inline void setTrace(onnx::NodeProto *node, const std::string &trace) {
  setProperty(node->add_metadata_props(), "pkg.torch.onnx.stack_trace", trace);
}

/// A traced program in the making, for tests that hold many.
struct TracedModel {
  /// `more`: lines of the signature that are no parameters.
  explicit TracedModel(const std::vector<std::string> &parameters,
                       const std::string &more = "") {
    std::string signature;
    for (const std::string &name : parameters)
      signature += parameter(name);
    model = traced(signature + more);
  }
  onnx::GraphProto &graph() { return *model.mutable_graph(); }

  /// A node of the traced call `text`; the result of node number N is called
  /// `o_N` unless `output` says otherwise.
  onnx::NodeProto *add(const char *op, std::vector<std::string> inputs,
                       const std::string &text, std::string output = "") {
    if (output.empty())
      output = "o_" + std::to_string(graph().node_size());
    onnx::NodeProto *node = addNode(graph(), op, inputs, {output});
    setCall(node, text);
    return node;
  }
  /// An initializer with values that are all different, or with those given.
  void hold(const std::string &name, std::vector<int64_t> shape,
            std::vector<float> values = {}) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    for (int64_t i = values.size(); i < count; ++i)
      values.push_back(0.5f + float(i));
    addInitializer(graph(), name, shape, values);
  }
  /// What the optimizer says `name` was computed from.
  void foldedFrom(const std::string &name,
                  const std::vector<std::string> &from) {
    setProperty(addValue(graph().mutable_value_info(), name.c_str())
                    ->add_metadata_props(),
                "pkg.onnxscript.optimizer.folded_from",
                "['" + llvm::join(from, "', '") + "']");
  }
  /// A parameter that is held, and used as it is: `used_<name>` = x * name,
  /// which the program's calls take `users` times.
  void use(const std::string &name, std::vector<int64_t> shape = {2, 3},
           std::vector<float> values = {}, unsigned users = 1) {
    hold(name, std::move(shape), std::move(values));
    add("Mul", {"x", name},
        call("used_" + name, "aten.mul", "%x, %p_" + name, "", users),
        "used_" + name);
  }

  onnx::ModelProto model;
};

class TracedTest : public OnnxTest {
protected:
  mlir::FailureOr<ParameterTable>
  identify(const onnx::ModelProto &model, const IdentifyOptions &options = {}) {
    loaded = load(model);
    EXPECT_TRUE(succeeded(loaded));
    return identifyLoaded(options);
  }
  mlir::FailureOr<ParameterTable>
  identifyLoaded(const IdentifyOptions &options = {}) {
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          messages.push_back(diagnostic.str());
          return mlir::success();
        });
    return identifyParameters(**loaded, options);
  }
  /// The node that was added as number `index`.
  const onnx::NodeProto &node(int index) const {
    return (*loaded)->graph().node(index);
  }

  struct WantedDoubt {
    Doubt::Kind kind;
    std::vector<std::string> parameters;
    /// A part of the message.
    std::string message;
  };
  /// Identifies and expects these doubts, in this order, and no others.
  void expectDoubts(const TracedModel &traced,
                    const std::vector<WantedDoubt> &wanted) {
    mlir::FailureOr<ParameterTable> table = identify(traced.model);
    ASSERT_TRUE(succeeded(table));
    std::string all;
    for (const Doubt &doubt : table->doubts)
      all += "\n  " + doubt.message;
    ASSERT_EQ(table->doubts.size(), wanted.size()) << "found:" << all;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(table->doubts[i].kind, wanted[i].kind) << all;
      EXPECT_EQ(table->doubts[i].parameters, wanted[i].parameters) << all;
      EXPECT_THAT(table->doubts[i].message,
                  testing::HasSubstr(wanted[i].message));
    }
  }

  File loaded = mlir::failure();
};

} // namespace accel::onnxio

#endif // ACCEL_TEST_UNIT_ONNX_TRACEDMODEL_H
