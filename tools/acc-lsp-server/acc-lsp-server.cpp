// acc-lsp-server: MLIR's language server with acc's dialects. An editor that
// starts it on .mlir files shows errors of parser and verifiers as one types,
// and where values and symbols are defined and used (docs/Editors.md).

#include "CheckNesting.h"
#include "accel-rt/Version.h"
#include "lib/Driver/InitAll.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  // LLVM's options are registered by now, the server's own are not yet: --help
  // lists what concerns a server.
  llvm::cl::OptionCategory none("");
  llvm::cl::HideUnrelatedOptions(none);
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << accel::rt::versionText("acc-lsp-server")
       << "compiled with: LLVM and MLIR " LLVM_VERSION_STRING "\n";
  });
  mlir::DialectRegistry registry;
  accel::registerAllDialects(registry);
  auto arguments = llvm::ArrayRef(argv, argc);
  checkNestingOfInput(registry,
                      llvm::any_of(arguments, [](llvm::StringRef argument) {
                        return argument.ends_with("-lit-test") ||
                               argument.ends_with("-input-style=delimited");
                      }));
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
