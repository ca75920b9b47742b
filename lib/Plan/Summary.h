// What a plan costs: bytes per rank, commands and arithmetic.

#ifndef ACCEL_LIB_PLAN_SUMMARY_H
#define ACCEL_LIB_PLAN_SUMMARY_H

#include "BufferTable.h"
#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <string>
#include <vector>

namespace accel::plan {

/// Floating-point operations of one execution of a command: of products and
/// attention those that an implementation cannot do without, of a kernel what
/// the Cost models of its ops add up to (each op once, however often a fused
/// loop computes it), of all else none. The file carries the number.
int64_t countFlops(CommandOpInterface command,
                   mlir::SymbolTableCollection &symbols);

/// How often commands are executed, and what that takes.
struct CommandCounts {
  int64_t commands = 0, bytesRead = 0, bytesWritten = 0, flops = 0;

  void add(const CommandCounts &other, int64_t times);
};
/// What one call of an entry executes, by the kind of command. Bytes are those
/// of views; how often a target goes over its own scratch nobody else knows.
std::map<llvm::StringRef, CommandCounts>
countCommands(EntryOp entry, const BufferTable &buffers,
              mlir::SymbolTableCollection &symbols);

/// What one call of an entry reads from the file of space nvme, and writes to
/// it.
CommandCounts countStored(EntryOp entry, const BufferTable &buffers);

/// How many captures a device that has any makes of an entry: one of what can
/// be captured between two files, bodies of another engine, or loops with more
/// commands than a capture holds (Target::getMostCaptured), of which a turn is
/// one; and what stands between two of them. Fails where an engine has no
/// target.
struct Captures {
  int64_t count = 0;
  std::vector<std::string> splits = {}; ///< each said once
};
mlir::FailureOr<Captures> findCaptures(EntryOp entry,
                                       const BufferTable &buffers);

/// Prints, for each program of a module in phase `plan`: the bytes of each
/// arena with the sizes of its buffers by role (roles that share bytes add up
/// to more than the arena), the largest buffers, and for each entry its
/// commands by kind with their floating-point operations. Per rank: one program
/// serves all ranks. As text, or as one line of JSON per program.
void printPlanSummary(mlir::ModuleOp module, llvm::raw_ostream &os, bool json);

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_SUMMARY_H
