// What a memory budget decides beside recomputation: when sharded weights are
// gathered, where states and activations lie, and by which schedule a pipeline
// runs. A candidate says all of them.

#ifndef ACCEL_LIB_SEARCH_CANDIDATES_H
#define ACCEL_LIB_SEARCH_CANDIDATES_H

#include "InFlight.h"
#include "Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <memory>
#include <optional>

namespace accel::search {

/// Which of these are open.
struct OpenDecisions {
  bool gathers = false;  ///< zero.gather_once=auto
  bool schedule = false; ///< --schedule=auto of a pipeline
  /// Keys of `accel.decisions` (lib/Cost/OffloadDecisions.h).
  llvm::SmallVector<std::string> offloads;
  /// Where what is offloaded may lie.
  llvm::SmallVector<std::string> spaces;

  /// As the options of a pass.
  template <typename Options> void write(Options &options) const {
    options.gathersOpen = gathers;
    options.scheduleOpen = schedule;
    options.offloadsOpen = offloads;
    options.spaces = spaces;
  }
  bool any() const { return gathers || schedule || !offloads.empty(); }
};

struct Candidate {
  /// "gathers once, optimizer on the host, schedule zb-h1"; of what is not open
  /// nothing.
  std::string value;
  /// Keys of `accel.decisions`; null: none.
  llvm::SmallVector<std::pair<llvm::StringRef, mlir::Attribute>> decisions;
  /// What its gathers and its schedule take of a step, whatever is computed
  /// again and however long copies are waited for: no choice takes less.
  double seconds = 0;
  /// Null where the schedule is not open.
  std::shared_ptr<const pipeline::Synthesis> schedule = nullptr;

  /// Whether it says anything of a key.
  bool decides(llvm::StringRef key) const;
  /// The text that it decides a key to be; empty where it is none.
  llvm::StringRef get(llvm::StringRef key) const;
  /// Whether anything is offloaded.
  bool copies() const;
  /// Has the module decide so, micro-batches in flight included. Errors: those
  /// of `countInFlight`.
  mlir::LogicalResult apply(mlir::ModuleOp module) const;
};

/// "optimizer on the host": of a key of `kOffloadDecisions`.
std::string describeOffload(llvm::StringRef key, llvm::StringRef space);

/// All combinations of what is open and would change something; at least one.
/// Of schedules those that no other one is better than in both time and kept
/// activations. The entry is in phase `dist`, and its tasks take what the
/// problem says. Errors, at the entry: those of `trySchedules`.
mlir::FailureOr<std::vector<Candidate>>
listCandidates(mlir::func::FuncOp step, const Layout &layout,
               const OpenDecisions &open, const pipeline::Problem &problem);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_CANDIDATES_H
