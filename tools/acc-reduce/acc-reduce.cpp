// acc-reduce: MLIR's reducer with acc's dialects and passes. Of a module for
// which a script says that it is of interest (a crash, a wrong result) it
// leaves as little as still is (docs/Editors.md).

#include "ReduceBodies.h"

#include "accel-rt/Version.h"
#include "lib/Driver/InitAll.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << accel::rt::versionText("acc-reduce")
       << "compiled with: LLVM and MLIR " LLVM_VERSION_STRING "\n";
  });
  mlir::DialectRegistry registry;
  accel::registerAllDialects(registry);
  accel::registerAllPasses();
  registerReduceBodies();
  mlir::MLIRContext context(registry);
  return failed(mlir::mlirReduceMain(argc, argv, context));
}
