// Makes a failing program small, and its layout simple.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_SHRINK_H
#define ACCEL_TEST_FUZZ_PROGRAMS_SHRINK_H

#include "Program.h"

namespace accel::fuzz {

/// Whether a program in a layout still fails as the first one did.
using StillFails = llvm::function_ref<bool(const Program &, const Layout &)>;

/// Takes away whatever can go while it fails: axes and settings, ops (a value
/// gives way to an operand, an earlier value or an input of its type), states
/// and inputs. Tries at most `attempts` programs.
void shrink(Program &program, Layout &layout, unsigned attempts,
            StillFails stillFails);

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_SHRINK_H
