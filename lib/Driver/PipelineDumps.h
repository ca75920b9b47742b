// What mlir-opt's flags show of pipelines, of a compilation that has one for
// each phase.

#ifndef ACCEL_LIB_DRIVER_PIPELINEDUMPS_H
#define ACCEL_LIB_DRIVER_PIPELINEDUMPS_H

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"

namespace accel::driver {

/// A pass manager numbers its dumps from 0, and would write over those of the
/// phase before: each pipeline of a compilation gets a folder of its own,
/// DIR/0-nn, DIR/1-train, ..., under `--mlir-print-ir-tree-dir=DIR`.
class TreeFolders {
public:
  TreeFolders();
  ~TreeFolders();
  TreeFolders(const TreeFolders &) = delete;
  TreeFolders &operator=(const TreeFolders &) = delete;

  /// To be called before `applyPassManagerCLOptions` of the pipeline `name`.
  void enter(llvm::StringRef name);

private:
  llvm::cl::opt<std::string> *flag = nullptr; ///< Null: not given.
  std::string folder;
  unsigned count = 0;
};

/// Prints the passes of a phase as `--pass-pipeline` reads them, to the
/// standard error, where mlir-opt's `--dump-pass-pipeline` prints its own.
void printPipeline(llvm::StringRef phase, mlir::PassManager &pipeline);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_PIPELINEDUMPS_H
