// The reader of ONNX files and what settles which parameters they have: a
// model that keeps the reader's promises, or an error. External data are looked
// for in a folder that has `data`, `inner/data`, and links out of it.

#include "Context.h"
#include "lib/Onnx/Parameters.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <filesystem>
#include <fstream>

using namespace accel;
using namespace accel::fuzz;

namespace {

struct Folder {
  std::string path;
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "accel-fuzz-XXXXXX").string();
    path = mkdtemp(pattern.data());
    std::filesystem::create_directory(path + "/inner");
    for (const char *name : {"/data", "/inner/data"})
      std::ofstream(path + name) << std::string(64, '\1');
    std::filesystem::create_symlink("/etc/passwd", path + "/out");
    std::filesystem::create_symlink("data", path + "/link");
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// Every tensor of a graph has a payload, and its last byte can be read.
void readPayloads(const onnxio::OnnxFile &file, const onnx::GraphProto &graph) {
  auto read = [&](const onnx::TensorProto &tensor) {
    const onnxio::Payload &payload = file.payload(tensor);
    require(!llvm::StringRef(payload.path).ends_with("/out"),
            "no payload lies outside of the model's folder");
    volatile char last = payload.data.empty() ? 0 : payload.data.back();
    (void)last;
  };
  for (const onnx::TensorProto &tensor : graph.initializer())
    read(tensor);
  for (const onnx::NodeProto &node : graph.node()) {
    require(!node.name().empty(), "every node has a name");
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_t())
        read(attribute.t());
      for (const onnx::TensorProto &tensor : attribute.tensors())
        read(tensor);
      if (attribute.has_g())
        readPayloads(file, attribute.g());
      for (const onnx::GraphProto &inner : attribute.graphs())
        readPayloads(file, inner);
    }
  }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Context contexts;
  static Folder folder;
  mlir::MLIRContext *context = contexts.get();
  auto file = onnxio::OnnxFile::load(
      llvm::MemoryBuffer::getMemBuffer(
          llvm::StringRef(reinterpret_cast<const char *>(data), size), "",
          false),
      folder.path + "/model.onnx", context);
  contexts.check(succeeded(file), "loading ends in a model or in an error");
  if (failed(file))
    return 0;
  readPayloads(**file, (*file)->graph());
  for (const onnx::NodeProto &node : (*file)->graph().node())
    (void)(*file)->location(node);
  onnxio::IdentifyOptions options;
  options.allowFolded = size % 2;
  auto table = onnxio::identifyParameters(**file, options);
  contexts.check(succeeded(table),
                 "parameters are settled, or there is an error");
  return 0;
}
