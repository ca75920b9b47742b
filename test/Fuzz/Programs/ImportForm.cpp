// What acc imports of a program's ONNX file.

#include "OnnxForm.h"

#include "dialects/NN/NN.h"
#include "lib/Import/Import.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace accel;

OwningOpRef<ModuleOp> fuzz::importOnnx(const std::string &bytes,
                                       ModuleOp program) {
  MLIRContext *context = program.getContext();
  auto file =
      onnxio::OnnxFile::load(llvm::MemoryBuffer::getMemBuffer(bytes, "", false),
                             "program.onnx", context);
  if (failed(file))
    return nullptr;
  onnxio::IdentifyOptions identify;
  for (auto state : program.getOps<nn::StateOp>())
    (state.getFrozen() ? identify.frozen : identify.trainable)
        .push_back(state.getSymName().str());
  auto table = onnxio::identifyParameters(**file, identify);
  if (failed(table))
    return nullptr;
  import::ImportOptions options;
  options.forTraining = true;
  OwningOpRef<ModuleOp> module =
      import::importOnnx(**file, *table, options, context);
  if (!module)
    return nullptr;
  // There is no file that their ranges are of.
  SymbolTable symbols(program);
  for (auto state : module->getOps<nn::StateOp>())
    if (auto original = symbols.lookup<nn::StateOp>(state.getSymName())) {
      state.setInitAttr(original.getInitAttr());
      state.removeInitializersAttr();
    }
  PassManager pm(context);
  transforms::buildImportPipeline(pm);
  if (failed(pm.run(*module)))
    return nullptr;
  return module;
}
