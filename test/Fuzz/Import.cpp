// The importer on models made of its own operators (RandomModel.h), up to the
// end of phase nn: a module that verifies, or an error. With ACCEL_FUZZ_PRINT
// in the environment it prints the model.

#include "lib/Import/Import.h"
#include "Context.h"
#include "RandomModel.h"
#include "lib/Onnx/Parameters.h"
#include "lib/Transforms/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace accel;
using namespace accel::fuzz;

/// What the file is imported for comes out of the input's first byte.
static mlir::OwningOpRef<mlir::ModuleOp>
importModel(const onnx::ModelProto &model, uint8_t choice,
            mlir::MLIRContext *context) {
  std::string bytes = model.SerializeAsString();
  auto file = onnxio::OnnxFile::load(
      llvm::MemoryBuffer::getMemBuffer(bytes, "", false), "fuzz.onnx", context);
  if (failed(file))
    return nullptr;
  onnxio::IdentifyOptions identify;
  identify.allowFolded = choice & 1;
  if (choice & 2)
    identify.trainable = {"*"};
  auto table = onnxio::identifyParameters(**file, identify);
  if (failed(table))
    return nullptr;
  import::ImportOptions options;
  options.allowFolded = choice & 1;
  options.forTraining = choice & 4;
  options.f64 = choice & 8;
  // One size too few, too: dimensions are unified by use.
  if (choice & 48)
    for (const onnx::ValueInfoProto *input : (*file)->inputs())
      for (const auto &dim : input->type().tensor_type().shape().dim())
        if (!dim.dim_param().empty() &&
            (choice & 32 || dim.dim_param() == "batch"))
          options.dims[dim.dim_param()] = 1 + (choice >> 6);
  return import::importOnnx(**file, *table, options, context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Context contexts;
  mlir::MLIRContext *context = contexts.get();
  ByteSource source(data, size);
  uint8_t choice = source.byte();
  onnx::ModelProto model = RandomModel(source).build();
  if (std::getenv("ACCEL_FUZZ_PRINT"))
    std::fprintf(stderr, "%s", model.DebugString().c_str());
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importModel(model, choice, context);
  contexts.check(static_cast<bool>(module),
                 "an import ends in a module or in an error");
  if (!module)
    return 0;
  require(succeeded(mlir::verify(*module)), "what is imported verifies");
  mlir::PassManager passes(context);
  passes.enableVerifier();
  transforms::buildImportPipeline(passes);
  contexts.check(succeeded(passes.run(*module)),
                 "passes end in phase nn or in an error");
  return 0;
}
