// Wrong programs, made from right ones by one change each: both proofs must
// refuse them, of every program and layout that they accept.

#include "Check.h"

#include "lib/Equivalence/Equivalence.h"
#include "lib/Equivalence/PlanEquivalence.h"
#include "lib/Plan/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "test/Unit/Equivalence/Mutator.h"
#include "test/Unit/Equivalence/PlanMutator.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

/// What was changed; empty where the seed finds nothing.
static std::string changeLocal(ModuleOp local, unsigned seed) {
  test::Mutator mutator(local, seed);
  switch (seed % 4) {
  case 0:
    return mutator.changeSplits();
  case 1:
    return mutator.changeExperts();
  default:
    return mutator.changeLocal();
  }
}

bool Checker::changeProgram(ModuleOp local) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    OwningOpRef<ModuleOp> mutant(local.clone());
    if (changeLocal(*mutant, seed).empty() || isOther(*mutant) != true)
      continue;
    changeLocal(local, seed);
    return true;
  }
  return false;
}

static bool passesPlanVerify(ModuleOp plan) {
  PassManager pm(plan.getContext());
  pm.enableVerifier(false);
  pm.addPass(plan::createVerifyPlanPass());
  return succeeded(pm.run(plan));
}

Outcome Checker::tryMutants(ModuleOp logical, ModuleOp local, ModuleOp plan) {
  Outcome outcome;
  ScopedDiagnosticHandler quiet(local.getContext(),
                                [](Diagnostic &) { return success(); });
  auto judge = [&](StringRef proof, StringRef change, unsigned seed,
                   ModuleOp mutant, function_ref<bool()> accepts) {
    if (change.empty() || isOther(mutant) != true)
      return;
    ++outcome.mutants;
    if (options.sabotage != Sabotage::acceptance && !accepts())
      return;
    outcome.verdict = Verdict::wrong;
    outcome.where = ("accepted by " + proof).str();
    outcome.what = llvm::formatv("mutant {0}: {1}", seed, change).str();
  };
  // Of padded dimensions there is a program between the two.
  bool isProved = succeeded(equivalence::verifyEquivalence(logical, local));
  for (unsigned number = 0; number < options.mutants; ++number) {
    unsigned seed = inputSeed * options.mutants + number;
    if (isProved) {
      OwningOpRef<ModuleOp> mutant(local.clone());
      std::string change = changeLocal(*mutant, seed);
      judge("dist-verify-equivalence", change, seed, *mutant, [&] {
        return succeeded(equivalence::verifyEquivalence(logical, *mutant));
      });
    }
    OwningOpRef<ModuleOp> mutant(plan.clone());
    std::string change = test::PlanMutator(*mutant, seed).change();
    judge("plan-verify-equivalence", change, seed, *mutant, [&] {
      return passesPlanVerify(*mutant) &&
             succeeded(equivalence::verifyPlanEquivalence(local, *mutant));
    });
  }
  return outcome;
}
