// What a compilation costs and where things are, before anything runs:
// `acc-opt
// --report=memory|sharding|collectives|commands|scale|decisions|stages|schedule`,
// `precision`, and of a training step `parameters`; and why they are so:
// `--explain=sharding|collectives`.

#ifndef ACCEL_LIB_REPORT_REPORTS_H
#define ACCEL_LIB_REPORT_REPORTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

namespace accel::report {

/// Bytes of a rank, of a module in phase `plan`: for each arena what is alive
/// when most is, by role, and the largest tensors of that moment with the node
/// they belong to; rows add up to the arena's planned bytes, what nothing uses
/// at that moment being a row of its own. Then the states by role, with their
/// padding, and how many units of gathered weights are alive at once. Beside
/// the bytes of each arena what was predicted when it was decided, where
/// somebody asked (lib/Cost/Prediction.h); at the end what the step would take
/// with less memory, where somebody asked (lib/Cost/Frontier.h): into a file
/// whose name ends in `.svg` a picture of that alone, unless `json` is true.
mlir::LogicalResult printMemory(mlir::ModuleOp module, llvm::StringRef file,
                                llvm::raw_ostream &os, bool json);

/// How a step updates each parameter, by its name: `optimizer`,
/// `lr_multiplier` (of `optimizer.lr`), `weight_decay` and `why`: which setting
/// said each of these, with its place where a config file did. Of a module past
/// phase `nn` that trains; empty of another.
llvm::StringMap<llvm::json::Object> collectUpdates(mlir::ModuleOp module);

/// The same as a table, or as JSON (`json`) with each parameter's `name`, in
/// the order of the states. Errors: nothing is trained.
mlir::LogicalResult printUpdates(mlir::ModuleOp module, llvm::raw_ostream &os,
                                 bool json);

/// In which types each product and attention of the step, or else of the
/// forward, is computed, of a module in phase `train`: its node, which part of
/// the computation it is (forward, the gradient of an input or of a weight),
/// types of operands, sums and result, and what said so; and the scale that the
/// loss begins with. Errors: no entry.
mlir::LogicalResult printPrecision(mlir::ModuleOp module, llvm::raw_ostream &os,
                                   bool json);

/// What ranks exchange in one call of the main entry, of a module in phase
/// `plan`: by kind, axes, element type and the pass that put it there, how many
/// collectives of how many tensors and bytes (of one rank's inputs); and how
/// often each unit's weights are gathered per micro-batch.
mlir::LogicalResult printCollectives(mlir::ModuleOp module,
                                     llvm::raw_ostream &os, bool json);

/// What one call of each entry executes on a rank, of a module in phase `plan`:
/// by kind, how many commands, the bytes of the views that they read and write,
/// and their floating-point operations. `acc-run --device=null` counts the
/// same.
mlir::LogicalResult printCommands(mlir::ModuleOp module, llvm::raw_ostream &os,
                                  bool json);

/// What the passes up to phase `plan` have chosen by cost: the value, what else
/// there was, what each takes and why. Errors, at the module: it was not asked
/// before (lib/Cost/Decision.h). At the end the memory that was predicted of
/// each stage and arena, beside what is planned.
mlir::LogicalResult printDecisions(mlir::ModuleOp module, llvm::raw_ostream &os,
                                   bool json);

/// What one call of each entry but `load` would take on machines and links as
/// the file `links` describes them (lib/Cost/Links.h), of a module in phase
/// `plan`: its time, and of what; bytes on the links of each level; exchanges
/// by kind; planned memory. Errors: the file.
mlir::LogicalResult printScale(mlir::ModuleOp module, llvm::StringRef links,
                               llvm::raw_ostream &os, bool json);

/// For each state, of a module in phase `local`: its shape, what each dimension
/// is split over, one rank's shape, padding, what gathers it; of a parameter
/// also its moments and accumulator.
mlir::LogicalResult printSharding(mlir::ModuleOp module, llvm::raw_ostream &os,
                                  bool json);

/// The chunks of the step's pipeline, of a module in phase `local`: their
/// nodes, parameters, arithmetic, activations and work, what crosses between
/// them, and the states that several of them read.
mlir::LogicalResult printStages(mlir::ModuleOp module, llvm::raw_ostream &os,
                                bool json);

/// What the order of the step's tasks comes to, of a module in phase `local`:
/// how long ranks are busy and idle, and what they keep, when each task takes
/// its work. Into a file whose name ends in `.svg` a picture of it, in `.json`
/// a trace, unless `json` is true. Errors: no step; runs that are none of one.
mlir::LogicalResult printSchedule(mlir::ModuleOp module, llvm::StringRef file,
                                  llvm::raw_ostream &os, bool json);

/// Each axis that splits a state, input or output of an entry, and where it
/// comes from: of a module in phase `dist` that was compiled to be explained.
mlir::LogicalResult explainSharding(mlir::ModuleOp module,
                                    llvm::raw_ostream &os, bool json);

/// Each collective of each entry: kind, axes, ranks, bytes of one rank's input,
/// how often a call runs it, the ONNX node that it is for, the pass that put it
/// there, and why: of a module in phase `local` that was compiled to be
/// explained.
mlir::LogicalResult explainCollectives(mlir::ModuleOp module,
                                       llvm::raw_ostream &os, bool json);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_REPORTS_H
