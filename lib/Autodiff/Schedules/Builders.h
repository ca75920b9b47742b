// What builds and what checks each schedule. Private to the folder.

#ifndef ACCEL_LIB_AUTODIFF_SCHEDULES_BUILDERS_H
#define ACCEL_LIB_AUTODIFF_SCHEDULES_BUILDERS_H

#include "lib/Autodiff/Schedules/Course.h"

namespace accel::autodiff {

Number buildConstant(const Course &course);
Number buildLinear(const Course &course);
Number buildCosine(const Course &course);
llvm::Error checkWarmup(ScheduleRule &rule, double lr);
llvm::Error checkLinear(ScheduleRule &rule, double lr);
/// From 0 to 1 while `n` is less than `warmup_steps`, then `after`.
Number afterWarmup(const Course &course, Number after);

Number buildCosineRestarts(const Course &course);
Number buildCosineMinLr(const Course &course);
Number buildCosineWarmupMinLr(const Course &course);
llvm::Error checkCosineMinLr(ScheduleRule &rule, double lr);
Number buildPolynomial(const Course &course);
llvm::Error checkPolynomial(ScheduleRule &rule, double lr);
Number buildInverseSqrt(const Course &course);
Number buildWarmupStableDecay(const Course &course);
llvm::Error checkWarmupStableDecay(ScheduleRule &rule, double lr);

Number buildStepLR(const Course &course);
Number buildMultiStepLR(const Course &course);
Number buildExponentialLR(const Course &course);
Number buildConstantLR(const Course &course);
Number buildLinearLR(const Course &course);
Number buildPolynomialLR(const Course &course);
Number buildCosineAnnealingLR(const Course &course);
Number buildWarmRestarts(const Course &course);
Number buildCyclicRate(const Course &course);
Number buildCyclicMomentum(const Course &course);
llvm::Error checkCyclic(ScheduleRule &rule, double lr);
Number buildOneCycleLRRate(const Course &course);
Number buildOneCycleLRMomentum(const Course &course);
llvm::Error checkOneCycleLR(ScheduleRule &rule, double lr);
Number buildChain(const Course &course);
llvm::Error checkChain(ScheduleRule &rule, double lr);
Number buildSequence(const Course &course);
llvm::Error checkSequence(ScheduleRule &rule, double lr);

Number buildWarmupLR(const Course &course);
Number buildWarmupDecayLR(const Course &course);
Number buildWarmupCosineLR(const Course &course);
llvm::Error checkDeepSpeedWarmup(ScheduleRule &rule, double lr);
Number buildLRRangeTest(const Course &course);
Number buildDeepSpeedCycleRate(const Course &course);
Number buildDeepSpeedCycleMomentum(const Course &course);
llvm::Error checkDeepSpeedCycle(ScheduleRule &rule, double lr);

Number buildInverseSquareRoot(const Course &course);
Number buildWSD(const Course &course);
llvm::Error checkWSD(ScheduleRule &rule, double lr);

/// Fails where momenta are not in [0, 1) in their order.
llvm::Error checkMomenta(const ScheduleRule &rule, llvm::StringRef least,
                         llvm::StringRef most);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_SCHEDULES_BUILDERS_H
