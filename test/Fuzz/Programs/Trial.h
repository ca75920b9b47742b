// Trying programs in processes of their own, so that a crash or a hang is one
// program's.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_TRIAL_H
#define ACCEL_TEST_FUZZ_PROGRAMS_TRIAL_H

#include "Check.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace accel::fuzz {

struct TrialOptions {
  uint64_t seed = 1, first = 0, programs = 100;
  unsigned layouts = 3, jobs = 1;
  unsigned timeout = 60; ///< seconds for one program in one layout
  /// Each so many programs gradients are held against finite differences.
  unsigned gradientsEvery = 10;
  CheckOptions check;
};

/// What one program in one layout came to. `layout` is -1 where one rank was
/// asked, -2 of gradients.
struct Result {
  uint64_t program = 0;
  int layout = 0;
  std::string flags;
  /// Verdict, "crashed" or "hung".
  std::string verdict;
  Outcome outcome;
  double seconds = 0;

  std::string getKind() const;
  bool isFailure() const {
    return verdict != "right" && verdict != "reason" && verdict != "unstable";
  }
};

/// Calls `tell` for each result, in no fixed order where there are jobs.
void runTrial(const TrialOptions &options,
              llvm::function_ref<void(const Result &)> tell);

/// One program in one layout, in a process of its own.
Result tryOne(const Program &program, const Layout &layout, int layoutNumber,
              const TrialOptions &options);

/// A context in which programs are made and compiled.
std::unique_ptr<mlir::MLIRContext> makeContext();

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_TRIAL_H
