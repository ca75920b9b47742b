// Small ONNX models built in memory, a folder to put them in, and what loading
// them says.
#ifndef ACCEL_TEST_UNIT_ONNX_TESTMODEL_H
#define ACCEL_TEST_UNIT_ONNX_TESTMODEL_H

#include "lib/Onnx/OnnxFile.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace accel::onnxio {

/// A folder that is removed with everything in it.
class TestFolder {
public:
  TestFolder() {
    std::error_code code =
        llvm::sys::fs::createUniqueDirectory("accel-onnx-test", path);
    EXPECT_FALSE(code);
  }
  ~TestFolder() { llvm::sys::fs::remove_directories(path); }

  std::string file(llvm::StringRef name) const {
    return (path + "/" + name).str();
  }
  std::string write(llvm::StringRef name, llvm::StringRef bytes) const {
    std::error_code code;
    llvm::raw_fd_ostream out(file(name), code);
    EXPECT_FALSE(code);
    out << bytes;
    return file(name);
  }

  llvm::SmallString<128> path;
};

inline onnx::ValueInfoProto *
addValue(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> *list,
         const char *name, std::vector<int64_t> shape = {2, 3}) {
  onnx::ValueInfoProto *value = list->Add();
  value->set_name(name);
  auto *type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : shape)
    type->mutable_shape()->add_dim()->set_dim_value(dim);
  return value;
}

inline onnx::NodeProto *addNode(onnx::GraphProto &graph, const char *op,
                                std::vector<std::string> inputs,
                                std::vector<std::string> outputs,
                                const char *name = "") {
  onnx::NodeProto *node = graph.add_node();
  node->set_op_type(op);
  if (*name)
    node->set_name(name);
  for (const std::string &input : inputs)
    node->add_input(input);
  for (const std::string &output : outputs)
    node->add_output(output);
  return node;
}

inline void fillRaw(onnx::TensorProto &tensor,
                    const std::vector<float> &values) {
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
}

/// A float initializer with raw data.
inline onnx::TensorProto *addInitializer(onnx::GraphProto &graph,
                                         const std::string &name,
                                         std::vector<int64_t> shape,
                                         std::vector<float> values) {
  onnx::TensorProto *tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : shape)
    tensor->add_dims(dim);
  fillRaw(*tensor, values);
  return tensor;
}

/// y = (x + b) * w, with nodes that have no names.
inline onnx::ModelProto smallModel() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  auto *import = model.add_opset_import();
  import->set_domain("");
  import->set_version(18);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("g");
  addValue(graph.mutable_input(), "x");
  addValue(graph.mutable_output(), "y");
  addInitializer(graph, "b", {3}, {1, 2, 3});
  addInitializer(graph, "w", {2, 3}, {1, 2, 3, 4, 5, 6});
  addNode(graph, "Add", {"x", "b"}, {"s"});
  addNode(graph, "Mul", {"s", "w"}, {"y"});
  return model;
}

class OnnxTest : public testing::Test {
protected:
  using File = mlir::FailureOr<std::unique_ptr<OnnxFile>>;

  File loadPath(const std::string &path) {
    messages.clear();
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          std::string location;
          llvm::raw_string_ostream(location) << diagnostic.getLocation();
          messages.push_back(diagnostic.str());
          locations.push_back(location);
          return mlir::success();
        });
    return OnnxFile::load(path, &context);
  }
  File load(const onnx::ModelProto &model) {
    return loadPath(folder.write("model.onnx", model.SerializeAsString()));
  }
  /// Loads and expects exactly one error with this text.
  void expectError(const onnx::ModelProto &model, const std::string &text) {
    expectErrorOf(load(model), text);
  }
  void expectErrorOf(const File &file, const std::string &text) {
    EXPECT_TRUE(failed(file)) << "expected: " << text;
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_THAT(messages[0], testing::HasSubstr(text));
    EXPECT_NE(messages[0].back(), '.');
    EXPECT_EQ(messages[0].find('\n'), std::string::npos);
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  TestFolder folder;
  std::vector<std::string> messages, locations;
};

} // namespace accel::onnxio

#endif // ACCEL_TEST_UNIT_ONNX_TESTMODEL_H
