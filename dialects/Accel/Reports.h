// The numbers by which a step says how it went: their names, which the module
// lists, and what one of them, its verdict, means. AccelDialect.td says it in
// words.

#ifndef ACCEL_DIALECTS_ACCEL_REPORTS_H
#define ACCEL_DIALECTS_ACCEL_REPORTS_H

#include "mlir/IR/BuiltinOps.h"

namespace accel {

inline constexpr llvm::StringLiteral kReportsAttr = "accel.reports";

/// The two that every step reports: its loss, and what became of it.
inline constexpr llvm::StringLiteral kLossReport = "loss",
                                     kVerdictReport = "verdict";

/// What a step says of itself, an i32. Of a step that is skipped no state
/// changes but what counts calls; of one that failed none does.
enum class Verdict : int32_t { Done, Skipped, Failed };

/// What the names of the terms begin with of which an evaluation gives its loss
/// (`accel.separate_rows`).
inline constexpr llvm::StringLiteral kTermPrefix = "loss.term.";

/// What the names of outputs begin with that measure a step (acc-run
/// --metrics).
inline constexpr llvm::StringLiteral kMetricPrefix = "metrics/";

/// Whether an output is a number by which the module's step reports, such a
/// term, or such a metric: no file of outputs holds it, and the first chunk
/// gives it.
bool isReport(mlir::ModuleOp module, llvm::StringRef output);

} // namespace accel

#endif // ACCEL_DIALECTS_ACCEL_REPORTS_H
