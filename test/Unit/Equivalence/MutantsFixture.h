// Programs to make wrong ones of, and what decides whether they are.

#ifndef ACCEL_TEST_UNIT_VERIFY_MUTANTSFIXTURE_H
#define ACCEL_TEST_UNIT_VERIFY_MUTANTSFIXTURE_H

#include "Mutator.h"
#include "lib/Evaluate/Interpreter.h"
#include "gtest/gtest.h"

namespace accel::test {

/// Square: of tensors with the same sizes. Uneven: states that ranks cannot
/// split evenly, and rows in another order than the batch's. Rows: large tables
/// of which few rows are read. Decoder: a layer of a language model, its
/// vocabulary a tied table. Grouped: query heads that share key heads.
enum class Program { Square, Uneven, Rows, Decoder, Grouped };

/// A program, and how it is placed.
struct Setting {
  const char *name, *mesh;
  int64_t microBatches, stage;
  bool once, train;
  Program program = Program::Square;
  const char *precision = "", *set = "";
  /// Not 0: the mesh, "mb" and "tp" with it, is the module's own, and values
  /// are asked to be split over "tp" as this seed says.
  unsigned constraints = 0;
  unsigned firstSeed = 0; ///< so that settings try different changes
  const char *optimizer = "adamw";
};

/// What became of the mutants.
struct Tally {
  std::map<std::string, int> differing; ///< by what was changed
  int same = 0, strict = 0;             ///< as right as before; refused though

  int count(llvm::StringRef prefix = "") const;
  Tally &operator+=(const Tally &other);
  void print() const;
};

/// How many seeds a test tries: `seeds`, times ACCEL_MUTANTS where that is set.
unsigned countSeeds(unsigned seeds);

/// So many, others for each way to constrain a program.
llvm::iota_range<unsigned> getSeeds(const Setting &setting, unsigned count);

class MutantsTest : public ::testing::Test {
protected:
  MutantsTest();

  mlir::OwningOpRef<mlir::ModuleOp> parse(const Setting &setting);
  /// The setting's program as `train` leaves it.
  mlir::OwningOpRef<mlir::ModuleOp> makeLogical(const Setting &setting);
  /// The project's GPT-2, in phase `nn`.
  mlir::OwningOpRef<mlir::ModuleOp> parseGpt2();
  /// Whether constraints can be had: not all can in micro-batches.
  bool canBePlaced(mlir::ModuleOp module, const Setting &setting);
  mlir::LogicalResult compile(mlir::ModuleOp module, const Setting &setting,
                              llvm::StringRef phase);
  /// The split alone, without what checks it before and after.
  mlir::LogicalResult split(mlir::ModuleOp module);

  enum class Result { Same, Other, NoProgram };
  /// Whether a module gives what is expected. It gives something else too where
  /// ranks that should agree do not, or a sum is left over for the next step.
  Result evaluate(mlir::ModuleOp module,
                  const evaluate::TensorsByName &expected);
  /// The proof that is tried.
  virtual mlir::LogicalResult prove(mlir::ModuleOp logical,
                                    mlir::ModuleOp local);
  bool accepts(mlir::ModuleOp logical, mlir::ModuleOp local,
               std::string *message = nullptr);
  /// Evaluates a mutant, and expects that it is refused if it is wrong.
  void count(mlir::ModuleOp logical, mlir::ModuleOp mutant,
             const evaluate::TensorsByName &expected, llvm::StringRef change,
             unsigned seed, Tally &tally);
  /// One program's local mutants, as `change` makes them.
  void tryLocal(mlir::ModuleOp logical, const Setting &setting, unsigned seeds,
                Tally &tally,
                std::string (Mutator::*change)() = &Mutator::changeLocal);

  mlir::MLIRContext context;
  evaluate::TensorsByName inputs;
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_VERIFY_MUTANTSFIXTURE_H
