// What the CPU target says of a plan, one function for each question of
// lib/Target/Target.h that takes more than a line to answer.

#ifndef ACCEL_LIB_TARGET_CPU_PLANPARTS_H
#define ACCEL_LIB_TARGET_CPU_PLANPARTS_H

#include "CpuTarget.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <memory>

namespace accel::cpu {

/// How many rows of a kernel make a chunk.
int64_t chooseGrid(mlir::func::FuncOp kernel, int64_t rows, int64_t bytes);

/// What choosing forms has prepared of each product and attention, which is the
/// same in every plan.
class PreparedForms;
std::shared_ptr<PreparedForms> createPreparedForms();

/// Gives each product its `form`: which library form, cut into which chunks. On
/// the machine it compiles for, the few legal forms of every distinct shape are
/// tried once, on the threads that will run it, and remembered on disk (a form
/// that is damaged there, or not legal for its product, is measured again; more
/// than a second of it is told); for another machine the default is taken and
/// nothing is measured. Chosen at load, the form could change from run to run
/// (laws 1 and 10 of the design).
///
/// Where the machine multiplies bf16 in tiles (Intel AMX), products of f32 have
/// one more form, `bf16x6`: each number as three bf16 pieces, six products of
/// pieces, sums in f32. It is as exact as f32 arithmetic, and was measured at
/// up to 1.5 times the peak of the f32 units. A file with this form asks for a
/// machine that has tiles; `--target=cpu:x86-64-v4` keeps to f32 arithmetic.
///
/// Weights whose product is faster with packed weights are packed once, by
/// `plan.pack` in the entry `load`; where nothing else reads them, the unpacked
/// ones last no longer than that. Attention gets its block size and scratch.
/// Plans on other threads wait: what is measured is measured alone.
llvm::LogicalResult chooseForms(plan::ProgramOp program,
                                const CpuTarget &target, int64_t threads,
                                PreparedForms &prepared);

/// What the process and its libraries hold for what a program makes them
/// prepare: something for each command, each product and thread, and each
/// distinct product (oneDNN's code). acc-run compares its resident set with it
/// and warns.
int64_t estimateReserve(plan::ProgramOp program, int64_t threads);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_PLANPARTS_H
