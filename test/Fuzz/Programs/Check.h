// Holds a program in a layout against itself on one rank.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_CHECK_H
#define ACCEL_TEST_FUZZ_PROGRAMS_CHECK_H

#include "Program.h"
#include "lib/Evaluate/Interpreter.h"

namespace accel::fuzz {

enum class Verdict {
  right,    ///< computed, and the same as on one rank
  reason,   ///< refused, by a sentence of the table
  refused,  ///< refused, and not by one
  wrong,    ///< computed, and something else
  unstable, ///< something else, by no more than one rank's own results move
            ///< when its inputs do by next to nothing
};
llvm::StringRef stringify(Verdict verdict);

struct Outcome {
  Verdict verdict = Verdict::right;
  /// The pass that refused, and what it said; or the value that differs, and
  /// how.
  std::string where, what;
  /// Of what a proof refused: whether what it refused is right.
  bool isRight = false;
  /// Of a reason: its row in the table.
  std::string reason;
  /// Mutants that compute something else.
  unsigned mutants = 0;

  /// What failures of one kind have in common.
  std::string getKind() const;
};

/// The pass that runs, for whoever has to say where it has crashed.
extern const char *currentPass;

/// For tests of this instrument: what is put out of order.
enum class Sabotage {
  none,
  program,    ///< one thing of each rank's program is changed behind the proof
  acceptance, ///< both proofs accept whatever mutants they are shown
  refusal,    ///< the first proof refuses whatever it is shown
};

struct CheckOptions {
  /// How many mutants of each rank's program and of each plan are made; those
  /// that compute something else must be refused.
  unsigned mutants = 0;
  Sabotage sabotage = Sabotage::none;
};

class Checker {
public:
  Checker(const Program &program, uint64_t inputSeed,
          CheckOptions options = {});

  /// What one rank computes: false, and an outcome, if it computes nothing.
  bool prepare(Outcome &outcome);
  Outcome check(const Layout &layout);
  /// Whether gradients are what finite differences of the loss say. Empty: yes,
  /// or the loss has none here; else what differs.
  std::string checkGradients();

private:
  struct Run; // of the passes, with what they said

  Run compile(mlir::ModuleOp module, const Layout &layout,
              llvm::StringRef phase);
  /// Without rounding, but for codes of fp8.
  evaluate::InterpreterOptions getEvaluation() const;
  Outcome refuse(const Run &run, const Layout &layout);
  Outcome compare(mlir::ModuleOp module, llvm::StringRef phase);
  /// What a changed program computes: none where it is no program.
  bool isRounded(mlir::ModuleOp module) const;
  std::optional<bool> isOther(mlir::ModuleOp mutant);
  /// An outcome that is not right where a proof accepts what is not.
  Outcome tryMutants(mlir::ModuleOp logical, mlir::ModuleOp local,
                     mlir::ModuleOp plan);
  bool changeProgram(mlir::ModuleOp local);
  /// What the loss does not depend on, as import has found, is in no layout's
  /// outputs: its gradient is 0.
  void forgetUntrained();
  /// How far one rank's own results move when its inputs do by next to nothing.
  double getMoved();

  const Program &program;
  uint64_t inputSeed;
  CheckOptions options;
  /// What is compiled, in phase `nn`: the program, or what is imported of it.
  mlir::OwningOpRef<mlir::ModuleOp> source;
  mlir::OwningOpRef<mlir::ModuleOp> whole; ///< in phase `train`, on one rank
  evaluate::TensorsByName inputs, expected;
  std::optional<double> moved;
};

/// Why a sentence is a reason: a row of the table of legitimate refusals. Null
/// if there is none.
struct Reason {
  const char *name;
  const char *pattern; ///< of "PASS: SENTENCE"
  const char *why;
  /// Only for programs in which samples meet.
  bool ofMixedRows;
};
const Reason *findReason(llvm::StringRef pass, llvm::StringRef said,
                         const Program &program);
llvm::ArrayRef<Reason> getReasons();

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_CHECK_H
