// What was chosen by cost: the value, what else there was, what each costs, and
// why. Whoever chooses writes it into the module, if somebody asks.

#ifndef ACCEL_LIB_COST_DECISION_H
#define ACCEL_LIB_COST_DECISION_H

#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace accel::cost {

/// A value that a decision has, or might have had.
struct Alternative {
  std::string value;
  /// What it takes on the table of the target (Machine.h): of a step, or of
  /// what the decision is about. None: the same for all.
  std::optional<double> seconds;
  std::optional<int64_t> bytes; ///< of one rank
  std::string detail = {};      ///< what else tells it from the others
};

struct Decision {
  std::string name; ///< "schedule"
  std::string of;   ///< what it is about: an entry, a unit, a tensor
  Alternative chosen;
  std::vector<Alternative> others;
  std::string reason;
};

/// The key of `accel.decisions` under which decisions are told: a list, empty
/// at first, which asks for them.
inline constexpr llvm::StringLiteral kConsideredKey = "considered";

/// Where a model is cut into the chunks of a pipeline: a decision whose value
/// is the nodes before which chunks begin, with commas.
inline constexpr llvm::StringLiteral kCuts = "cuts";

/// Asks every pass that comes to tell what it chooses.
void askForDecisions(mlir::ModuleOp module);
/// Whether somebody asks. Costs that nobody asks for are not worth finding.
bool isAskedForDecisions(mlir::ModuleOp module);

/// Appends a decision, if somebody asks, as
///
///     {decision = "schedule", of = "step", reason = "--schedule",
///      chosen = {value = "1f1b", seconds = 1.2e-3 : f64, bytes = 4096 : i64,
///                detail = "12.5 % idle"},
///      others = [{value = "gpipe", …}]}
void tell(mlir::ModuleOp module, const Decision &decision);

/// Takes back what was told of decisions with these names: they were made anew.
void takeBack(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> names);

/// Those that were told, in their order; none of a module that was not asked.
/// Errors, at the module: one that is not of that form.
mlir::FailureOr<std::vector<Decision>> readDecisions(mlir::ModuleOp module);

/// Sets a key of `accel.decisions` and leaves the others; null: removes it.
void setDecision(mlir::ModuleOp module, llvm::StringRef key,
                 mlir::Attribute value);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_DECISION_H
