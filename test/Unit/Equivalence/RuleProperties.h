// Each rule of the first proof alone: what makes programs of its premises.

#ifndef ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROPERTIES_H
#define ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROPERTIES_H

#include "RuleProgram.h"

namespace accel::test {

struct RuleProperty {
  equivalence::RuleId rule;
  const char *name; ///< of the programs
  void (*generate)(RuleProgram &program);
};

/// The op of the logical program on a rank's operands, of which it takes its
/// result types; `shape` is that of a result that does not follow from these.
/// Null where it cannot be, which makes the program invalid.
mlir::Operation *mirror(RuleProgram &program, mlir::Operation *op,
                        llvm::ArrayRef<mlir::Value> operands,
                        llvm::ArrayRef<int64_t> shape = {});

/// By file: RulePropertiesSums.cpp, ….
llvm::ArrayRef<RuleProperty> getSumProperties();
llvm::ArrayRef<RuleProperty> getMapProperties();
llvm::ArrayRef<RuleProperty> getMoveProperties();
llvm::ArrayRef<RuleProperty> getViewProperties();
llvm::ArrayRef<RuleProperty> getLookupProperties();
llvm::ArrayRef<RuleProperty> getPaddingProperties();
llvm::ArrayRef<RuleProperty> getEqualProperties();
llvm::ArrayRef<RuleProperty> getDealtProperties();
llvm::ArrayRef<RuleProperty> getRingProperties();
llvm::ArrayRef<RuleProperty> getOpProperties();
llvm::ArrayRef<RuleProperty> getWireProperties();
llvm::ArrayRef<RuleProperty> getPortionProperties();

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROPERTIES_H
