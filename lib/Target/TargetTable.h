// The targets that a context knows, by name. They hang on the plan dialect, as
// models of interfaces hang on theirs, so that passes find them without knowing
// any.

#ifndef ACCEL_LIB_TARGET_TARGETTABLE_H
#define ACCEL_LIB_TARGET_TARGETTABLE_H

#include "Target.h"
#include "mlir/IR/DialectInterface.h"
#include <map>
#include <memory>
#include <mutex>

namespace accel {

/// What the user says of a target.
struct TargetOptions {
  std::string text;    ///< "NAME" or "NAME:WHAT"; empty: the first of the table
  int64_t threads = 0; ///< of a rank; 0: as many as the runtime will take
};

class TargetTable : public mlir::DialectInterface::Base<TargetTable> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TargetTable)

  using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;
  /// Makes the target of `options.text`, which begins with the row's name.
  using Create = mlir::FailureOr<std::unique_ptr<Target>> (*)(
      const TargetOptions &options, EmitError emitError);
  struct Row {
    std::string name;  ///< what a text begins with, up to ':'
    std::string usage; ///< for errors: "cpu or cpu:NAME"
    Create create;
  };

  TargetTable(mlir::Dialect *dialect, std::vector<Row> rows)
      : Base(dialect), rows(std::move(rows)) {}

  /// The target that was asked for, made once. Errors: no row of that name, and
  /// what the row says.
  mlir::FailureOr<const Target *> get(TargetOptions options,
                                      EmitError emitError) const;

private:
  std::vector<Row> rows;
  mutable std::mutex mutex;
  mutable std::map<std::pair<std::string, int64_t>, std::unique_ptr<Target>>
      made;
};

/// The target of a pass's options, in the table of the module's context; errors
/// are at the module.
mlir::FailureOr<const Target *>
findTarget(mlir::ModuleOp module, llvm::StringRef text, int64_t threads = 0);

/// The targets of a plan's bodies, of each engine one: first that of the
/// options, which the plan was made for, then of other engines those that are
/// called as they are, with the same threads. Errors: the first body, which
/// fills the arenas at load, is of another engine than the first target's.
mlir::FailureOr<llvm::SmallVector<const Target *>>
findTargets(mlir::ModuleOp plan, llvm::StringRef text, int64_t threads = 0);

} // namespace accel

#endif // ACCEL_LIB_TARGET_TARGETTABLE_H
