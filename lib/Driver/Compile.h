// What acc-opt does with a model: from a file to IR of a phase, or to an
// executable.

#ifndef ACCEL_LIB_DRIVER_COMPILE_H
#define ACCEL_LIB_DRIVER_COMPILE_H

#include "Phases.h"
#include "llvm/ADT/StringMap.h"

namespace accel::driver {

/// One invocation of the compiler, with every option resolved by the tool.
struct CompileOptions {
  std::string input;  ///< `.onnx`, or IR of any phase
  std::string output; ///< `.accx`, else where the IR goes; "-" is stdout
  Phase compileTo = Phase::Plan;
  PhaseOptions phases;
  llvm::StringMap<int64_t> dims;       ///< `--dim name=N`
  llvm::StringMap<std::string> inputs; ///< `--input NAME=FILE`
  std::vector<std::pair<std::string, std::string>> ties; ///< `--tie A=B`
  bool f64 = false;                                      ///< `--dtype=f64`
  bool hashWeights = false;                              ///< `--hash-weights`
  bool embedWeights = false;   ///< `--embed-weights`: into `output`
  std::string originalWeights; ///< `--original-weights`, or empty
  /// "", or "parameters", "memory", "sharding", "collectives", "commands",
  /// "scale", "stages" or "schedule".
  std::string report;
  /// `--links`: the machines that "scale" is of.
  std::string links;
  /// "", "sharding" or "collectives": why things are as the report says.
  std::string explain;
  bool whatIf = false; ///< `--what-if`: "memory" tells what less would take
  bool json = false;   ///< reports for machines
  /// What a plan comes to, instead of its text: for a person at a terminal.
  bool overview = false;
  /// What config files came to, with origins: `accel.config` of the module.
  std::vector<std::pair<std::string, std::string>> config;
  /// Every key of the files, and what became of it.
  std::vector<std::string> configKeys;
  /// Rows of a step over all ranks, where a file says so.
  struct BatchSize {
    int64_t rows = 0; ///< 0: nothing says it
    std::string file; ///< that says it; empty: a flag
    unsigned line = 0;
  } batchSize;
  /// Flags that were given, with the last phase that reads each; on a module
  /// that is at that phase or past it they would change nothing, and are
  /// refused. Import reads a flag of phase `nn`.
  std::vector<std::pair<std::string, Phase>> given;
  /// `--proved-against`: the text of phases before that of `input`, if that is
  /// text: what phases `train` and `local` ended with.
  std::vector<std::string> provedAgainst;
  /// Adds the passes that the user named on the command line; they run when the
  /// last phase is reached.
  std::function<mlir::LogicalResult(mlir::PassManager &)> addUserPasses;
  /// `--dump-pass-pipeline`: of phases; MLIR prints the user's own.
  bool printPipelines = false;
};

/// Whether a report is of one rank's program; the others are of a plan.
bool isOfLocal(llvm::StringRef report);

/// Writes `--report=parameters` of the text of a phase, of an executable that
/// trains. Errors are printed: text that is none of a program that trains.
mlir::LogicalResult reportUpdates(const CompileOptions &options,
                                  llvm::StringRef text);

/// Compiles `options.input`: imports it if it is an ONNX model, runs the phases
/// up to `compileTo`, then writes the executable, the IR or the report. Errors
/// are printed with the ONNX node they come from; nothing is left of a failed
/// output.
mlir::LogicalResult compile(const CompileOptions &options);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_COMPILE_H
