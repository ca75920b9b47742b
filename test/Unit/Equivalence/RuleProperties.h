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

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_EQUIVALENCE_RULEPROPERTIES_H
